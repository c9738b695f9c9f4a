public import HTTPMessages
internal import OAuth
public import Secrets

/// A callback of Supabase Auth. A success is a code in the query. An error is in the query and also in the fragment; if
/// the server finds no PKCE flow, only in the fragment. The query has priority.
///
/// A URL that can be parsed may still be forged. Any other URL is a ``Failure`` and must not change any state.
public struct SupabaseCallback: Sendable, Equatable {
    /// The content of the callback.
    public enum Outcome: Sendable, Equatable {
        /// The code for ``SupabaseProject/codeGrant(code:verifier:)``, 1 to 8192 bytes.
        case code(Secret)
        /// An error response of the server or the provider.
        case error(SupabaseError.ErrorResponse)
        /// The first of the two links of a secure e-mail change was opened; the second one is still needed.
        case message(String)
    }

    /// Why a URL is not a callback.
    public enum Failure: Error, Sendable, Equatable {
        /// Invalid escapes, too many parameters, or an invalid code.
        case malformed
        /// A parameter that may occur only once is repeated. The name is one of those that Ringback knows.
        case repeatedParameter(String)
        /// Both a code and an error.
        case conflictingParameters
        /// No code, no error and no message.
        case empty
        /// The URL contains tokens, as in the implicit flow. Only a code is accepted (RFC 9700 section 2.1.2).
        case carriesTokens
    }

    public let outcome: Outcome
    /// The parameter `flow`; nil if it is missing or empty.
    public let queryKey: String?
    /// The last path segment; nil if it is empty. On loopback it is a flow's key, see ``SupabaseRedirect``.
    public let pathKey: String?

    /// Reads a callback URL, with its fragment if it is known. Throws ``Failure``.
    public init(parsing callback: WebURL) throws(Failure) {
        let query = try SupabaseCallback.values(callback.query ?? "")
        let fragment = try SupabaseCallback.fragmentValues(callback.fragment ?? "")
        guard SupabaseCallback.tokens.isDisjoint(with: query.keys),
            SupabaseCallback.tokens.isDisjoint(with: fragment.keys)
        else { throw .carriesTokens }
        queryKey = query[SupabaseRedirect.keyName]
        pathKey = SupabaseCallback.lastSegment(of: callback.path)
        if let outcome = try SupabaseCallback.outcome(query) {
            if case .code = outcome, fragment["error"] ?? fragment["error_code"] != nil { throw .conflictingParameters }
            self.outcome = outcome
        } else if let outcome = try SupabaseCallback.outcome(fragment.filter { $0.key != "code" }) {
            self.outcome = outcome
        } else {
            throw .empty
        }
    }

    /// The flow's key, if there is one: the last path segment on loopback, otherwise the parameter.
    public func key(at callback: WebURL) -> String? {
        let isLoopback = callback.isLoopback && (callback.scheme == "http" || callback.scheme == "https")
        return isLoopback ? pathKey : queryKey
    }

    /// True for the error of a link in a mail that was already used, has expired, or was replaced by a newer mail.
    public var isOfSpentLink: Bool {
        if case .error(let errorResponse) = outcome { errorResponse.code == "otp_expired" } else { false }
    }

    /// The key under which a flow is stored: SHA-256, so that the time of a look-up reveals nothing about the key.
    public static func digest(ofKey key: String) -> [UInt8] { AuthorizationResponse.key(forState: Secret(key)) }

    private static let single: Set<String> = [
        "code", "error", "error_code", "error_description", "message", SupabaseRedirect.keyName,
    ]
    private static let tokens: Set<String> = [
        "access_token", "refresh_token", "id_token", "provider_token", "provider_refresh_token",
    ]

    /// The parameters that are not empty, and those with the name of a token even if they are empty.
    private static func values(_ text: String) throws(Failure) -> [String: String] {
        let pairs: [FormEncoding.Pair]
        do {
            pairs = try FormEncoding.parse(
                Array(text.utf8), needed: tokens.union(["code", "error", "error_code", SupabaseRedirect.keyName]))
        } catch {
            throw .malformed
        }
        var values: [String: String] = [:]
        var seen: Set<String> = []
        for pair in pairs {
            guard seen.insert(pair.name).inserted || !single.contains(pair.name) else {
                throw .repeatedParameter(pair.name)
            }
            // An empty parameter counts as omitted (RFC 6749 section 3.1). An auth hook may send an empty `error_code`.
            if !pair.value.isEmpty || tokens.contains(pair.name) { values[pair.name] = pair.value }
        }
        // An auth hook's error has a message and an empty `error_code`. If the user declined, the parameter is missing.
        if values["error"] == "access_denied", seen.contains("error_code"), values["error_code"] == nil {
            values["error_code"] = "unknown"
        }
        return values
    }

    /// The server percent-encodes the fragment twice. The outer encoding is removed first, if the result is
    /// well-formed.
    private static func fragmentValues(_ text: String) throws(Failure) -> [String: String] {
        if text.contains("%25"), let values = try? values(text.replacing("%25", with: "%")) { return values }
        return try values(text)
    }

    private static func outcome(_ values: [String: String]) throws(Failure) -> Outcome? {
        let error = values["error"]
        let code = values["error_code"]
        switch (values["code"], error ?? code) {
        case (_?, _?): throw .conflictingParameters
        case (let text?, nil):
            guard PlainText.isToken(text), text.utf8.count <= AuthorizationResponse.maxCode else { throw .malformed }
            return .code(Secret(text))
        case (nil, _?):
            return .error(
                SupabaseError.ErrorResponse(
                    code: PlainText.code(code) ?? PlainText.code(error) ?? "unknown", status: 0,
                    message: PlainText.message(values["error_description"])))
        case (nil, nil): return PlainText.message(values["message"]).map { .message($0) }
        }
    }

    private static func lastSegment(of path: String) -> String? {
        guard let slash = path.lastIndex(of: "/") else { return nil }
        let segment = path[path.index(after: slash)...]
        return segment.isEmpty ? nil : String(segment)
    }
}
