internal import HTTPMessages

/// Reads what `[[file]]` and `[[origin]]` tables have in common: which token of which account. Collects the errors.
struct TokenTable {
    let members: TOMLTableReader
    let node: TOMLDocument.Node
    private let path: [String]
    private(set) var check: KeyCheck

    private static let maxScopes = 64

    /// - Parameters:
    ///   - name: the key of the array.
    ///   - number: the table's number in its file, from 1.
    init(_ name: String, _ number: Int, _ node: TOMLDocument.Node, check: KeyCheck) {
        members = TOMLTableReader(node)
        self.node = node
        path = [name, String(number)]
        self.check = check
    }

    // MARK: Errors

    /// Where the table stands, for messages.
    var source: ConfigurationSource { ConfigurationSource(file: check.file, line: node.line) }

    /// Reports an error at a key of the table, or at the table itself.
    mutating func refuse(_ key: String?, _ message: String) {
        check.refuse(key.flatMap { members.node($0) } ?? node, path + (key.map { [$0] } ?? []), message)
    }

    /// Reports an error at an element of a key's array.
    mutating func refuse(_ key: String, _ element: TOMLDocument.Node, _ message: String) {
        check.refuse(element, path + [key], message)
    }

    /// Reports a missing key, unless the key is written and its error was reported already.
    mutating func refuseMissing(_ key: String, _ message: String) {
        let isMistaken =
            check.meant.contains(path + [key]) || check.errors.contains { $0.key == KeyCheck.display(path + [key]) }
        if !members.has(key), !isMistaken { refuse(nil, message) }
    }

    /// Reports the keys that cannot be combined with a request for the ID token.
    ///
    /// - Parameters:
    ///   - setting: the key that requests the ID token.
    ///   - keys: those that ask for a downscoped token.
    mutating func refuseDownscoping(ofIDTokenBy setting: String, _ keys: [String]) {
        for key in keys where members.has(key) {
            refuse(key, "cannot be combined with \(setting) = \"id_token\": an ID token cannot be downscoped")
        }
    }

    // MARK: Values

    /// The account's name; empty if it is missing, which is reported.
    mutating func readAccount() -> String {
        refuseMissing("account", "needs account: whose token it is")
        return members.string("account") ?? ""
    }

    mutating func readScopes() -> [String]? {
        guard let text = members.string("scope") else { return nil }
        let scopes = text.split(separator: " ").map(String.init)
        if scopes.isEmpty || scopes.count > TokenTable.maxScopes {
            refuse("scope", "is 1 to \(TokenTable.maxScopes) scopes with spaces between them")
        } else if !scopes.allSatisfy(TokenDownscoping.isScope) {
            refuse("scope", "a scope is printable ASCII without quotes and backslashes")
        }
        return scopes
    }

    mutating func readAudience() -> String? {
        guard let audience = members.string("audience") else { return nil }
        if audience.isEmpty || !TokenDownscoping.isAudience(audience) {
            refuse("audience", "is a text without control characters")
        }
        return audience
    }
}
