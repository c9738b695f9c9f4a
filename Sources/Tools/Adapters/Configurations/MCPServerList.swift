public import RingbackBase

/// The list of MCP servers in the JSON configuration of an AI tool: an object with an entry for each server. Comments
/// and commas after a last member are allowed, as the settings of editors have them. A change is made in the text.
/// Order, indentation, comments and everything else stay as they are.
public struct MCPServerList: Sendable, Equatable {
    public enum Failure: Error, Equatable, Sendable {
        /// The file is not a JSON object, or has a member twice.
        case notAnObject
        /// The member with the list is no object.
        case listUnreadable
    }

    public private(set) var bytes: [UInt8]
    /// The name of the member with the list, such as `mcpServers`.
    public let member: String

    /// - Parameter bytes: the file's; nil if there is no file, or an empty one.
    public init(reading bytes: [UInt8]?, member: String) throws(Failure) {
        self.bytes = bytes.flatMap { $0.allSatisfy(CommentedJSON.isSpace) ? nil : $0 } ?? Array("{}\n".utf8)
        self.member = member
        guard let document = MCPServerList.document(self.bytes), document.object != nil else { throw .notAnObject }
        guard document[member] == nil || document[member]?.object != nil else { throw .listUnreadable }
    }

    private static func document(_ bytes: [UInt8]) -> JSON? { try? JSON(parsing: CommentedJSON(bytes).plain) }

    public static func comments(of bytes: [UInt8]) -> [[UInt8]] {
        CommentedJSON(bytes).comments.map { Array(bytes[$0]) }
    }

    public func entry(_ name: String) -> JSON? { MCPServerList.document(bytes)?[member]?[name] }

    /// The entries of all servers, in the file's order.
    public var entries: [(name: String, entry: JSON)] {
        (MCPServerList.document(bytes)?[member]?.object?.members ?? []).map { ($0.name, $0.value) }
    }

    /// True if the file has no member and no comment.
    public var isEmpty: Bool {
        let text = CommentedJSON(bytes)
        return text.comments.isEmpty && JSONMembers(top: text.plain).all.isEmpty
    }

    /// Replaces the program of a server's entry: its `command`, the first word of that, or the `path` in it. Everything
    /// else of the entry stays.
    public mutating func setProgram(of name: String, to program: String) {
        let plain = CommentedJSON(bytes).plain
        func value(_ name: String, at place: Int) -> Int? {
            JSONMembers(plain, at: place)[name]?.value.lowerBound
        }
        guard let list = JSONMembers(top: plain)[self.member]?.value.lowerBound, let entry = value(name, at: list),
            var place = value("command", at: entry)
        else { return }
        if plain[place] == UInt8(ascii: "{") {
            guard let path = value("path", at: place) else { return }
            place = path
        } else if plain[place] == UInt8(ascii: "[") {
            repeat { place += 1 } while place < plain.count && CommentedJSON.isSpace(plain[place])
        }
        guard let word = JSONMembers.value(plain, at: place), plain[place] == UInt8(ascii: "\"") else { return }
        bytes.replaceSubrange(word, with: JSON.string(program).text.utf8)
    }

    public mutating func add(_ name: String, _ entry: JSONObject) {
        guard self.entry(name) == nil else { return }
        let text = CommentedJSON(bytes)
        let top = JSONMembers(top: text.plain)
        let unit = top.all.first.flatMap { JSONIndentation(before: $0, of: top, in: text.plain) } ?? JSONIndentation()
        if let list = top[member] {
            insert(
                unit.member(name, entry, at: 2), into: JSONMembers(text.plain, at: list.value.lowerBound), unit, at: 2)
        } else {
            let inner = unit.break(2) + unit.member(name, entry, at: 2) + unit.break(1)
            insert("\(JSON.string(member).text): {\(inner)}", into: top, unit, at: 1)
        }
    }

    /// Removes the entry of a server, and the list if nothing is left in it.
    public mutating func remove(_ name: String) {
        guard let list = JSONMembers(top: CommentedJSON(bytes).plain)[member] else { return }
        let plain = CommentedJSON(bytes).plain
        guard let entry = JSONMembers(plain, at: list.value.lowerBound)[name] else { return }
        remove(entry)
        let text = CommentedJSON(bytes)
        guard let list = JSONMembers(top: text.plain)[member],
            JSONMembers(text.plain, at: list.value.lowerBound).all.isEmpty,
            !text.comments.contains(where: { list.value.contains($0.lowerBound) })
        else { return }
        remove(list)
    }

    private mutating func insert(_ member: String, into object: JSONMembers, _ unit: JSONIndentation, at depth: Int) {
        let text = CommentedJSON(bytes)
        guard let last = object.all.last else {
            // Behind the comments that stand in it alone.
            let end = object.end
            let start = text.last(before: end).map { $0 + 1 } ?? end
            let hasComment = text.comments.contains { $0.lowerBound >= start && $0.lowerBound < end }
            let inner = unit.break(depth) + member + unit.break(depth - 1)
            var place = hasComment ? end : start
            while place > start, CommentedJSON.isSpace(bytes[place - 1]) { place -= 1 }
            return bytes.replaceSubrange(place..<end, with: inner.utf8)
        }
        let comma = text.next(from: last.value.upperBound).flatMap { text.code[$0] == UInt8(ascii: ",") ? $0 : nil }
        let place = text.endOfComments(after: comma.map { $0 + 1 } ?? last.value.upperBound)
        bytes.insert(contentsOf: "\(unit.break(depth))\(member)\(comma == nil ? "" : ",")".utf8, at: place)
        if comma == nil { bytes.insert(UInt8(ascii: ","), at: last.value.upperBound) }
    }

    /// Removes a member with the comma behind it, or before it if it is the last one, and with its own lines.
    private mutating func remove(_ member: JSONMembers.Member) {
        let text = CommentedJSON(bytes)
        let comma = UInt8(ascii: ",")
        let behind = text.next(from: member.value.upperBound).flatMap { text.code[$0] == comma ? $0 : nil }
        let before = text.last(before: member.start).flatMap { text.code[$0] == comma ? $0 : nil }
        if let behind { bytes.remove(at: behind) }
        let end = member.value.upperBound
        let isLastOfLine = end < bytes.count && (bytes[end] == 0x0A || bytes[end] == 0x0D)
        var start = member.start
        while start > 0, CommentedJSON.isSpace(bytes[start - 1]) {
            // The end of a comment's line stays, unless another one follows: the comment would swallow what follows.
            if !isLastOfLine, text.comments.contains(where: { $0.upperBound == start - 1 }) { break }
            start -= 1
        }
        bytes.removeSubrange(start..<end)
        if behind == nil, let before { bytes.remove(at: before) }
    }
}

private struct JSONIndentation {
    private var newline = "\n"
    /// One level.
    private var unit = "  "

    init() {}

    /// As the first member of an object at the top is; nil if it is on the line of the brace.
    init?(before first: JSONMembers.Member, of object: JSONMembers, in bytes: [UInt8]) {
        let space = object.spaceBefore(first, in: bytes)
        guard let line = space.utf8.lastIndex(of: 0x0A) else { return nil }
        newline = space.utf8.contains(0x0D) ? "\r\n" : "\n"
        let indent = space[space.utf8.index(after: line)...]
        unit = indent.isEmpty ? "  " : String(indent)
    }

    func `break`(_ depth: Int) -> String { newline + String(repeating: unit, count: depth) }

    func member(_ name: String, _ entry: JSONObject, at depth: Int) -> String {
        let members = entry.members.map { member in
            self.break(depth + 1) + "\(JSON.string(member.name).text): \(text(member.value))"
        }
        return "\(JSON.string(name).text): {\(members.joined(separator: ","))\(self.break(depth))}"
    }

    private func text(_ value: JSON) -> String {
        guard let elements = value.array else { return value.text }
        return "[\(elements.map(text).joined(separator: ", "))]"
    }
}
