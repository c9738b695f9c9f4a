import RingbackBase
import TestSupport
import Testing

@testable import APIServer

/// One server-sent event.
struct StreamEvent {
    var name = ""
    var id: String?
    var data = JSON.null

    private var fields: JSON {
        var object = JSONObject([.init("event", .string(name)), .init("data", data)])
        object["id"] = id.map { .string($0) }
        return .object(object)
    }

    /// What a piece of a stream says, which the OpenAPI document describes; comments say nothing.
    static func all(in piece: [UInt8]?, on path: String = "/v1/events") throws -> [StreamEvent] {
        let schema = JSONSchema(document: OpenAPIDocument.document(version: ""))
        let text = String(decoding: try #require(piece), as: UTF8.self)
        #expect(text.hasSuffix("\n\n"))
        return try text.split(separator: "\n\n").filter { !$0.hasPrefix(":") }.map { block in
            var event = StreamEvent()
            for line in block.split(separator: "\n") {
                let parts = line.split(separator: ": ", maxSplits: 1).map(String.init)
                switch parts[0] {
                case "event": event.name = parts[1]
                case "id": event.id = parts[1]
                case "data": event.data = try JSON(parsing: Array(parts[1].utf8))
                default: Issue.record("a line \(line)")
                }
            }
            #expect(schema.mistakes(ofEvent: event.fields, onStream: path) == [])
            return event
        }
    }
}
