/// A URL taken apart and decoded, not yet checked.
struct Parts {
    let user: String
    let hosts: [(name: String, port: String?)]
    let database: String
    let parameters: [String: String]

    init(_ text: String) throws(PostgresURLError) {
        guard text.utf8.allSatisfy({ (0x21..<0x7F).contains($0) && $0 != UInt8(ascii: "#") }) else {
            throw .malformed
        }
        guard let prefix = ["postgresql://", "postgres://"].first(where: { text.hasPrefix($0) }) else { throw .scheme }
        let (front, query) = Parts.cut(Substring(text.dropFirst(prefix.count)), at: "?")
        let (authority, path) = Parts.cut(front, at: "/")
        database = try Parts.decode(path ?? "")

        var place = authority
        if let at = authority.lastIndex(of: "@") {
            let (name, password) = Parts.cut(authority[..<at], at: ":")
            guard password == nil else { throw .password }
            user = try Parts.decode(name)
            place = authority[authority.index(after: at)...]
        } else {
            user = ""
        }
        hosts = try place.isEmpty ? [] : Parts.hosts(place)
        parameters = try Parts.parameters(query ?? "")
    }

    private static func hosts(_ text: Substring) throws(PostgresURLError) -> [(name: String, port: String?)] {
        var hosts: [(name: String, port: String?)] = []
        for piece in text.split(separator: ",", omittingEmptySubsequences: false) {
            if piece.hasPrefix("[") {
                guard let end = piece.lastIndex(of: "]") else { throw .badHost }
                let name = piece[piece.index(after: piece.startIndex)..<end]
                let rest = piece[piece.index(after: end)...]
                guard name.contains(":"), rest.isEmpty || rest.hasPrefix(":") else { throw .badHost }
                hosts.append((String(name), rest.isEmpty ? nil : String(rest.dropFirst())))
            } else {
                let (name, port) = cut(piece, at: ":")
                hosts.append((try decode(name), port.map(String.init)))
            }
        }
        return hosts
    }

    private static func parameters(_ query: Substring) throws(PostgresURLError) -> [String: String] {
        var parameters: [String: String] = [:]
        for piece in query.split(separator: "&", omittingEmptySubsequences: true) {
            let (name, value) = cut(piece, at: "=")
            let decoded = try decode(name)
            // A password would be in the configuration.
            guard decoded != "password" else { throw .password }
            guard let value, !value.isEmpty else { throw .badValue(decoded) }
            guard parameters.updateValue(try decode(value), forKey: decoded) == nil else {
                throw .repeatedParameter(decoded)
            }
        }
        return parameters
    }

    private static func cut(_ text: Substring, at separator: Character) -> (Substring, Substring?) {
        guard let index = text.firstIndex(of: separator) else { return (text, nil) }
        return (text[..<index], text[text.index(after: index)...])
    }

    /// Decodes `%XX`. A `+` stays one.
    private static func decode(_ text: Substring) throws(PostgresURLError) -> String {
        var output: [UInt8] = []
        let bytes = Array(text.utf8)
        var index = 0
        while index < bytes.count {
            guard bytes[index] == UInt8(ascii: "%") else {
                output.append(bytes[index])
                index += 1
                continue
            }
            guard index + 2 < bytes.count, let high = digit(bytes[index + 1]), let low = digit(bytes[index + 2]) else {
                throw .malformed
            }
            let byte = high << 4 | low
            // Control characters belong into no name, and libpq takes its settings as C strings.
            guard byte >= 0x20, byte != 0x7F else { throw .malformed }
            output.append(byte)
            index += 3
        }
        guard let decoded = String(validating: output, as: UTF8.self) else { throw .malformed }
        return decoded
    }

    private static func digit(_ value: UInt8) -> UInt8? {
        switch value {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): value - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): value - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): value - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
