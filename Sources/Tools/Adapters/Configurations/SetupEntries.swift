/// What `ringback setup` has written where a tool's configuration cannot say it: lines of text, the first of which names
/// the format.
public struct SetupEntries: Sendable, Equatable {
    private static let head = "ringback setup 1"

    /// The lines after the first.
    private var lines: Set<String> = []

    public init() {}

    /// Nil for a file that is not such a list.
    public init?(reading bytes: [UInt8]) {
        guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
        // By bytes: as text, a carriage return and a line break are one character.
        let lines = bytes.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
        guard lines.first == SetupEntries.head else { return nil }
        self.lines = Set(lines.dropFirst())
    }

    public var bytes: [UInt8] {
        Array(([SetupEntries.head] + lines.sorted()).map { $0 + "\n" }.joined().utf8)
    }

    public mutating func add(registry: String, of file: String) { lines.insert(SetupEntries.line(registry, file)) }
    public mutating func add(link: String) { lines.insert("link \(link)") }

    /// A file that did not exist before, with the directories that were made for it, the outermost first.
    public mutating func add(file: String, in directories: [String]) {
        lines.insert("file \(file)")
        for directory in directories { lines.insert("directory \(directory)") }
    }

    public func has(file: String) -> Bool { lines.contains("file \(file)") }

    /// - Returns: the directories above the file that were made for it, the innermost first; nil for a file that is not in
    ///   the list.
    public mutating func remove(file: String) -> [String]? {
        guard lines.remove("file \(file)") != nil else { return nil }
        var (made, path) = ([String](), file[...])
        while let slash = path.lastIndex(of: "/"), slash > path.startIndex {
            path = path[..<slash]
            guard lines.remove("directory \(path)") != nil else { break }
            made.append(String(path))
        }
        return made
    }

    /// - Returns: false for an entry that is not in the list.
    public mutating func remove(registry: String, of file: String) -> Bool {
        lines.remove(SetupEntries.line(registry, file)) != nil
    }

    /// - Returns: false for a link that is not in the list.
    public mutating func remove(link: String) -> Bool { lines.remove("link \(link)") != nil }

    private static func line(_ registry: String, _ file: String) -> String { "credHelpers \(registry) \(file)" }
}
