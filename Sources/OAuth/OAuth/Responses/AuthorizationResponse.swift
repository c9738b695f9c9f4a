internal import Cryptography
public import RingbackBase

/// An authorization response (RFC 6749 section 4.1.2): exactly one state, and a code or an error. Parsing proves
/// nothing about its origin. Everything else is a ``Failure`` and must not change any state.
public struct AuthorizationResponse: Sendable, Equatable {
    public enum Outcome: Sendable, Equatable {
        /// 1...8192 bytes.
        case code(Secret)
        /// An error response; its texts are checked, its status is 0.
        case error(OAuthError.ErrorResponse)
    }

    /// Why a callback is not an authorization response.
    public enum Failure: Error, Sendable, Equatable {
        /// Invalid escapes in a parameter that decides, characters that URLs may not have, too many parameters, or an
        /// invalid code.
        case malformed
        /// A parameter that may occur only once; the name is from our own list.
        case repeatedParameter(String)
        /// Both a code and an error.
        case conflictingParameters
        case missingState
        /// Neither a code nor an error.
        case missingCode
        /// Tokens, as in the implicit flow, where only a code is allowed (RFC 9700 section 2.1.2).
        case carriesTokens
    }

    /// The maximum length of a code in bytes.
    public static let maxCode = 8_192
    public let state: Secret
    public let outcome: Outcome
    /// The decoded `iss` parameter; may be empty.
    public let issuer: String?

    /// Reads a callback URL. The fragment is only checked for tokens. Throws ``Failure``.
    public init(parsing callback: WebURL) throws(Failure) {
        try self.init(parsingQuery: callback.query ?? "", fragment: callback.fragment)
    }

    /// Reads the raw query of a callback URL, and its fragment if it is known. Throws ``Failure``.
    public init(parsingQuery query: String, fragment: String? = nil) throws(Failure) {
        let hash = try AuthorizationResponse.pairs((fragment ?? "").utf8)
        try self.init(pairs: AuthorizationResponse.pairs(query.utf8), fragment: hash)
    }

    /// Reads the body of a `form_post` callback (OAuth 2.0 Form Post Response Mode). Throws ``Failure``.
    public init(parsingForm body: some Collection<UInt8>) throws(Failure) {
        try self.init(pairs: AuthorizationResponse.pairs(body), fragment: [])
    }

    private init(pairs: [FormEncoding.Pair], fragment: [FormEncoding.Pair]) throws(Failure) {
        guard !(pairs + fragment).contains(where: { AuthorizationResponse.tokens.contains($0.name) }) else {
            throw .carriesTokens
        }
        var values: [String: String] = [:]
        for pair in pairs where AuthorizationResponse.single.contains(pair.name) {
            guard values.updateValue(pair.value, forKey: pair.name) == nil else { throw .repeatedParameter(pair.name) }
        }
        guard let state = values["state"], !state.isEmpty else { throw .missingState }
        // An empty parameter counts as omitted (RFC 6749 section 3.1).
        let code = values["code"].flatMap { $0.isEmpty ? nil : $0 }
        let error = values["error"].flatMap { $0.isEmpty ? nil : $0 }
        switch (code, error) {
        case (_?, _?): throw .conflictingParameters
        case (nil, nil): throw .missingCode
        case (let code?, nil):
            guard let code = TokenText.secret(code, allowsSpace: true, limit: AuthorizationResponse.maxCode) else {
                throw .malformed
            }
            outcome = .code(code)
        case (nil, let error?):
            let message = CheckedText.description(values["error_description"])
            outcome = .error(.init(code: CheckedText.code(error), message: message, status: 0))
        }
        self.state = Secret(state)
        self.issuer = values["iss"]
    }

    /// The key by which a flow is found: SHA-256, so that the time of a look-up reveals nothing about the state.
    public var stateKey: [UInt8] { AuthorizationResponse.key(forState: state) }
    /// ``stateKey`` of a flow's state.
    public static func key(forState state: Secret) -> [UInt8] { Digest.sha256(state.revealedBytes()) }

    /// Checks `iss` (RFC 9207 section 2.4): if present, it must be the expected issuer, byte for byte, or that of any
    /// directory of a template. With a code it must be present if the metadata say so. In an error response it may be
    /// missing: some providers omit it there, and forging such a response needs the state and can only end a sign-in.
    /// Without an expected issuer there is nothing to compare.
    public func check(issuer expected: String?, isAdvertised: Bool) -> Bool {
        guard let issuer else {
            if case .error = outcome { return true }
            return !isAdvertised
        }
        guard let expected else { return true }
        return IssuerTemplate.admits(issuer, expected: expected, tenant: nil)
    }

    /// Parameters that may occur only once (RFC 6749 section 3.1): two parsers must not read different values.
    private static let single: Set<String> = [
        "code", "state", "iss", "error", "error_description", "error_uri", "session_state",
    ]
    private static let tokens: Set<String> = ["access_token", "id_token", "refresh_token"]
    /// Others are only shown or not read at all, so they need not be well-formed.
    private static let needed: Set<String> = ["code", "state", "iss", "error"]

    private static func pairs(_ text: some Sequence<UInt8>) throws(Failure) -> [FormEncoding.Pair] {
        do {
            return try FormEncoding.parse(text, needed: needed)
        } catch {
            throw .malformed
        }
    }
}
