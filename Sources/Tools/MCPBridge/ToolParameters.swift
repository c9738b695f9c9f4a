internal import RingbackBase

// A server of 2026-07-28 may want parameters of its tools in header fields too, so that what stands before it can choose
// by them (Streamable HTTP, Custom Headers from Tool Parameters). A client on standard input sends no fields: the bridge
// makes them from the lists of tools that it has passed on.

/// Which parameters of a server's tools are repeated in header fields.
public struct ToolParameters: Sendable {
    /// Why a tool must not be called.
    public struct Refusal: Error, Equatable { let sentence: String }

    private struct Parameter: Sendable {
        /// The names of the members that lead to it.
        let path: [String]
        let field: String
    }

    private enum Rule: Sendable {
        case fields([Parameter])
        case refused(Refusal)
    }

    private static let annotation = "x-mcp-header"
    private static let prefix = "Mcp-Param-"
    private static let types: Set<String> = ["string", "integer", "number", "boolean"]
    /// Fields of one tool.
    static let mostFields = 20
    /// Tools with fields that are remembered.
    static let mostTools = 4_096

    private var rules: [String: Rule] = [:]

    public init() {}

    /// Takes the response to `tools/list`. A tool that was there before has the rule of the newer list.
    public mutating func learn(from response: [UInt8]) {
        // Most servers have no such tool.
        guard !rules.isEmpty || ToolParameters.mentions(response) else { return }
        guard let result = JSONOutline.members(["result"], of: response)?["result"],
            let tools = JSONOutline.members(["tools"], of: response, in: result)?["tools"],
            let list = (try? JSON(parsing: response[tools], maxDepth: 128, maxValues: 1_000_000))?.array
        else { return }
        for tool in list {
            guard let name = tool["name"]?.string else { continue }
            let rule = ToolParameters.rule(of: tool["inputSchema"] ?? .null, tool: name)
            guard rules[name] != nil || rules.count < ToolParameters.mostTools else { continue }
            rules[name] = rule
        }
    }

    private static func mentions(_ bytes: [UInt8]) -> Bool {
        let name = Array(annotation.utf8)
        guard bytes.count >= name.count else { return false }
        return (0...(bytes.count - name.count)).contains { start in
            bytes[start] == name[0] && bytes[start..<(start + name.count)].elementsEqual(name)
        }
    }

    /// Nil for a tool without such parameters.
    private static func rule(of schema: JSON, tool: String) -> Rule? {
        var found: [Parameter] = []
        do throws(Refusal) {
            guard schema[annotation] == nil else { throw refusal(tool, "the whole schema has it") }
            try collect(schema, path: [], tool, into: &found)
        } catch {
            return .refused(error)
        }
        return found.isEmpty ? nil : .fields(found)
    }

    private static func collect(
        _ schema: JSON, path: [String], _ tool: String, into found: inout [Parameter]
    ) throws(Refusal) {
        for member in schema.object?.members ?? [] {
            guard member.name == "properties" else {
                // There is no one parameter that it would be about.
                guard !has(member.value) else { throw refusal(tool, "it stands below \(shown(member.name))") }
                continue
            }
            for property in member.value.object?.members ?? [] {
                let path = path + [property.name]
                if let stated = property.value[annotation] {
                    let field = try field(stated, property.value["type"], tool)
                    guard !found.contains(where: { $0.field.lowercased() == field.lowercased() }) else {
                        throw refusal(tool, "two parameters have the field \(field)")
                    }
                    found.append(Parameter(path: path, field: field))
                    guard found.count <= mostFields else { throw refusal(tool, "there are over \(mostFields)") }
                }
                try collect(property.value, path: path, tool, into: &found)
            }
        }
    }

    private static func field(_ stated: JSON, _ type: JSON?, _ tool: String) throws(Refusal) -> String {
        guard let name = stated.string, FieldRules.isRequested(prefix + name) else {
            throw refusal(tool, "\(shown(stated.string ?? "a value")) is no name of a field")
        }
        guard let type = type?.string, types.contains(type) else {
            throw refusal(tool, "the parameter of \(name) is no text, number or boolean")
        }
        return prefix + name
    }

    /// True if the member is anywhere in the value.
    private static func has(_ value: JSON) -> Bool {
        if let members = value.object?.members {
            return members.contains { $0.name == annotation || has($0.value) }
        }
        return value.array?.contains(where: has) ?? false
    }

    private static func refusal(_ tool: String, _ reason: String) -> Refusal {
        Refusal(
            sentence: "The tool \(shown(tool)) is not called: its \(annotation) is not as MCP wants it: \(reason). "
                + "Only the server's operator can correct that.")
    }

    private static func shown(_ text: String) -> String { "“\(text.prefix(100))”" }

    /// The fields of a call; none for what is no call, or of a tool without such parameters. Throws if the tool's
    /// schema is not as it must be, or a value is too long for a field.
    func fields(of message: Message) throws(Refusal) -> [HTTPFields.Field] {
        guard message.method == "tools/call", let tool = message.subject, let rule = rules[tool] else { return [] }
        switch rule {
        case .refused(let refusal): throw refusal
        case .fields(let parameters):
            var fields: [HTTPFields.Field] = []
            var count = 0
            for parameter in parameters {
                guard let value = ToolParameters.value(at: parameter.path, of: message) else { continue }
                count += value.utf8.count
                // All of them go in one line to the relay.
                guard count <= 16_384, FieldRules.isValue(value) else {
                    throw Refusal(
                        sentence:
                            "The tool \(ToolParameters.shown(tool)) is not called: \(parameter.field) is too long "
                            + "for a header field.")
                }
                fields.append(.init(parameter.field, value))
            }
            return fields
        }
    }

    /// The parameter as a field's value; nil if there is none, or none that a field can have.
    private static func value(at path: [String], of message: Message) -> String? {
        let bytes = message.bytes
        var range: Range<Int>? = bytes.indices
        for name in ["params", "arguments"] + path {
            range = range.flatMap { JSONOutline.members([name], of: bytes, in: $0)?[name] }
        }
        guard let range else { return nil }
        if bytes[range.lowerBound] == UInt8(ascii: "\"") {
            // What cannot be read as a text is too long for a field, too.
            return JSONOutline.text(range, of: bytes).map(FieldRules.value) ?? String(repeating: "x", count: 16_385)
        }
        guard range.count <= 400, let json = try? JSON(parsing: bytes[range]) else { return nil }
        switch json {
        case .bool, .integer, .double: return String(decoding: bytes[range], as: UTF8.self)
        default: return nil
        }
    }
}

extension Message {
    /// The fields that repeat what the message states, so that proxies in front of the server can route by them. Throws
    /// if the tool's parameters cannot be repeated.
    func statedFields(_ parameters: ToolParameters) throws(ToolParameters.Refusal) -> [HTTPFields.Field] {
        let stated = [("MCP-Protocol-Version", statedVersion), ("Mcp-Method", method), ("Mcp-Name", subject)]
        let fields = stated.compactMap { name, text in
            text.map { HTTPFields.Field(name, FieldRules.value($0)) }
        }
        return try fields + parameters.fields(of: self)
    }
}
