import RingbackAPI
import RingbackBase

@testable import RingbackClient

/// What apps make of the daemon's JSON: nothing of it traps, a problem says the same when it is written again, and no
/// description shows a token.
enum ResourceLaw {
    /// A token that nothing else of an input looks like.
    private static let token = "Zq7-never-shown-4kX"

    static func check(_ bytes: [UInt8]) throws {
        guard let json = try? JSON(parsing: bytes) else { return }
        let problem = Problem(reading: json, status: 400)
        try hold("what is written is read as the same", Problem(reading: problem.json, status: 400) == problem)
        let error = RingbackError(problem)
        try hold("an error has a kind and words", !"\(error)".isEmpty && error.kind.rawValue == problem.code.rawValue)
        _ = try? Account(reading: json)
        _ = try? DaemonStatus(reading: json)
        if let flow = Flow(reading: json) {
            let isOver = flow.status != .pending && flow.status != .completed
            try hold("a sign-in that failed says why", (flow.failure != nil) == isOver)
        }
        guard var object = json.object else { return }
        object["access_token"] = .string(token)
        let session = try Session(reading: .object(object))
        var shown = "\(session)" + String(reflecting: session)
        dump(session, to: &shown)
        let isElsewhere = object.members.contains { $0.name != "access_token" && $0.value.text.contains(token) }
        try hold("no description shows a token", isElsewhere || !shown.contains(token))
        try hold("a request carries it", session.authorization.hasSuffix(" \(token)"))
    }
}

/// Server-sent events: how the bytes are cut changes nothing, and another reader, which knows bytes only, sees the same.
enum EventLaw {
    static func check(_ bytes: [UInt8]) throws {
        var whole = ServerSentEvents()
        guard let events = try? whole.append(bytes) else { return }
        var cut = ServerSentEvents()
        var pieces: [ServerSentEvents.Event] = []
        for byte in bytes { pieces += try cut.append([byte]) }
        try hold("how the bytes are cut changes nothing", pieces == events)
        try hold("the events are the stream's", read(bytes) == events)
        try hold("where it is resumed is where it was cut", cut.lastID == whole.lastID && cut.retry == whole.retry)
        var text = ""
        for event in events {
            try hold("an event has a name", !event.name.isEmpty)
            for value in [event.id ?? "", event.name] {
                try hold("an id and a name are one line", !value.utf8.contains { $0 == 10 || $0 == 13 })
            }
            try hold("an id can be a field", event.id?.utf8.contains(0) != true)
            text += event.id.map { "id: \($0)\n" } ?? ""
            text += "event: \(event.name)\n"
            for line in event.data.utf8.split(separator: 10, omittingEmptySubsequences: false) {
                text += "data: \(Substring(line))\n"
            }
            text += "\n"
        }
        var reader = ServerSentEvents()
        try hold("what is written is read as the same", reader.append(Array(text.utf8)) == events)
    }

    /// WHATWG HTML section 9.2.6, by bytes.
    private static func read(_ bytes: [UInt8]) -> [ServerSentEvents.Event] {
        var events: [ServerSentEvents.Event] = []
        var id: String?
        var name = ""
        var data: [String] = []
        for line in lines(bytes) {
            guard !line.isEmpty else {
                if !data.isEmpty {
                    let event = name.isEmpty ? "message" : name
                    events.append(.init(id: id, name: event, data: data.joined(separator: "\n")))
                }
                (name, data) = ("", [])
                continue
            }
            let colon = line.firstIndex(of: UInt8(ascii: ":"))
            var value = colon.map { line[($0 + 1)...] } ?? []
            if value.first == 0x20 { value = value.dropFirst() }
            let text = String(decoding: value, as: UTF8.self)
            switch String(decoding: line[..<(colon ?? line.endIndex)], as: UTF8.self) {
            case "id": if !value.contains(0) { id = text }
            case "event": name = text
            case "data": data.append(text)
            default: break
            }
        }
        return events
    }

    /// Without the last line, which has not ended.
    private static func lines(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var lines: [ArraySlice<UInt8>] = []
        // A byte order mark at the start is no part of the first line.
        var start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        var index = start
        while index < bytes.count {
            let byte = bytes[index]
            guard byte == 10 || byte == 13 else {
                index += 1
                continue
            }
            lines.append(bytes[start..<index])
            index += byte == 13 && index + 1 < bytes.count && bytes[index + 1] == 10 ? 2 : 1
            start = index
        }
        return lines
    }
}

/// HTTP answers as apps read them: how the bytes were cut on their way changes nothing, a body has one end, and what is
/// written is read as the same.
enum HTTPAnswerLaw {
    private struct Outcome: Equatable {
        var status: Int?
        var fields: [String] = []
        var body: [UInt8] = []
        var failure: RingbackError.Kind?
    }

    static func check(_ bytes: [UInt8]) throws {
        let whole = try outcome(of: [bytes[...]])
        let step = 1 + bytes.count % 7
        let pieces = stride(from: 0, to: bytes.count, by: step).map { bytes[$0..<min($0 + step, bytes.count)] }
        try hold("how the bytes are cut changes nothing", outcome(of: pieces) == whole)
        try hold("a body is no longer than its answer", whole.body.count <= bytes.count)
        guard whole.failure == nil else {
            return try hold("a fault is named", [.badResponse, .noDaemon].contains(whole.failure))
        }
        try checkWriting(of: whole)
    }

    private static func outcome(of pieces: [ArraySlice<UInt8>]) throws -> Outcome {
        var outcome = Outcome()
        var reader = HTTPResponseReader()
        var rest = pieces[...]
        while true {
            let step: HTTPResponseReader.Step
            do throws(RingbackError) {
                step = try reader.next()
            } catch {
                outcome.failure = error.kind
                return outcome
            }
            switch step {
            case .head(let head):
                try hold("there is one head, and it comes first", outcome.status == nil && outcome.body.isEmpty)
                try check(head)
                outcome.status = head.status
                outcome.fields = head.fields.map { "\($0.name): \($0.value)" }
            case .piece(let piece):
                try hold("a piece is something, of an answer", !piece.isEmpty && outcome.status != nil)
                outcome.body += piece
            case .end:
                try hold("an answer has a head", outcome.status != nil)
                return outcome
            case .needsMore:
                if let piece = rest.popFirst() { reader.append(Array(piece)) } else { reader.close() }
            }
        }
    }

    private static func check(_ head: HTTPExchange.Head) throws {
        try hold("a status is a final one", (200...999).contains(head.status))
        for field in head.fields {
            let (name, value) = (field.name, field.value)
            try hold(
                "a name is a word of small letters", !name.isEmpty && name.isPrintableASCII && name == name.lowercased()
            )
            try hold("a name has no space and no colon", !name.utf8.contains { $0 == 0x20 || $0 == 0x3A })
            try hold("a value is one line", value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
            try hold("a value has no space around it", value.utf8.first != 0x20 && value.utf8.last != 0x20)
        }
        guard head.status != 204, head.status != 304 else { return }
        let codings = head.all("transfer-encoding")
        let lengths = head.all("content-length")
        try hold("a body has one end", codings.isEmpty || lengths.isEmpty)
        try hold("chunks are the only coding", codings.allSatisfy { $0.utf8.count == 7 } && codings.count <= 1)
        try hold("a length is digits", lengths.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
        try hold("lengths agree", lengths.allSatisfy { $0 == lengths[0] })
    }

    /// The same body by its length and in chunks.
    private static func checkWriting(of answer: Outcome) throws {
        guard let status = answer.status, status != 204, status != 304 else { return }
        let fields = answer.fields.filter { !$0.hasPrefix("content-length:") && !$0.hasPrefix("transfer-encoding:") }
        let head = "HTTP/1.1 \(status) \r\n" + fields.map { "\($0)\r\n" }.joined()
        // A head just short of its end would have none with one field more.
        guard head.utf8.count < HTTPResponseReader.maxHead - 64 else { return }
        let byLength = Array("\(head)Content-Length: \(answer.body.count)\r\n\r\n".utf8) + answer.body
        var inChunks = Array("\(head)Transfer-Encoding: chunked\r\n\r\n".utf8)
        for start in stride(from: 0, to: answer.body.count, by: 100) {
            let chunk = answer.body[start..<min(start + 100, answer.body.count)]
            inChunks += Array("\(String(chunk.count, radix: 16));x=\(start)\r\n".utf8) + chunk + [13, 10]
        }
        inChunks += Array("0\r\nX-Trailer: y\r\n\r\n".utf8)
        for written in [byLength, byLength + [0x58], inChunks, inChunks + [0x58]] {
            let again = try outcome(of: [written[...]])
            try hold("what is written is read as the same", again.body == answer.body && again.failure == nil)
            try hold("and the head too", again.status == status && Array(again.fields.dropLast()) == fields)
        }
        for written in [byLength, inChunks] {
            let again = try outcome(of: [written.dropLast()[...]])
            try hold("what is cut off is not whole", again.failure == .badResponse)
        }
    }
}
