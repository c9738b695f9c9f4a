public import RingbackBase

/// A request of an exposed socket's program, as it is sent to the server: every field is chosen here.
public struct RestrictedRequest: Sendable, Equatable {
    public let method: String
    public let fields: [HTTPFields.Field]
    public let body: [UInt8]
    /// The request that waits for a response.
    public let id: MessageID?
    public let listsTools: Bool

    public enum Refusal: Error, Sendable, Equatable {
        case rule(MessageRule.Refusal)
        /// The server has no such session of this socket. The client is told HTTP 404, as by a server that forgot a
        /// session: it begins a new one.
        case unknownSession
        /// A stream of no session of this socket. The client is told HTTP 405, as by a server without such streams.
        case noStream
    }

    /// - Parameters:
    ///   - asked: its fields except session, event and revision are not used.
    ///   - parameters: learned from the server's lists of tools.
    public init(
        _ asked: RelayRequest, body: [UInt8], _ rule: MessageRule, _ ids: BoundIDs, _ parameters: ToolParameters
    ) throws(Refusal) {
        var fields: [HTTPFields.Field] = []
        func field(_ name: String) -> String? { asked.fields.first { $0.name.lowercased() == name }?.value }
        if let bound = field("mcp-session-id") {
            guard let id = ids.unbind(bound, .session) else { throw .unknownSession }
            fields.append(.init("Mcp-Session-Id", id))
        }
        method = asked.method
        guard asked.method == "POST" else {
            if let bound = field("last-event-id") {
                guard let id = ids.unbind(bound, .event) else { throw .noStream }
                fields.append(.init("Last-Event-ID", id))
            }
            // Without either the server could send what belongs to others.
            guard !fields.isEmpty, asked.method == "GET" || field("mcp-session-id") != nil else { throw .noStream }
            if asked.method == "GET" { fields.append(.init("Accept", "text/event-stream")) }
            if let version = RestrictedRequest.version(field("mcp-protocol-version")) { fields.append(version) }
            self.fields = fields
            (self.body, id, listsTools) = ([], nil, false)
            return
        }
        let judged: MessageRule.Judged
        do throws(MessageRule.Refusal) { judged = try rule.judge(body) } catch { throw .rule(error) }
        fields += [.init("Accept", "application/json, text/event-stream"), .init("Content-Type", "application/json")]
        if judged.message.statesVersion {
            do throws(ToolParameters.Refusal) {
                fields += try judged.message.statedFields(parameters)
            } catch {
                throw .rule(.init(error.sentence, method: judged.message.method, tool: judged.tool))
            }
        } else if let version = RestrictedRequest.version(field("mcp-protocol-version")) {
            fields.append(version)
        }
        guard fields.allSatisfy({ FieldRules.isRequested($0.name) && FieldRules.isValue($0.value) }) else {
            throw .rule(.init("The message is too long for its header fields.", method: judged.message.method))
        }
        self.fields = fields
        self.body = judged.message.bytes
        listsTools = judged.message.method == "tools/list"
        id = judged.message.request
    }

    private static func version(_ text: String?) -> HTTPFields.Field? {
        guard let text, (1...32).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: "-") })
        else { return nil }
        return .init("MCP-Protocol-Version", text)
    }
}
