public import HTTPMessages
internal import OAuth
public import Secrets

/// What a callback of Supabase Auth means. Success is a code in the query; an error is in the query and once more in
/// the fragment, and only in the fragment where the server has no PKCE flow for it. The query is read first.
///
/// Reading one proves nothing yet; a text that is not exactly a callback is a ``Failure`` and changes nothing.
public struct SupabaseCallback: Sendable, Equatable {
    /// What came back.
    public enum Outcome: Sendable, Equatable {
        /// The code for ``SupabaseProject/codeGrant(code:verifier:)``, 1 to 8192 bytes.
        case code(Secret)
        /// The server's no, or the provider's.
        case refusal(SupabaseError.Refusal)
        /// The first of the two links of a secure e-mail change was followed: the other one is awaited.
        case message(String)
    }

    /// Why a callback has no meaning.
    public enum Failure: Error, Sendable, Equatable {
        /// Bad escapes, too many parameters, or a code that cannot be one.
        case malformed
        /// A parameter that may be there once is there twice; its name is one of ours.
        case repeatedParameter(String)
        /// A code and an error.
        case conflictingParameters
        /// Neither a code nor an error nor a message.
        case empty
        /// The implicit flow's answer: tokens where only a code belongs (RFC 9700 section 2.1.2).
        case carriesTokens

        /// One sentence for the person who looks for the cause.
        public var explanation: String {
            switch self {
            case .malformed: "The callback is not a well-formed answer of Supabase Auth."
            case .repeatedParameter(let name): "The callback has the parameter \(name) more than once."
            case .conflictingParameters: "The callback has both a code and an error."
            case .empty: "The callback has neither a code nor an error."
            case .carriesTokens:
                "The callback carries tokens (implicit flow), which is refused: they were exposed on the way. "
                    + "The sign-in must be started with PKCE, as Ringback does, and not by another program or a link "
                    + "of the dashboard."
            }
        }
    }

    public let outcome: Outcome
    /// The parameter `flow`; nil if it is absent or empty.
    public let queryKey: String?
    /// The last path segment; nil if there is none. A flow's key on loopback, see ``SupabaseRedirect``.
    public let pathKey: String?

    /// Reads a callback URL, its fragment included where the way it came shows one.
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

    /// The flow's key, where the callback has one: the last path segment on loopback, the parameter elsewhere.
    public func key(at callback: WebURL) -> String? {
        let isLoopback = callback.isLoopback && (callback.scheme == "http" || callback.scheme == "https")
        return isLoopback ? pathKey : queryKey
    }

    /// True for the server's word for a mail's link that is spent, or that a newer mail has replaced.
    public var isOfSpentLink: Bool {
        if case .refusal(let refusal) = outcome { refusal.code == "otp_expired" } else { false }
    }

    /// What a flow with this key is kept under: SHA-256, so that a look-up tells nothing by its time.
    public static func digest(ofKey key: String) -> [UInt8] { AuthorizationResponse.key(forState: Secret(key)) }

    private static let single: Set<String> = [
        "code", "error", "error_code", "error_description", "message", SupabaseRedirect.keyName,
    ]
    private static let tokens: Set<String> = [
        "access_token", "refresh_token", "id_token", "provider_token", "provider_refresh_token",
    ]

    /// The parameters that mean something and are not empty, and the names of all.
    private static func values(_ text: String) throws(Failure) -> [String: String] {
        let pairs: [FormEncoding.Pair]
        do {
            pairs = try FormEncoding.parse(text)
        } catch {
            throw .malformed
        }
        var values: [String: String] = [:]
        var seen: Set<String> = []
        for pair in pairs {
            guard seen.insert(pair.name).inserted || !single.contains(pair.name) else {
                throw .repeatedParameter(pair.name)
            }
            // An empty parameter counts as left out (RFC 6749 section 3.1); a hook may supply an empty error_code.
            if !pair.value.isEmpty || tokens.contains(pair.name) { values[pair.name] = pair.value }
        }
        // A hook's no, which has a text and no code: where a person says no there is no such parameter at all.
        if values["error"] == "access_denied", seen.contains("error_code"), values["error_code"] == nil {
            values["error_code"] = "unknown"
        }
        return values
    }

    /// The server escapes what it puts into the fragment twice: the outer escape is undone first, where what is left is
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
            return .refusal(
                SupabaseError.Refusal(
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
