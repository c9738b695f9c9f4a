internal import Cryptography
public import HTTPMessages
public import Secrets

/// What a callback means: exactly one state, and exactly one of a code and an error (RFC 6749 section 4.1.2). Reading
/// one proves nothing yet; a text that is not exactly this is a ``Failure`` and changes nothing.
public struct AuthorizationResponse: Sendable, Equatable {
    /// The provider's yes or no.
    public enum Outcome: Sendable, Equatable {
        /// 1...8192 bytes.
        case code(Secret)
        /// Its words are checked; its status is 0.
        case refusal(OAuthError.Refusal)
    }

    /// Why a callback has no meaning.
    public enum Failure: Error, Sendable, Equatable {
        /// Bad escapes, bytes outside the URL alphabet, too many parameters, or a code that cannot be one.
        case malformed
        /// A parameter that must be there once is there twice; its name is one of ours.
        case repeatedParameter(String)
        /// A code and an error.
        case conflictingParameters
        case missingState
        /// Neither a code nor an error.
        case missingCode
        /// The implicit flow's answer: tokens where only a code belongs (RFC 9700 section 2.1.2).
        case carriesTokens

        /// One sentence for the person who looks for the cause.
        public var explanation: String {
            switch self {
            case .malformed: "The callback is not a well-formed authorization response."
            case .repeatedParameter(let name): "The callback has the parameter \(name) more than once."
            case .conflictingParameters: "The callback has both a code and an error."
            case .missingState: "The callback has no state, so it belongs to no sign-in."
            case .missingCode: "The callback has neither a code nor an error."
            case .carriesTokens:
                "The callback carries tokens (implicit flow), which is refused: they were exposed on the way. "
                    + "Configure the provider for the authorization code flow with PKCE."
            }
        }
    }

    /// The longest code accepted, in bytes.
    public static let maxCode = 8_192

    public let state: Secret
    public let outcome: Outcome
    /// The `iss` parameter, form-decoded; empty if it was given empty.
    public let issuer: String?

    /// Reads a callback URL: its query, and its fragment only to see whether tokens are in it.
    public init(parsing callback: WebURL) throws(Failure) {
        try self.init(parsingQuery: callback.query ?? "", fragment: callback.fragment)
    }

    /// Reads the raw query of a callback URL, and its fragment if the way it came shows one.
    public init(parsingQuery query: String, fragment: String? = nil) throws(Failure) {
        try self.init(
            pairs: AuthorizationResponse.pairs(query.utf8),
            fragment: AuthorizationResponse.pairs((fragment ?? "").utf8)
        )
    }

    /// Reads the body of a `form_post` callback (OAuth 2.0 Form Post Response Mode).
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
        // An empty parameter counts as left out (RFC 6749 section 3.1).
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
            outcome = .refusal(
                OAuthError.Refusal(
                    code: CheckedText.code(error), message: CheckedText.description(values["error_description"]),
                    status: 0
                ))
        }
        self.state = Secret(state)
        self.issuer = values["iss"]
    }

    /// What a flow is found by: SHA-256 of the state, so that a look-up tells nothing by its time.
    public var stateKey: [UInt8] { AuthorizationResponse.key(forState: state) }

    /// What a flow with this state is kept under, see ``stateKey``.
    public static func key(forState state: Secret) -> [UInt8] { Digest.sha256(state.revealedBytes()) }

    /// RFC 9207 section 2.4: an `iss` must be the expected one byte for byte, and must be there with a code if the
    /// provider's metadata promise it. Some providers leave it out of error responses: whoever forges one needs the
    /// state, and ends a sign-in at most. For a provider without a known issuer there is nothing to compare.
    /// Where the expected issuer is a template, see ``ProviderMetadata/idTokenIssuer``, any directory's will do.
    public func check(issuer expected: String?, isAdvertised: Bool) -> Bool {
        guard let issuer else {
            if case .refusal = outcome { return true }
            return !isAdvertised
        }
        guard let expected else { return true }
        return IssuerTemplate.admits(issuer, expected: expected, tenant: nil)
    }

    /// RFC 6749 section 3.1: no parameter twice. Two readers of one callback must not see two things.
    private static let single: Set<String> = [
        "code", "state", "iss", "error", "error_description", "error_uri", "session_state",
    ]
    private static let tokens: Set<String> = ["access_token", "id_token", "refresh_token"]

    private static func pairs(_ text: some Sequence<UInt8>) throws(Failure) -> [FormEncoding.Pair] {
        do {
            return try FormEncoding.parse(text)
        } catch {
            throw .malformed
        }
    }
}
