internal import StrictJSON
internal import Terminal

/// What a server says of a failure, as one short line: in JSON of many forms, in a page, or as text.
enum ServerReason {
    /// Bytes that are read.
    private static let maxBytes = 65_536
    /// The most specific member first.
    private static let members = [
        "error_description", "detail", "message", "msg", "errorSummary", "description", "reason", "error", "title",
        "errors",
    ]

    /// Nil if the body says nothing.
    static func text(of body: [UInt8]) -> String? {
        let start = Array(body.prefix(maxBytes))
        let found: String? =
            if let json = try? JSON(parsing: start) {
                text(of: json, depth: 0)
            } else {
                plain(String(decoding: start, as: UTF8.self))
            }
        let words = (found ?? "").split(whereSeparator: \.isWhitespace).joined(separator: " ")
        let line = Sanitizer.line(words, limit: 300)
        return line.isEmpty ? nil : line
    }

    private static func text(of json: JSON, depth: Int) -> String? {
        if let text = json.string { return text.allSatisfy(\.isWhitespace) ? nil : text }
        guard depth < 4 else { return nil }
        if let list = json.array { return list.prefix(4).lazy.compactMap { text(of: $0, depth: depth + 1) }.first }
        return members.lazy.compactMap { name in json[name].flatMap { text(of: $0, depth: depth + 1) } }.first
    }

    /// The title of a page, or the text itself.
    private static func plain(_ text: String) -> String? {
        guard text.first(where: { !$0.isWhitespace }) == "<" else { return text }
        let lower = text.lowercased()
        // Lowercasing changes the length of a few letters; then there is no title.
        guard lower.utf8.count == text.utf8.count else { return nil }
        for name in ["title", "h1"] {
            guard let tag = lower.firstRange(of: "<\(name)"), let begin = lower[tag.upperBound...].firstIndex(of: ">"),
                let end = lower[begin...].firstRange(of: "</\(name)")
            else { continue }
            let inside = text.utf8.dropFirst(lower.utf8.distance(from: lower.startIndex, to: begin) + 1)
            return String(
                decoding: inside.prefix(lower.utf8.distance(from: begin, to: end.lowerBound) - 1), as: UTF8.self)
        }
        return nil
    }
}
