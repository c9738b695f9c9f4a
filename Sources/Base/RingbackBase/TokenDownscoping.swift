/// Checks the syntax of a downscoped token's scope, audience and resource, so that a mistake is reported without a
/// request.
public enum TokenDownscoping {
    /// In bytes.
    static let maxLength = 2_000

    /// RFC 6749 section 3.3: printable ASCII without spaces, quotes and backslashes.
    public static func isScope(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= maxLength
            && text.utf8.allSatisfy { byte in
                byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
            }
    }

    /// RFC 8693 section 2.1, a name that the provider defines: no control characters.
    public static func isAudience(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= maxLength
            && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    /// RFC 8707 section 2: an absolute URI without a fragment.
    public static func isResource(_ text: String) -> Bool {
        guard text.utf8.count <= maxLength, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            !text.utf8.contains(UInt8(ascii: "#")), let colon = text.utf8.firstIndex(of: UInt8(ascii: ":"))
        else { return false }
        // A scheme (RFC 3986 section 3.1) with text after it.
        let scheme = text.utf8[..<colon]
        return scheme.first?.isLetter == true && text.utf8.index(after: colon) != text.utf8.endIndex
            && scheme.allSatisfy { $0.isLetterOrDigit || "+-.".utf8.contains($0) }
    }

    /// The scopes of a ceiling that can be requested: a refresh must not name scopes that were not granted (RFC 6749
    /// section 6). The whole ceiling if the granted scopes are unknown.
    public static func reachable(_ ceiling: [String], of granted: some Collection<String>) -> [String] {
        granted.isEmpty ? ceiling : ceiling.filter { isCovered($0, by: granted) }
    }

    /// For the user, if an account's granted scopes do not cover its ceiling.
    public static func remark(on account: String, below ceiling: [String], of granted: some Collection<String>)
        -> String?
    {
        let reachable = reachable(ceiling, of: granted)
        let notGranted = ceiling.filter { !reachable.contains($0) }
        // If all granted scopes are within the ceiling, the token is served as it is.
        guard !notGranted.isEmpty, !granted.allSatisfy({ isCovered($0, by: ceiling) }) else { return nil }
        let words = "\(account) does not request the scope “\(notGranted.joined(separator: " "))”"
        return reachable.isEmpty
            ? "\(words): none of its tokens is within the scope, so none will be served."
            : "\(words): its tokens will have the scope “\(reachable.joined(separator: " "))” at most."
    }

    /// True if one of `permitted` is this scope, or another name of it.
    public static func isCovered(_ scope: String, by permitted: some Sequence<String>) -> Bool {
        let name = usualName(scope)
        return permitted.contains { permitted in
            if usualName(permitted) == name { return true }
            // At Microsoft, `RESOURCE/.default` stands for every scope of the resource.
            guard permitted.contains("://"), permitted.hasSuffix("/.default") else { return false }
            return scope.hasPrefix(permitted.dropLast(".default".count))
        }
    }

    /// The scopes that a token has beyond the permitted ones, sorted. Some providers add scopes to every token.
    /// `openid` and `offline_access` give its bearer nothing but the subject. `profile` and `email` are accepted beside
    /// a permitted scope of another kind: they tell at most who the user is.
    public static func excess(
        of stated: some Collection<String>, beyond permitted: some Collection<String>
    ) -> [String] {
        let isForOther = stated.contains { !identityScopes.contains(usualName($0)) && isCovered($0, by: permitted) }
        let accepted = isForOther ? identityScopes : ["openid", "offline_access"]
        return Set(stated).filter { !isCovered($0, by: permitted) && !accepted.contains(usualName($0)) }.sorted()
    }

    private static let identityScopes: Set = ["openid", "offline_access", "profile", "email"]

    /// Providers state other names for some scopes than those by which they are requested.
    private static func usualName(_ scope: String) -> String {
        switch scope {
        case "https://www.googleapis.com/auth/userinfo.email": return "email"
        case "https://www.googleapis.com/auth/userinfo.profile": return "profile"
        default:
            let graph = "https://graph.microsoft.com/"
            return scope.hasPrefix(graph) ? String(scope.dropFirst(graph.count)) : scope
        }
    }
}

/// Which token of a session. The raw values are those of the socket API and of the configuration.
public enum TokenKind: String, Sendable, CaseIterable {
    case accessToken = "access_token"
    case idToken = "id_token"
}

/// What a kept file contains. The raw values are those of the configuration.
public enum TokenFileFormat: String, Sendable, CaseIterable {
    /// The access token alone, without a line break.
    case token
    /// The ID token alone, without a line break.
    case idToken = "id_token"
    /// A line `Authorization: Bearer TOKEN`.
    case header
    case netrc
    /// An assignment to a variable, for a POSIX shell.
    case env
    /// A JSON object with the token, its type, its scope and when it expires.
    case json
}
