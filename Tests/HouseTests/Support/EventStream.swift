import RingbackBase
import TestSupport
import Testing

extension Stage {
    /// Listens to a stream. The daemon has begun it: what happens from now on is in it.
    func listen(to target: String) async throws -> EventStream {
        let document = try await api("GET", "/v1/openapi.json").json
        let connection = try connect()
        await connection.send(Stage.request("GET", target))
        let head = AnswerHead(try await connection.read(through: "\r\n\r\n"))
        #expect(head.status == 200 && head.fields["content-type"] == "text/event-stream")
        let path = String(target.prefix { $0 != "?" })
        return EventStream(connection: connection, path: path, schema: JSONSchema(document: document))
    }
}

/// The events of a stream, in order, each held to the daemon's own description of it.
struct EventStream {
    let connection: Connection
    let path: String
    let schema: JSONSchema

    /// The next event's fields: `event`, `data`, and perhaps `id`.
    func next(sourceLocation: SourceLocation = #_sourceLocation) async throws -> JSON {
        _ = try await connection.read(through: "event: ")
        var fields = JSONObject([.init("event", .string(try await line()))])
        while fields["data"] == nil {
            let line = try await line()
            if line.hasPrefix("id: ") {
                fields["id"] = .string(String(line.dropFirst(4)))
            } else {
                try #require(line.hasPrefix("data: "), sourceLocation: sourceLocation)
                fields["data"] = try JSON(parsing: Array(line.utf8.dropFirst(6)))
            }
        }
        let mistakes = schema.mistakes(ofEvent: .object(fields), onStream: path)
        #expect(mistakes == [], "\(JSON.object(fields).text)", sourceLocation: sourceLocation)
        return .object(fields)
    }

    /// The events up to the next one of this name, with it.
    func upTo(_ name: String, sourceLocation: SourceLocation = #_sourceLocation) async throws -> [JSON] {
        var events: [JSON] = []
        repeat {
            events.append(try await next(sourceLocation: sourceLocation))
        } while events.last?["event"]?.string != name
        return events
    }

    /// The data of the next event of this name; what comes before it is passed over.
    func next(_ name: String, sourceLocation: SourceLocation = #_sourceLocation) async throws -> JSON {
        try #require(try await upTo(name, sourceLocation: sourceLocation).last?["data"])
    }

    private func line() async throws -> String {
        String(try await connection.read(through: "\n").dropLast())
    }
}
