public import HTTPMessages
public import Secrets
public import StrictJSON

/// Requests about the project: its keys, settings, tables and functions.
extension SupabaseProject {
    /// Requests the public keys of access tokens, a ``JSONWebKeySet``; empty for a project that signs with a shared
    /// secret. They may be cached for ten minutes.
    public func keys() -> HTTPRequest { request("GET", "/.well-known/jwks.json") }

    /// Requests the enabled sign-in methods, see ``SupabaseSettings``.
    public func settings() -> HTTPRequest { request("GET", "/settings") }

    /// Requests the Auth server's version, see ``SupabaseHealth``.
    public func health() -> HTTPRequest { request("GET", "/health") }

    /// Requests the app's own row about the user: the one of `table` in which `key` equals `value`. The response is a
    /// ``ProfileResponse``. Throws for `profile` if a name is not `[A-Za-z_][A-Za-z0-9_]{0,62}` or there are no tables
    /// (bare Auth server).
    public func row(
        in table: String, where key: String, is value: String, bearer: Secret
    ) throws(FieldError) -> HTTPRequest {
        let root = try tables(field: "profile")
        guard SupabaseProject.isName(table), SupabaseProject.isName(key), !SupabaseProject.words.contains(key) else {
            throw FieldError(field: "profile", reason: "not a name of a table and a column")
        }
        // Two rows are requested so that a key that is not unique is noticed.
        let query = [("select", "*"), (key, "eq.\(value)"), ("limit", "2")]
        return request("GET", at: "\(root)/\(table)", query: query, body: nil, bearer: bearer)
    }

    /// Calls a function of the project's database as the user; the response is a ``FunctionResponse``. Throws for
    /// `function`.
    public func call(_ function: String, arguments: JSONObject, bearer: Secret) throws(FieldError) -> HTTPRequest {
        let root = try tables(field: "function")
        guard SupabaseProject.isName(function) else {
            throw FieldError(field: "function", reason: "not a function's name")
        }
        return request("POST", at: "\(root)/rpc/\(function)", query: [], body: arguments, bearer: bearer)
    }

    /// True for a database name that needs no quotes: `[A-Za-z_][A-Za-z0-9_]{0,62}`.
    public static func isName(_ text: String) -> Bool {
        guard (1...63).contains(text.utf8.count), let first = text.utf8.first else { return false }
        let isLetter = { (byte: UInt8) in (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "_") }
        return isLetter(first) && text.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) }
    }

    /// Parameters of PostgREST that are not columns.
    private static let words: Set<String> = [
        "select", "limit", "offset", "order", "and", "or", "not", "columns", "on_conflict",
    ]

    private func tables(field: String) throws(FieldError) -> String {
        guard let restURL else { throw FieldError(field: field, reason: "a bare Auth server has no tables") }
        return restURL
    }
}
