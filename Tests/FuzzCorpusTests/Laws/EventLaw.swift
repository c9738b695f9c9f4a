@testable import RingbackClient

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
