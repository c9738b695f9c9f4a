import RingbackBase

/// The list of MCP servers in codex' `config.toml`: a table `[mcp_servers.NAME]` for each server. A table is added at
/// the end of the text, and only one that is exactly as it was added can be removed.
public struct CodexServerList: Sendable, Equatable {
    public private(set) var bytes: [UInt8]

    /// - Parameter bytes: the file's; nil if there is no file.
    public init(reading bytes: [UInt8]?) { self.bytes = bytes ?? [] }

    /// True if the server may be in the list: as a table, as a key of another one, or in a form that is not understood.
    public func mentions(_ name: String) -> Bool {
        lines.contains { line in
            let words = line.filter { $0 != " " && $0 != "\t" && $0 != "\"" && $0 != "'" }
            return words.hasPrefix("[mcp_servers.\(name)]") || words.hasPrefix("[mcp_servers.\(name).")
                || words.hasPrefix("mcp_servers=") || words.hasPrefix("mcp_servers.\(name)")
                || words.hasPrefix("[mcp_servers]")
        }
    }

    /// True if the table is exactly as ``add(_:_:_:)`` writes it.
    public func has(_ name: String, _ program: String, _ arguments: [String]) -> Bool {
        place(of: CodexServerList.table(name, program, arguments)) != nil
    }

    /// True if nothing but spaces is in the file.
    public var isEmpty: Bool { bytes.allSatisfy(CommentedJSON.isSpace) }

    /// The servers whose tables begin as ``add(_:_:_:)`` writes them.
    public var servers: [(name: String, words: [String])] {
        let lines = lines
        return lines.indices.compactMap { index in
            guard index + 2 < lines.count, let name = CodexServerList.name(lines[index]),
                let program = CodexServerList.value(lines[index + 1], of: "command")?.string,
                let arguments = CodexServerList.value(lines[index + 2], of: "args")?.array
            else { return nil }
            let words = arguments.compactMap(\.string)
            return words.count == arguments.count ? (name, [program] + words) : nil
        }
    }

    /// Replaces the program of a table that begins as ``add(_:_:_:)`` writes it.
    public mutating func setProgram(of name: String, to program: String) {
        var lines = lines
        guard String(validating: bytes, as: UTF8.self) != nil,
            let index = lines.firstIndex(where: { CodexServerList.name($0) == name }), index + 2 < lines.count,
            CodexServerList.value(lines[index + 1], of: "command") != nil
        else { return }
        lines[index + 1] = "command = \(JSON.string(program).text)"
        bytes = Array(lines.joined(separator: "\n").utf8)
    }

    private static func name(_ line: String) -> String? {
        let head = "[mcp_servers."
        guard line.hasPrefix(head), line.hasSuffix("]") else { return nil }
        let key = line.dropFirst(head.count).dropLast()
        guard key.hasPrefix("\"") else { return key.contains(".") ? nil : String(key) }
        return (try? JSON(parsing: Array(key.utf8)))?.string
    }

    private static func value(_ line: String, of key: String) -> JSON? {
        guard line.hasPrefix("\(key) = ") else { return nil }
        return try? JSON(parsing: Array(line.utf8.dropFirst("\(key) = ".utf8.count)))
    }

    public mutating func add(_ name: String, _ program: String, _ arguments: [String]) {
        guard !mentions(name) else { return }
        if let last = bytes.last, last != 0x0A { bytes.append(0x0A) }
        if !bytes.isEmpty { bytes.append(0x0A) }
        bytes += CodexServerList.table(name, program, arguments)
    }

    /// Removes the table if it is exactly as it was added, with an empty line before it.
    public mutating func remove(_ name: String, _ program: String, _ arguments: [String]) {
        guard var place = place(of: CodexServerList.table(name, program, arguments)) else { return }
        if place.lowerBound > 1, bytes[place.lowerBound - 2] == 0x0A { place = place.lowerBound - 1..<place.upperBound }
        bytes.removeSubrange(place)
    }

    private var lines: [String] {
        String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    private static func table(_ name: String, _ program: String, _ arguments: [String]) -> [UInt8] {
        let words = arguments.map { JSON.string($0).text }.joined(separator: ", ")
        let key = name.contains(".") ? JSON.string(name).text : name
        return Array("[mcp_servers.\(key)]\ncommand = \(JSON.string(program).text)\nargs = [\(words)]\n".utf8)
    }

    /// Where the table is: from the start of a line to the end of the file, an empty line or the next table.
    private func place(of table: [UInt8]) -> Range<Int>? {
        guard bytes.count >= table.count else { return nil }
        let start = (0...bytes.count - table.count).first { start in
            guard start == 0 || bytes[start - 1] == 0x0A, bytes[start..<start + table.count].elementsEqual(table) else {
                return false
            }
            let end = start + table.count
            return end == bytes.count || bytes[end] == 0x0A || bytes[end] == UInt8(ascii: "[")
        }
        return start.map { $0..<$0 + table.count }
    }
}
