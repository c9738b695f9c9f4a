internal import Encodings

/// Reads values from a table that was checked by ``KeyCheck``, so no value has the wrong type. Missing values are nil.
struct TOMLTableReader {
    let members: [TOMLDocument.Member]

    init(_ members: [TOMLDocument.Member]) {
        self.members = members
    }

    /// The table in a node; an empty one for other values.
    init(_ node: TOMLDocument.Node?) {
        if case .table(let members)? = node?.value { self.members = members } else { members = [] }
    }

    func node(_ key: String) -> TOMLDocument.Node? {
        members.first { $0.key == key }?.node
    }

    func has(_ key: String) -> Bool { node(key) != nil }

    func string(_ key: String) -> String? {
        if case .string(let text)? = node(key)?.value { text } else { nil }
    }

    func integer(_ key: String) -> Int? {
        if case .integer(let number)? = node(key)?.value { number } else { nil }
    }

    /// A number of seconds, or a duration such as `8h`, in seconds; nil if the key is missing or its text is not a
    /// duration.
    func span(_ key: String) -> Int? {
        switch node(key)?.value {
        case .integer(let number): number
        case .string(let text): TimeSpan.seconds(of: text)
        default: nil
        }
    }

    func boolean(_ key: String) -> Bool? {
        if case .boolean(let truth)? = node(key)?.value { truth } else { nil }
    }

    func table(_ key: String) -> TOMLTableReader? {
        if case .table(let members)? = node(key)?.value { TOMLTableReader(members) } else { nil }
    }

    /// The strings of an array, with their nodes for messages.
    func strings(_ key: String) -> [(text: String, node: TOMLDocument.Node)]? {
        guard case .array(let elements)? = node(key)?.value else { return nil }
        return elements.compactMap { if case .string(let text) = $0.value { (text, $0) } else { nil } }
    }

    func integers(_ key: String) -> [(number: Int, node: TOMLDocument.Node)]? {
        guard case .array(let elements)? = node(key)?.value else { return nil }
        return elements.compactMap { if case .integer(let number) = $0.value { (number, $0) } else { nil } }
    }
}
