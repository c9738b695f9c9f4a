public import RingbackBase

/// A checked token response (RFC 6749 section 5.1). The access token and its type are checked strictly; lifetimes and
/// scopes are read leniently, so that no session is lost because of them.
public struct TokenSet: Sendable, Equatable {
    /// At most 64 KiB of printable ASCII without spaces.
    public let accessToken: Secret
    /// `Bearer` or ``DPoPUse/boundType``, in this spelling.
    public let tokenType: String
    /// In seconds, 1...one year; nil if it is not stated. Zero and less state nothing: no provider issues a token that
    /// has expired.
    public let expiresIn: Int?
    /// In Unix seconds by the provider's clock; nil if it is not stated.
    public let expiresAt: Int?
    public let refreshToken: Secret?
    /// Not verified.
    public let idToken: Secret?
    /// Space-separated; nil means: as requested.
    public let scope: String?
    /// In seconds; nil if it is not stated.
    public let refreshExpiresIn: Int?
    /// RFC 8693 section 2.2.1.
    public let issuedTokenType: String?

    init(parsing object: JSONObject, refreshToken: Secret?) throws(OAuthError) {
        guard let access = object["access_token"], access != .null else {
            throw .invalid(.token, reason: "no access_token")
        }
        guard let accessToken = TokenText.secret(access.string) else {
            throw .invalid(.token, reason: "an access_token that is not 1 to 65536 printable characters")
        }
        self.accessToken = accessToken
        self.refreshToken = refreshToken
        tokenType = try TokenSet.type(object["token_type"])
        expiresIn = LenientNumber.seconds(object["expires_in"]).flatMap { $0 > 0 ? $0 : nil }
        idToken = try TokenSet.idToken(object["id_token"])
        scope = TokenSet.scope(object["scope"])
        refreshExpiresIn = TokenSet.refreshLifetime(object)
        issuedTokenType = object["issued_token_type"]?.string
        expiresAt = LenientNumber.instant(object["expires_at"]) ?? LenientNumber.instant(object["expires_on"])
    }

    /// The access token's lifetime in seconds: as stated; else until the stated time; else as the claims `exp` and
    /// `iat` say, which are not verified: nobody gains by a wrong lifetime of a token of their own. Nil if it is
    /// unknown. `now` in Unix seconds by our clock, which may be wrong: a time that has passed already says nothing.
    public func lifetime(now: Int) -> Int? {
        if let expiresIn { return expiresIn }
        let claims = TokenSet.claims(of: accessToken)
        guard let end = expiresAt ?? LenientNumber.instant(claims?["exp"]) else { return nil }
        let starts = [now, LenientNumber.instant(claims?["iat"])].compactMap { $0 }
        return starts.map { end - $0 }.filter { $0 > 0 }.min().map { min($0, LenientNumber.longest) }
    }

    static func claims(of token: Secret) -> JSONObject? {
        let parts = token.revealed().split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Base64URL.decode(parts[1]) else { return nil }
        return (try? JSON(parsing: payload))?.object
    }

    /// RFC 6749 section 7.1: a token of an unknown type must not be used. Some servers send no type.
    private static func type(_ value: JSON?) throws(OAuthError) -> String {
        guard let value, value != .null else { return "Bearer" }
        guard let text = value.string else { throw .invalid(.token, reason: "a token_type that is not text") }
        switch text.lowercased().split(whereSeparator: \.isWhitespace).joined(separator: " ") {
        case "bearer", "": return "Bearer"
        // RFC 8693 section 2.2.1: must not be used as a bearer token.
        case "n_a": throw .invalid(.token, reason: "a token that is no access token (token_type N_A)")
        case "dpop": return DPoPUse.boundType
        default: throw .invalid(.token, reason: "a token_type other than Bearer and DPoP")
        }
    }

    private static func idToken(_ value: JSON?) throws(OAuthError) -> Secret? {
        guard let text = value?.string, !text.isEmpty else { return nil }
        guard let token = TokenText.secret(text) else {
            throw .invalid(.token, reason: "an id_token that is not a token")
        }
        return token
    }

    /// The scopes, separated by one space. A text with other characters is ignored.
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

    /// ``scope`` with one space between scopes. GitHub and others separate them by commas, but a comma may also be part
    /// of a scope (RFC 6749 section 3.3): they are separators only if no requested scope contains one.
    public func scope(askedFor asked: [String]) -> String? {
        guard let scope, scope.utf8.contains(UInt8(ascii: ",")), !asked.contains(where: { $0.contains(",") }) else {
            return scope
        }
        return scope.split { $0 == "," || $0 == " " }.joined(separator: " ")
    }

    /// The members of Keycloak and GitHub. Keycloak sends zero for an offline token, which does not expire.
    private static func refreshLifetime(_ object: JSONObject) -> Int? {
        let names = ["refresh_expires_in", "refresh_token_expires_in"]
        let stated = names.lazy.compactMap { LenientNumber.seconds(object[$0]) }.first
        return stated == 0 ? nil : stated
    }
}

/// The syntax of tokens: RFC 6749 appendix A.12 and A.17 allow printable ASCII. Other characters could break the header
/// or form in which the token is sent.
enum TokenText {
    /// In bytes.
    static let maxLength = 65_536

    /// Nil for an empty or longer text, or other characters. A space is accepted only with `allowsSpace`.
    static func secret(_ text: String?, allowsSpace: Bool = false, limit: Int = maxLength) -> Secret? {
        guard let text, !text.isEmpty, text.utf8.count <= limit else { return nil }
        let lowest: UInt8 = allowsSpace ? 0x20 : 0x21
        return text.utf8.allSatisfy { $0 >= lowest && $0 <= 0x7E } ? Secret(text) : nil
    }
}

/// Lists of scopes (RFC 6749 section 3.3).
public enum ScopeList {
    /// The most scopes that are taken from a document of another party.
    static let most = 200

    public static func isCharacter(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    /// Each valid scope of another party's list once, in the list's order, ``most`` at most.
    static func taking(_ stated: [String]) -> [String] {
        var scopes: [String] = []
        for scope in stated where scopes.count < most && !scope.isEmpty && scope.utf8.allSatisfy(isCharacter) {
            if !scopes.contains(scope) { scopes.append(scope) }
        }
        return scopes
    }

    static func text(_ scopes: [String]) -> String? { scopes.isEmpty ? nil : scopes.joined(separator: " ") }

    /// The scopes of both lists, each once: those of the first, then the others of the second.
    public static func union(_ first: [String], _ second: [String]) -> [String] {
        first + second.filter { !first.contains($0) }
    }
}
