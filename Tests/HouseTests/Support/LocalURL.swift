import TestSupport

struct LocalURL: Sendable, CustomStringConvertible {
    let text: String
    let authority: String
    let port: Int
    let target: String

    init(_ text: String) throws {
        guard text.hasPrefix("http://") else { throw Late(what: "an http URL, not \(text)") }
        let rest = text.dropFirst("http://".count)
        let authority = rest.prefix { !"/?#".contains($0) }
        guard let colon = authority.lastIndex(of: ":"), let port = Int(authority[authority.index(after: colon)...])
        else { throw Late(what: "a URL with a port, not \(text)") }
        self.text = text
        self.authority = String(authority)
        self.port = port
        let target = rest[authority.endIndex...].prefix { $0 != "#" }
        self.target = target.hasPrefix("/") ? String(target) : "/" + target
    }

    var description: String { text }
    var place: ServerPlace { authority.hasPrefix("[") ? .ipv6(port) : .ipv4(port) }
    var path: String { String(target.prefix { $0 != "?" }) }

    /// The parameters as they stand, not unescaped.
    var parameters: [(name: String, value: String)] {
        guard let mark = target.firstIndex(of: "?") else { return [] }
        return target[target.index(after: mark)...].split(separator: "&").map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (String(parts[0]), parts.count == 2 ? String(parts[1]) : "")
        }
    }

    subscript(name: String) -> String? { parameters.first { $0.name == name }?.value }

    /// The same address with other parameters, which must be escaped.
    func with(_ parameters: [(name: String, value: String)]) throws -> LocalURL {
        let query = parameters.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
        return try LocalURL("http://\(authority)\(path)" + (query.isEmpty ? "" : "?\(query)"))
    }

    /// The same with one parameter set; nil removes it.
    func setting(_ name: String, to value: String?) throws -> LocalURL {
        var pairs = parameters
        if let value {
            if let index = pairs.firstIndex(where: { $0.name == name }) {
                pairs[index].value = value
            } else {
                pairs.append((name, value))
            }
        } else {
            pairs.removeAll { $0.name == name }
        }
        return try with(pairs)
    }

    func following(_ reference: String) throws -> LocalURL {
        try LocalURL(reference.hasPrefix("/") ? "http://\(authority)\(reference)" : reference)
    }
}
