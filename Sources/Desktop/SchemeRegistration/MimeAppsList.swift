public import RingbackBase

/// A `mimeapps.list` (Association between MIME types and applications 1.0): the default handlers of each type. A change
/// touches only the one line; everything else stays byte for byte as the user wrote it.
public struct MimeAppsList: Equatable, Sendable {
    public private(set) var text: String

    private static let group = "[Default Applications]"

    public init(_ text: String) { self.text = text }

    /// The handlers of a scheme's links, highest priority first; nil if the file has no line for the scheme.
    public func defaults(for scheme: URLScheme) -> [String]? { defaults(ofType: DesktopFile.typePrefix + scheme.name) }
    func defaults(ofType type: String) -> [String]? { place(ofType: type).line.map { MimeAppsList.values(lines[$0]) } }

    /// Puts a handler before the existing ones.
    public mutating func prefer(_ handler: String, for scheme: URLScheme) {
        let type = DesktopFile.typePrefix + scheme.name
        let (line, end) = place(ofType: type)
        var lines = lines
        if let line {
            let others = MimeAppsList.values(lines[line]).filter { $0 != handler }
            lines[line] = MimeAppsList.line(type, [handler] + others)
        } else if let end {
            lines.insert(MimeAppsList.line(type, [handler]), at: end)
        } else {
            // The text ends with a line feed, so the last element is empty.
            while lines.last == "" { lines.removeLast() }
            if !lines.isEmpty { lines.append("") }
            lines += [MimeAppsList.group, MimeAppsList.line(type, [handler]), ""]
        }
        text = lines.joined(separator: "\n")
    }

    /// Removes a handler. A line without handlers is removed, and a group that becomes empty by that too.
    public mutating func remove(_ handler: String, for scheme: URLScheme) {
        let type = DesktopFile.typePrefix + scheme.name
        guard let line = place(ofType: type).line else { return }
        var lines = lines
        let values = MimeAppsList.values(lines[line])
        guard values.contains(handler) else { return }
        let others = values.filter { $0 != handler }
        if others.isEmpty {
            lines.remove(at: line)
            MimeAppsList.removeGroup(endingBefore: line, in: &lines)
        } else {
            lines[line] = MimeAppsList.line(type, others)
        }
        text = lines.joined(separator: "\n")
    }

    /// True if the text has only white space, so that the file can be deleted.
    public var isBlank: Bool { text.utf8.allSatisfy { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 } }
    private var lines: [String] { DesktopFile.lines(of: text).map(String.init) }

    /// The index of a type's line in the group of defaults, and the index at which a new one is inserted; nil without
    /// the group.
    private func place(ofType type: String) -> (line: Int?, end: Int?) {
        var isDefaults = false
        var end: Int?
        for (number, line) in lines.enumerated() {
            if line.hasPrefix("[") {
                isDefaults = line.hasPrefix(MimeAppsList.group)
                if isDefaults { end = end ?? number + 1 }
            } else if isDefaults {
                if line.hasPrefix(type + "=") { return (number, end) }
                // After the group's last line with a value.
                if line.contains("=") { end = number + 1 }
            }
        }
        return (nil, end)
    }

    private static func values(_ line: String) -> [String] {
        let value = line[line.index(after: line.firstIndex(of: "=") ?? line.startIndex)...]
        return value.split(separator: ";").map { name in String(name.filter { $0 != "\r" && $0 != " " }) }
            .filter { !$0.isEmpty }
    }

    private static func line(_ type: String, _ handlers: [String]) -> String {
        "\(type)=\(handlers.joined(separator: ";"));"
    }

    private static func removeGroup(endingBefore line: Int, in lines: inout [String]) {
        guard line > 0, lines[line - 1].hasPrefix(group) else { return }
        // The group is removed only if another group or the end follows. Otherwise it still has lines, for example
        // comments.
        guard let next = lines[line...].first(where: { !$0.isEmpty }) else {
            lines.removeSubrange((line - 1)...)
            while lines.last == "" { lines.removeLast() }
            if !lines.isEmpty { lines.append("") }
            return
        }
        if next.hasPrefix("[") { lines.remove(at: line - 1) }
    }
}
