import Adapters
import RingbackClient

/// The list of the entries that `ringback setup` added to docker's `config.json`, of the lines and elements that it added to
/// other files, and of the links that it made. `--undo` removes only these. The list is the file `setup` in
/// `$XDG_DATA_HOME/ringback`.
struct SetupRecord {
    private let path: String
    var entries = SetupEntries()

    /// - Throws: `setup_failed` if the file is not such a list; `no_place` without a home.
    init() throws(RingbackError) {
        func stated(_ name: String) -> String? { SocketPlace.variable(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
        guard let data = stated("XDG_DATA_HOME") ?? stated("HOME").map({ $0 + "/.local/share" }) else {
            throw RingbackError("no_place", "HOME is not the absolute path of a directory.")
        }
        path = data + "/ringback/setup"
        guard let bytes = try HomeFile.contents(of: path) else { return }
        guard let entries = SetupEntries(reading: bytes) else {
            throw RingbackError(
                "setup_failed", "\(path) is not a list of ringback setup. Nothing was changed. Move it away.")
        }
        self.entries = entries
    }

    func write() throws(RingbackError) {
        _ = try HomeFile.makeDirectories(SetupStep.folder(of: path))
        try HomeFile.put(entries.bytes, at: path, mode: 0o600)
    }
}
