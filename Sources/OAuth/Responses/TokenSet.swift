public import Secrets
internal import StrictJSON

/// The token endpoint's answer (RFC 6749 section 5.1), checked. Strict about the access token and its type, which are
/// used; lenient about lifetimes and scopes, for whose sake no session may be lost.
public struct TokenSet: Sendable, Equatable {
    /// At most 64 KiB of printable ASCII without spaces.
    public let accessToken: Secret
    /// `Bearer`, however the provider wrote it.
    public let tokenType: String
    /// Seconds, 0...one year; nil if the provider states none.
    public let expiresIn: Int?
    public let refreshToken: Secret?
    /// Unverified.
    public let idToken: Secret?
    /// Space-separated; nil if the provider says nothing, which means: as requested.
    public let scope: String?
    /// The refresh token's life in seconds; nil if none is stated.
    public let refreshExpiresIn: Int?
    /// What an exchange yielded (RFC 8693 section 2.2.1); nil if the provider does not say.
    public let issuedTokenType: String?

    public init(
        accessToken: Secret, tokenType: String = "Bearer", expiresIn: Int? = nil, refreshToken: Secret? = nil,
        idToken: Secret? = nil, scope: String? = nil, refreshExpiresIn: Int? = nil,
        issuedTokenType: String? = nil
    ) {
        self.accessToken = accessToken
        self.tokenType = tokenType
        self.expiresIn = expiresIn
        self.refreshToken = refreshToken
        self.idToken = idToken
        self.scope = scope
        self.refreshExpiresIn = refreshExpiresIn
        self.issuedTokenType = issuedTokenType
    }

    init(parsing object: JSONObject, refreshToken: Secret?) throws(OAuthError) {
        guard let access = object["access_token"], access != .null else {
            throw .invalid(.token, reason: "no access_token")
        }
        guard let accessToken = TokenText.secret(access.string) else {
            throw .invalid(.token, reason: "an access_token that is not 1 to 65536 printable characters")
        }
        self.init(
            accessToken: accessToken, tokenType: try TokenSet.type(object["token_type"]),
            expiresIn: LenientNumber.seconds(object["expires_in"]), refreshToken: refreshToken,
            idToken: try TokenSet.idToken(object["id_token"]), scope: TokenSet.scope(object["scope"]),
            refreshExpiresIn: TokenSet.refreshLifetime(object), issuedTokenType: object["issued_token_type"]?.string
        )
    }

    /// RFC 6749 section 7.1: a token of a type that is not understood must not be used.
    private static func type(_ value: JSON?) throws(OAuthError) -> String {
        guard let text = value?.string else { throw .invalid(.token, reason: "no token_type") }
        switch text.lowercased() {
        case "bearer": return "Bearer"
        // RFC 8693 section 2.2.1: not one to send to anybody as a bearer token.
        case "n_a": throw .invalid(.token, reason: "a token that is no access token (token_type N_A)")
        case "dpop": throw .invalid(.token, reason: "a token bound to a key (DPoP), which is not supported")
        default: throw .invalid(.token, reason: "a token_type other than Bearer")
        }
    }

    private static func idToken(_ value: JSON?) throws(OAuthError) -> Secret? {
        guard let text = value?.string, !text.isEmpty else { return nil }
        guard let token = TokenText.secret(text) else {
            throw .invalid(.token, reason: "an id_token that cannot be one")
        }
        return token
    }

    /// One space between scopes. A text with characters that no scope has is as good as none.
    private static func scope(_ value: JSON?) -> String? {
        let texts: [String]
        switch value {
        case .string(let text)?: texts = [text]
        case .array(let elements)?: texts = elements.compactMap(\.string)
        default: return nil
        }
        let scopes = texts.flatMap { $0.unicodeScalars.split { " \t\r\n".unicodeScalars.contains($0) } }.map(
            String.init)
        guard scopes.allSatisfy({ $0.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } }) else { return nil }
        return scopes.joined(separator: " ")
    }

    /// ``scope`` with one space between scopes, whatever the provider puts there: GitHub and others write commas, which a
    /// scope may have too (RFC 6749 section 3.3). They part scopes where none that was asked for has one.
    public func scope(askedFor asked: [String]) -> String? {
        guard let scope, scope.utf8.contains(UInt8(ascii: ",")), !asked.contains(where: { $0.contains(",") }) else {
            return scope
        }
        return scope.split { $0 == "," || $0 == " " }.joined(separator: " ")
    }

    /// Keycloak's name and GitHub's. Zero is how Keycloak says that an offline token does not expire.
    private static func refreshLifetime(_ object: JSONObject) -> Int? {
        let stated =
            LenientNumber.seconds(object["refresh_expires_in"])
            ?? LenientNumber.seconds(object["refresh_token_expires_in"])
        return stated == 0 ? nil : stated
    }
}
