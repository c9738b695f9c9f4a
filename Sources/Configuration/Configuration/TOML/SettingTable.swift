internal import OAuth
internal import RingbackBase

/// Reads the values of a table that ``KeyCheck`` has checked, so no value has the wrong type. Missing values are nil.
protocol TOMLTable {
    var members: [TOMLDocument.Member] { get }
}

extension TOMLTable {
    func node(_ key: String) -> TOMLDocument.Node? { members.first { $0.key == key }?.node }
    func has(_ key: String) -> Bool { node(key) != nil }

    func string(_ key: String) -> String? {
        if case .string(let text)? = node(key)?.value { text } else { nil }
    }

    func word<Word: RawRepresentable<String>>(_ key: String) -> Word? { string(key).flatMap(Word.init) }

    func integer(_ key: String) -> Int? {
        if case .integer(let number)? = node(key)?.value { number } else { nil }
    }

    func boolean(_ key: String) -> Bool? {
        if case .boolean(let truth)? = node(key)?.value { truth } else { nil }
    }

    func table(_ key: String) -> TOMLMembers? {
        if case .table(let members)? = node(key)?.value { TOMLMembers(members: members) } else { nil }
    }

    /// The strings of an array, with their nodes for messages.
    func strings(_ key: String) -> [(text: String, node: TOMLDocument.Node)]? {
        guard case .array(let elements)? = node(key)?.value else { return nil }
        return elements.compactMap { if case .string(let text) = $0.value { (text, $0) } else { nil } }
    }

    /// The texts of a key that is one text or an array of them.
    func texts(_ key: String) -> [(text: String, node: TOMLDocument.Node)] {
        guard let node = node(key) else { return [] }
        return strings(key) ?? string(key).map { [(text: $0, node: node)] } ?? []
    }

    func integers(_ key: String) -> [(number: Int, node: TOMLDocument.Node)]? {
        guard case .array(let elements)? = node(key)?.value else { return nil }
        return elements.compactMap { if case .integer(let number) = $0.value { (number, $0) } else { nil } }
    }
}

struct TOMLMembers: TOMLTable {
    let members: [TOMLDocument.Member]
}

/// One table of settings while it is read. Errors go to ``check``, and reading continues after an error to report all of
/// them.
struct SettingTable: TOMLTable {
    /// The names that lead to the table. For an element of an array, its number in the file counts as a name, from 1.
    let path: [String]
    let node: TOMLDocument.Node
    /// Without rejected ones.
    let members: [TOMLDocument.Member]
    let place: ConfigurationPlace
    /// True if only the file's owner can read it.
    let isPrivateFile: Bool
    let check: KeyCheck

    init(
        _ path: [String], _ node: TOMLDocument.Node, place: ConfigurationPlace, isPrivateFile: Bool = false,
        check: KeyCheck
    ) {
        self.path = path
        self.node = node
        if case .table(let members) = node.value { self.members = members } else { members = [] }
        self.place = place
        self.isPrivateFile = isPrivateFile
        self.check = check
    }

    var name: String { path.last ?? "" }
    var source: ConfigurationSource { ConfigurationSource(file: check.file, line: node.line) }

    /// True if the key is written, even with an error. Then it must not be reported as missing.
    func isWritten(_ key: String, in inner: String? = nil) -> Bool {
        guard let inner else { return has(key) || isMistaken(key) }
        return table(inner)?.has(key) == true || check.mistaken.contains(path + [inner, key])
    }

    /// True if the key has an error that is reported already.
    func isMistaken(_ key: String) -> Bool { check.mistaken.contains(path + [key]) }

    /// Reports an error at a key of the table, or at the table itself.
    func refuse(_ key: String?, _ message: String) {
        check.refuse(key.flatMap { node($0) } ?? node, path + (key.map { [$0] } ?? []), Mistake(message))
    }

    func refuse(_ key: String, _ mistake: Mistake) { check.refuse(node(key) ?? node, path + [key], mistake) }

    /// Reports the keys of these that the table has.
    func refuse(anyOf keys: [String], _ message: String) {
        for key in keys where has(key) { refuse(key, message) }
    }

    /// Reports an error at an element of a key's array.
    func refuse(_ key: String, _ element: TOMLDocument.Node, _ message: String) {
        check.refuse(element, path + [key], Mistake(message))
    }

    /// Reports an error at a name in a key's table.
    func refuse(_ key: String, _ value: TOMLDocument.Node, _ inside: String, _ message: String) {
        check.refuse(value, path + [key, inside], Mistake(message))
    }

    func refuseMissing(_ key: String, _ message: String) {
        if !isWritten(key) { refuse(nil, message) }
    }

    /// The result of `body`; nil if it fails, which is reported at the key, or at an element of its array.
    @discardableResult
    func reporting<Value, Failure: SettingFailure>(
        _ key: String, at element: TOMLDocument.Node? = nil, _ body: () throws(Failure) -> Value
    ) -> Value? {
        do throws(Failure) { return try body() } catch {
            check.refuse(element ?? node(key) ?? node, path + [key], Mistake(error.message, error.cause))
            return nil
        }
    }

    /// A text. One that is not valid is reported, and nil.
    func text(_ key: String, _ rule: String, where isValid: (String) -> Bool) -> String? {
        guard let text = string(key) else { return nil }
        if isValid(text) { return text }
        refuse(key, rule)
        return nil
    }

    func printable(_ key: String) -> String? { text(key, "must be printable ASCII") { SettingTable.isPrintable($0) } }

    /// True for printable ASCII including spaces.
    static func isPrintable(_ text: String, mayBeEmpty: Bool = false) -> Bool {
        (mayBeEmpty || !text.isEmpty) && text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
    }

    /// An absolute path. A relative one is reported.
    func filePath(_ key: String) -> String? {
        guard let written = string(key) else { return nil }
        if let path = place.path(written) { return path }
        refuse(key, "must be an absolute path, or begin with ~/")
        return nil
    }

    func uids(_ key: String) -> [UInt32] {
        let uids = integers(key) ?? []
        for (number, node) in uids where number == 65_534 {
            refuse(key, node, "65534 is the uid of all users that this system does not know")
        }
        return uids.compactMap { UInt32(exactly: $0.number) }
    }

    /// A number of seconds, or a duration such as `8h`, in seconds.
    func lifetime(atMost longest: Int) -> Int? {
        let key = "ttl"
        guard let written = node(key)?.value else { return nil }
        let seconds: Int? =
            switch written {
            case .integer(let number): number
            case .string(let text): TimeSpan.seconds(of: text)
            default: nil
            }
        if let seconds, (1...longest).contains(seconds) { return seconds }
        refuse(key, "is seconds, or a span such as \"90m\", \"8h\" or \"7d\"; a year at most")
        return nil
    }

    /// The names of scopes with spaces between them.
    func scopes(without hint: String = "") -> [String]? {
        guard let text = string("scope") else { return nil }
        let scopes = text.split(separator: " ").map(String.init)
        if scopes.isEmpty || scopes.count > SettingTable.maxScopes {
            refuse("scope", "is 1 to \(SettingTable.maxScopes) scopes with spaces between them\(hint)")
        } else if !scopes.allSatisfy(TokenDownscoping.isScope) {
            refuse("scope", "a scope is printable ASCII without quotes and backslashes")
        }
        return scopes
    }

    private static let maxScopes = 64

    /// The account's name; empty if it is missing, which is reported.
    var account: String {
        refuseMissing("account", "needs account: whose token it is")
        return string("account") ?? ""
    }

    var audience: String? {
        text("audience", "is a text without control characters", where: TokenDownscoping.isAudience)
    }

    /// - Parameters:
    ///   - setting: the key that requests the ID token.
    ///   - keys: those that ask for a downscoped token.
    func refuseDownscoping(ofIDTokenBy setting: String, _ keys: [String]) {
        refuse(anyOf: keys, "cannot be combined with \(setting) = \"id_token\": an ID token cannot be downscoped")
    }
}
