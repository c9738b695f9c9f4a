public import HTTPMessages
public import Secrets
public import StrictJSON

/// Requests about the project: its keys, its settings, its tables and functions.
extension SupabaseProject {
    /// The public keys of access tokens, a ``JSONWebKeySet``; empty for a project that signs with a shared secret. To
    /// be kept for ten minutes.
    public func keys() -> HTTPRequest { request("GET", "/.well-known/jwks.json") }

    /// Which ways in the project has, see ``SupabaseSettings``.
    public func settings() -> HTTPRequest { request("GET", "/settings") }

    /// Whether the Auth server is there, and its version.
    public func health() -> HTTPRequest { request("GET", "/health") }

    /// The app's own row about the user: the one of `table` whose `key` is `value`. The answer is a ``ProfileResponse``.
    /// Throws for `profile`: names are `[A-Za-z_][A-Za-z0-9_]{0,62}`, and a bare Auth server has no tables.
    public func row(
        in table: String, where key: String, is value: String, bearer: Secret
    ) throws(FieldError) -> HTTPRequest {
        let root = try tables(field: "profile")
        guard SupabaseProject.isName(table), SupabaseProject.isName(key), !SupabaseProject.words.contains(key) else {
            throw FieldError(field: "profile", reason: "not a name of a table and a column")
        }
        // Two rows would be a mistake of the schema's, which is to be seen.
        let query = [("select", "*"), (key, "eq.\(value)"), ("limit", "2")]
        return request("GET", at: "\(root)/\(table)", query: query, body: nil, bearer: bearer)
    }

    /// Calls a function of the project's database as the user; the answer is read by ``FunctionResponse``. Throws for
    /// `function`.
    public func call(_ function: String, arguments: JSONObject, bearer: Secret) throws(FieldError) -> HTTPRequest {
        let root = try tables(field: "function")
        guard SupabaseProject.isName(function) else {
            throw FieldError(field: "function", reason: "not a function's name")
        }
        return request("POST", at: "\(root)/rpc/\(function)", query: [], body: arguments, bearer: bearer)
    }

    /// True for a name of the database's that needs no quotes: `[A-Za-z_][A-Za-z0-9_]{0,62}`.
    public static func isName(_ text: String) -> Bool {
        guard (1...63).contains(text.utf8.count), let first = text.utf8.first else { return false }
        let isLetter = { (byte: UInt8) in (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "_") }
        return isLetter(first) && text.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) }
    }

    /// Parameters of the tables' server that are no columns.
    private static let words: Set<String> = [
        "select", "limit", "offset", "order", "and", "or", "not", "columns", "on_conflict",
    ]

    private func tables(field: String) throws(FieldError) -> String {
        guard let restURL else { throw FieldError(field: field, reason: "a bare Auth server has no tables") }
        return restURL
    }
}
