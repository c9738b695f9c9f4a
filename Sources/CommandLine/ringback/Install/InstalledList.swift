import Glibc
import RingbackClient

/// The list of what `ringback install` put where. A file that is not in the list, or was changed since, is neither
/// replaced nor removed.
struct InstalledList {
    /// A file as it was put there.
    struct File: Equatable {
        let size: Int
        /// Nanoseconds since 1970.
        let modifiedAt: Int
    }

    private static let head = "ringback install 1"

    let path: String
    private(set) var prefix: String?
    private(set) var files: [String: File] = [:]
    /// Symbolic links, and what they lead to.
    private(set) var links: [String: String] = [:]
    /// Directories that did not exist before, in the order in which they were made.
    private(set) var directories: [String] = []

    /// - Throws: if the file is not such a list.
    init(path: String) throws(RingbackError) {
        self.path = path
        guard let bytes = try HomeFile.contents(of: path) else { return }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        guard lines.first.map(String.init) == InstalledList.head, lines.dropFirst().allSatisfy({ read($0) }) else {
            throw RingbackError("install_failed", "\(path) is not a list of ringback install. Move it away.")
        }
    }

    var isEmpty: Bool { paths.isEmpty && directories.isEmpty }

    /// Files and links.
    var paths: [String] { (Array(files.keys) + Array(links.keys)).sorted() }

    /// True if the file or link is as it was installed.
    func holds(_ path: String) -> Bool {
        if let target = links[path] { return HomeFile.target(of: path) == target }
        guard let noted = files[path] else { return false }
        return HomeFile.state(of: path) == noted
    }

    mutating func note(_ path: String) { files[path] = HomeFile.state(of: path) }
    mutating func note(link: String, to target: String) { links[link] = target }
    mutating func note(directory: String) { directories.append(directory) }
    mutating func forget(_ path: String) { files[path] = nil }

    mutating func begin(prefix: String) { self.prefix = prefix }

    /// Writes the list. Its own directory must exist.
    func save() throws(RingbackError) {
        var lines = [InstalledList.head] + (prefix.map { ["prefix \($0)"] } ?? [])
        lines += directories.map { "directory \($0)" }
        lines += files.sorted { $0.key < $1.key }.map { "file \($0.value.size) \($0.value.modifiedAt) \($0.key)" }
        lines += links.sorted { $0.key < $1.key }.map { "link \($0.value) \($0.key)" }
        try HomeFile.put(Array((lines.joined(separator: "\n") + "\n").utf8), at: path, mode: 0o600)
    }

    private mutating func read(_ line: Substring) -> Bool {
        let words = line.split(separator: " ", maxSplits: 1)
        guard words.count == 2 else { return false }
        switch words[0] {
        case "prefix": prefix = String(words[1])
        case "directory": directories.append(String(words[1]))
        case "file":
            let parts = words[1].split(separator: " ", maxSplits: 2)
            guard parts.count == 3, let size = Int(parts[0]), let modifiedAt = Int(parts[1]), parts[2].hasPrefix("/")
            else { return false }
            files[String(parts[2])] = File(size: size, modifiedAt: modifiedAt)
        case "link":
            // The targets that are written have no spaces.
            let parts = words[1].split(separator: " ", maxSplits: 1)
            guard parts.count == 2, parts[1].hasPrefix("/") else { return false }
            links[String(parts[1])] = String(parts[0])
        default: return false
        }
        return true
    }
}
