internal import Glibc

/// The files of the audit log: the owner's own, and one for each restricted socket. A program at a restricted socket
/// can fill only that socket's file and cannot displace other entries. Used on one queue only.
struct AuditFiles {
    /// Identifies one of the files.
    struct Name: Hashable, Comparable {
        /// The restricted socket; nil for the owner's own file.
        let socket: String?

        /// - Parameter socket: follows the rules of account names, so it is safe in a file name.
        init(_ socket: String?) { self.socket = socket }

        static func < (left: Name, right: Name) -> Bool { (left.socket ?? "") < (right.socket ?? "") }
    }

    private let path: String
    private let maxSize: Int

    /// The maximum number of files of restricted sockets. Beyond it the file with the oldest write is deleted.
    static let most = 64
    /// A restricted socket's file is smaller than the owner's by this factor.
    static let share = 16

    /// - Parameter path: the owner's file. The other files are in the same directory: `audit.jsonl`,
    ///   `audit-NAME.jsonl`.
    init(path: String, maxSize: Int) {
        self.path = path
        self.maxSize = maxSize
    }

    subscript(name: Name) -> AuditFile {
        guard let socket = name.socket else { return AuditFile(path: path, maxSize: maxSize) }
        return AuditFile(path: "\(stem)-\(socket).jsonl", maxSize: maxSize / AuditFiles.share)
    }

    /// Appends complete lines.
    func append(_ lines: [[UInt8]], to name: Name) throws(AuditFile.Failure) {
        let file = self[name]
        let isNew = unsafe name.socket != nil && access(file.path, F_OK) != 0
        try file.append(lines)
        if isNew { forgetOldest() }
    }

    /// The names of the existing files, the owner's first.
    var names: [Name] { [Name(nil)] + sockets.map { Name($0) }.sorted() }

    // MARK: Parts

    private var stem: String { path.hasSuffix(".jsonl") ? String(path.dropLast(6)) : path }

    private var sockets: [String] {
        let slash = path.lastIndex(of: "/")
        let directory = slash.map { String(path[..<$0]) } ?? "."
        let prefix = stem[(slash.map { path.index(after: $0) } ?? path.startIndex)...] + "-"
        guard let stream = unsafe opendir(directory) else { return [] }
        defer { unsafe closedir(stream) }
        var found: [String] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasPrefix(prefix), name.hasSuffix(".jsonl") {
                found.append(String(name.dropFirst(prefix.count).dropLast(6)))
            }
        }
        return found
    }

    private func forgetOldest() {
        let files = sockets.map { self[Name($0)] }
        guard files.count > AuditFiles.most else { return }
        for file in files.sorted(by: { $0.changedAt < $1.changedAt }).prefix(files.count - AuditFiles.most) {
            unsafe unlink(file.path)
            unsafe unlink(file.previousPath)
        }
    }
}

/// The lines of one file that are not written yet.
struct WaitingLines {
    private(set) var lines: [[UInt8]] = []
    /// The number of dropped lines that the file does not report yet.
    private(set) var unreported = 0

    var isEmpty: Bool { lines.isEmpty && unreported == 0 }

    /// Returns false if the line is dropped because there are too many.
    mutating func append(_ line: [UInt8], _ most: Int) -> Bool {
        guard lines.count < most else {
            unreported += 1
            return false
        }
        lines.append(line)
        return true
    }

    /// Removes lines that were written, and dropped lines that were reported.
    mutating func remove(_ count: Int, told: Int) {
        lines.removeFirst(min(count, lines.count))
        unreported -= told
    }
}
