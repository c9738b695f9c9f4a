import Glibc
import HTTPMessages
import RingbackClient
import Terminal

/// One change of a file or of a tool's configuration.
enum SetupStep {
    case link(path: String, target: String)
    case removeLink(path: String)
    case command([String])
    /// Replaces a file that had the former bytes, or was not there; the text says what of it changes.
    case replace(path: String, former: [UInt8]?, [UInt8], text: String)
    /// Removes a file that has these bytes, and the directories if nothing is in them, the innermost first.
    case removeFile(path: String, [UInt8], directories: [String])
    /// Gives the table of an origin these certificate authorities, and lets a running daemon read it.
    case allowAuthorities(OriginEntry, [String])

    /// The change, as it is shown before it is made.
    var text: String {
        switch self {
        case .link(let path, let target): SetupStep.line(["ln", "-s", target, path])
        case .removeLink(let path): SetupStep.line(["rm", path])
        case .command(let words): SetupStep.line(words)
        case .replace(_, _, _, let text): text
        case .removeFile(let path, _, _): SetupStep.line(["rm", path])
        case .allowAuthorities(let origin, let digests):
            "\(origin.source.text): \(origin.rule.pattern.text): ca_sha256 = \(SetupStep.array(digests))"
        }
    }

    /// Makes the change.
    func run() throws(RingbackError) {
        switch self {
        case .link(let path, let target):
            _ = try HomeFile.makeDirectories(SetupStep.folder(of: path))
            guard unsafe symlink(target, path) == 0 else { throw HomeFile.failure("make", path) }
        case .removeLink(let path):
            // The question before may have taken long.
            guard Programs.isSelf(path), HomeFile.state(of: path) == nil else {
                throw RingbackError("setup_failed", "\(path) is no link to this program any more. It was left.")
            }
            guard unsafe unlink(path) == 0 else { throw HomeFile.failure("remove", path) }
        case .command(let words):
            let (status, _) = try Programs.run(words)
            guard status == 0 else {
                throw RingbackError(
                    "setup_failed", "\(text) ended with status \(status). What comes before it was done.")
            }
        case .replace(let path, let former, let bytes, _): try SetupStep.write(bytes, to: path, former: former)
        case .removeFile(let path, let bytes, let directories):
            guard try HomeFile.contents(of: path) == bytes else { return }
            guard unsafe unlink(path) == 0 else { throw HomeFile.failure("remove", path) }
            for directory in directories where unsafe rmdir(directory) != 0 { break }
        case .allowAuthorities(let origin, let digests): try SetupStep.allow(digests, for: origin)
        }
    }

    private static func array(_ texts: [String]) -> String {
        texts.count == 1
            ? AccountText.quoted(texts[0]) : "[\(texts.map(AccountText.quoted).joined(separator: ", "))]"
    }

    private static func allow(_ digests: [String], for origin: OriginEntry) throws(RingbackError) {
        let file = try ConfigurationFile(stated: origin.source.file)
        var lines = ConfigurationLines(try file.text() ?? [])
        guard let line = origin.source.line,
            lines.set("ca_sha256", to: array(digests), inTable: OriginEntry.header, atLine: line)
        else {
            throw RingbackError(
                "origin_elsewhere",
                "The origin \(origin.rule.pattern.text) is in \(origin.source.text), in a form that this command does not "
                    + "change. Edit the file: ca_sha256 = \(array(digests))")
        }
        try file.replace(with: lines.text) { report in
            let changed = OriginEntry.all(in: report).first { $0.rule == origin.rule }
            return changed?.authorities == Set(digests)
        }
        try Daemon.calls(socket: nil).reloadIfRunning()
    }

    /// Replaces a file by renaming. A symbolic link stays, and its file is replaced.
    private static func write(_ bytes: [UInt8], to path: String, former: [UInt8]?) throws(RingbackError) {
        guard try HomeFile.contents(of: path) == former else {
            throw RingbackError("setup_failed", "\(path) was changed meanwhile. Nothing was changed. Run this again.")
        }
        guard former != nil else {
            guard !HomeFile.exists(path) else {
                throw RingbackError(
                    "place_taken", "\(path) is a link to a file that does not exist. Nothing was changed.")
            }
            _ = try HomeFile.makeDirectories(folder(of: path))
            return try HomeFile.put(bytes, at: path, mode: 0o600)
        }
        var status = stat()
        guard unsafe stat(path, &status) == 0, let file = unsafe realpath(path, nil) else {
            throw HomeFile.failure("read", path)
        }
        defer { unsafe free(file) }
        try HomeFile.put(bytes, at: unsafe String(cString: file), mode: status.st_mode & 0o777)
    }

    static func folder(of path: String) -> String { String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) }

    private static func line(_ words: [String]) -> String {
        ShownCommand(words: words).description
    }
}
