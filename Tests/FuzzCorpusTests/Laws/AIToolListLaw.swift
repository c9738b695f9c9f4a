import Adapters
import RingbackBase

/// An AI tool's list of MCP servers with one added and removed. The first line names the tool, the rest is the file.
enum AIToolListLaw {
    private static let name = "law"
    private static let program = "/usr/bin/ringback"
    private static let other = "/opt/\"r\"/ringback"
    private static let arguments = ["mcp", "law"]

    static func check(_ bytes: [UInt8]) throws {
        let (word, text) = bytes.headLineAndRest
        guard let tool = AITool(rawValue: word) else { return }
        switch tool.form {
        case .toml: try check(codex: text)
        case .json(let member): try check(text, of: tool, member)
        }
    }

    private static func check(_ text: [UInt8], of tool: AITool, _ member: String) throws {
        guard var list = try? MCPServerList(reading: text, member: member), list.entry(name) == nil else { return }
        let entry = tool.entry(program, arguments)
        let former = comments(of: list.bytes)
        list.add(name, entry)
        try hold("the entry is added", list.entry(name) == .object(entry))
        try hold("it names the program", tool.words(of: .object(entry)) == [program] + arguments)
        try hold("comments stay when one is added", comments(of: list.bytes) == former)
        let again = try? MCPServerList(reading: list.bytes, member: member)
        try hold("the result can be read", again == list)
        list.setProgram(of: name, to: other)
        try hold("the entry has the other program", list.entry(name).flatMap(tool.words) == [other] + arguments)
        try hold("comments stay when the program is replaced", comments(of: list.bytes) == former)
        list.setProgram(of: name, to: program)
        try hold("the former program gives the former text", list == again)
        list.remove(name)
        try hold("the entry is removed", list.entry(name) == nil)
        try hold("comments stay when one is removed", comments(of: list.bytes) == former)
        let left = try? MCPServerList(reading: list.bytes, member: member)
        try hold("what is left can be read", left == list)
    }

    private static func check(codex text: [UInt8]) throws {
        var list = CodexServerList(reading: text)
        guard !list.mentions(name) else { return }
        list.add(name, program, arguments)
        try hold("the table is added", list.has(name, program, arguments) && list.bytes.starts(with: text))
        if String(validating: list.bytes, as: UTF8.self) != nil, list.servers.contains(where: { $0.name == name }) {
            let added = list
            list.setProgram(of: name, to: other)
            try hold("the table has the other program", list.has(name, other, arguments))
            list.setProgram(of: name, to: program)
            try hold("the former program gives the former table", list == added)
        }
        list.remove(name, program, arguments)
        let end = [[], Array("\n".utf8)]
        try hold("only the table is removed", end.contains { list.bytes == text + $0 })
    }

    /// The comments of a text that is JSON with comments, in order.
    private static func comments(of bytes: [UInt8]) -> [[UInt8]] { MCPServerList.comments(of: bytes) }
}
