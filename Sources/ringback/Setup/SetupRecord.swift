import RingbackClient

/// The entries that `ringback setup` added to docker's `config.json`, and the links that it made. `--undo` removes only
/// these. The list is the file `setup` in `$XDG_DATA_HOME/ringback`.
struct SetupRecord {
    private static let head = "ringback setup 1"

    private let path: String
    /// The lines after the head.
    private var entries: Set<String> = []

    /// - Throws: `setup_failed` if the file is not such a list; `no_place` without a home.
    init() throws(RingbackError) {
        func stated(_ name: String) -> String? { SocketPlace.variable(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
        guard let data = stated("XDG_DATA_HOME") ?? stated("HOME").map({ $0 + "/.local/share" }) else {
            throw RingbackError("no_place", "HOME is not the absolute path of a directory.")
        }
        path = data + "/ringback/setup"
        guard let bytes = try HomeFile.contents(of: path) else { return }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        guard lines.first == SetupRecord.head else {
            throw RingbackError(
                "setup_failed", "\(path) is not a list of ringback setup. Nothing was changed. Move it away.")
        }
        entries = Set(lines.dropFirst())
    }

    mutating func add(registry: String, of file: String) { entries.insert(SetupRecord.line(registry, file)) }
    mutating func add(link: String) { entries.insert("link \(link)") }

    /// - Returns: false for an entry that is not in the list.
    mutating func remove(registry: String, of file: String) -> Bool {
        entries.remove(SetupRecord.line(registry, file)) != nil
    }

    /// - Returns: false for a link that is not in the list.
    mutating func remove(link: String) -> Bool { entries.remove("link \(link)") != nil }

    func write() throws(RingbackError) {
        _ = try HomeFile.makeDirectories(SetupStep.folder(of: path))
        let lines = [SetupRecord.head] + entries.sorted()
        try HomeFile.put(Array((lines.joined(separator: "\n") + "\n").utf8), at: path, mode: 0o600)
    }

    private static func line(_ registry: String, _ file: String) -> String { "credHelpers \(registry) \(file)" }
}
