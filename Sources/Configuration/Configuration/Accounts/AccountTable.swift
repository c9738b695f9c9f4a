/// One `[accounts.NAME]` while it is read, and the errors that were found in it.
struct AccountTable {
    let name: String
    let node: TOMLDocument.Node
    /// The members without rejected ones.
    let members: TOMLTableReader
    /// The table including rejected members.
    private let unchecked: TOMLTableReader
    let place: ConfigurationPlace
    /// True if only the file's owner can read it.
    let isPrivateFile: Bool
    /// Collects the errors.
    var check: KeyCheck

    init(
        name: String, node: TOMLDocument.Node, unchecked: TOMLTableReader, place: ConfigurationPlace,
        isPrivateFile: Bool, check: KeyCheck
    ) {
        self.name = name
        self.node = node
        if case .table(let members) = node.value {
            self.members = TOMLTableReader(members)
        } else {
            members = .init([])
        }
        self.unchecked = unchecked
        self.place = place
        self.isPrivateFile = isPrivateFile
        self.check = check
    }

    /// True if the account has the key `grant`, even with an error: it is meant as a service account.
    var isService: Bool { isWritten("grant") }

    /// True if the key is written, even with an error. Then it must not be reported as missing.
    func isWritten(_ key: String, in inner: String? = nil) -> Bool {
        let table = inner.map { unchecked.table($0) } ?? unchecked
        return table?.has(key) == true || check.meant.contains(["accounts", name] + (inner.map { [$0] } ?? []) + [key])
    }

    // MARK: Errors

    /// Reports an error at a key of the account, or at the account itself.
    mutating func refuse(_ key: String?, _ message: String) {
        let path = ["accounts", name] + (key.map { [$0] } ?? [])
        check.refuse(key.flatMap { members.node($0) } ?? node, path, message)
    }

    mutating func refuse(_ key: String, _ mistake: Mistake) {
        check.refuse(members.node(key) ?? node, ["accounts", name, key], mistake)
    }

    /// Reports an error at an element of a key's array.
    mutating func refuse(_ key: String, _ element: TOMLDocument.Node, _ message: String) {
        check.refuse(element, ["accounts", name, key], message)
    }

    /// Reports an error at a name in a key's table.
    mutating func refuse(_ key: String, _ value: TOMLDocument.Node, _ inside: String, _ message: String) {
        check.refuse(value, ["accounts", name, key, inside], message)
    }

    // MARK: Values

    /// An absolute path; nil if an error was reported.
    mutating func expand(_ key: String, _ written: String) -> String? {
        if let path = place.path(written) { return path }
        refuse(key, "must be an absolute path, or begin with ~/")
        return nil
    }

    /// True for printable ASCII including spaces.
    static func isPrintable(_ text: String, mayBeEmpty: Bool = false) -> Bool {
        (mayBeEmpty || !text.isEmpty) && text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
    }
}
