import Glibc
import Synchronization

@testable import Configuration

/// Whole configuration files: mistakes have a line and repeat no value, and what is read is read alike twice.
enum ConfigurationLaw {
    /// A value that no message may repeat.
    private static let marker = "hunter2"

    static func check(_ bytes: [UInt8]) throws {
        let lines = 1 + bytes.count { $0 == 0x0A }
        guard let folder, let file = write(bytes, in: folder) else { throw LawBroken(law: "a file can be written") }
        defer { unsafe unlink(file) }
        var place = ConfigurationPlace(
            userFile: file, isExplicit: true, dropInDirectories: [], home: folder, user: getuid())
        let report = ConfigurationReport(of: place)
        try hold("what is read is read alike twice", ConfigurationReport(of: place) == report)
        try hold("there are accounts or errors", report.errors.isEmpty || report.accounts.isEmpty)
        let keysHoldIt = keys(in: bytes).contains { $0.contains(marker) }
        for error in report.errors {
            try hold("an error is of the file", error.file == file)
            try hold("an error is in the file", (1...(lines + 1)).contains(error.line ?? 1))
            try hold("an error is one line", isOneLine(error.description))
            try hold("an error repeats no value", keysHoldIt || !error.message.contains(marker))
        }
        for account in report.accounts {
            let isName = account.name.utf8.allSatisfy { byte in
                (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || "._-".utf8.contains(byte)
            }
            try hold("an account has an account's name", isName && (1...64).contains(account.name.utf8.count))
            try hold("a redirect URI is one line", isOneLine(account.redirectURI))
        }
        place.userFile = nil
        place.candidate = file
        _ = ConfigurationReport(of: place)
    }

    /// How many files were written.
    private static let number = Atomic(0)

    private static func keys(in bytes: [UInt8]) -> [String] {
        func keys(_ members: [TOMLDocument.Member]) -> [String] {
            members.flatMap { member in
                if case .table(let inner) = member.node.value { [member.key] + keys(inner) } else { [member.key] }
            }
        }
        return (try? TOMLDocument(parsing: bytes)).map { keys($0.root) } ?? []
    }

    private static func isOneLine(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    /// Of this process alone; files of a shared directory would not be trusted.
    private static let folder: String? = {
        var template = Array("/tmp/ringback-fuzz-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { return nil }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }()

    /// Writes a file of its own for each check: checks run at the same time.
    private static func write(_ bytes: [UInt8], in folder: String) -> String? {
        let file = "\(folder)/\(number.add(1, ordering: .relaxed).oldValue).toml"
        let descriptor = unsafe open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count ? file : nil
    }
}
