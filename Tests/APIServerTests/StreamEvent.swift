import StrictJSON
import Testing

/// One server-sent event.
struct StreamEvent {
    var name = ""
    var id: String?
    var data = JSON.null

    /// What a piece of a stream says; comments say nothing.
    static func all(in piece: [UInt8]?) throws -> [StreamEvent] {
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
            return event
        }
    }
}
