import Glibc
import Testing

@testable import Records

@Suite struct `The file of the audit log` {
    private func append(_ text: String, to file: AuditFile) throws(AuditFile.Failure) {
        try file.append([Array(text.utf8)])
    }

    @Test func `is the user's alone, whoever made it`() throws {
        let folder = try Folder()
        let file = AuditFile(path: folder.file, maxSize: 1_000)
        try append("{}\n", to: file)
        #expect(folder.mode() == 0o600)
        unsafe chmod(folder.file, 0o644)
        try append("{}\n", to: file)
        #expect(folder.mode() == 0o600)
        #expect(folder.text() == "{}\n{}\n")
    }

    @Test func `makes room at its bound and keeps one older file`() throws {
        let folder = try Folder()
        let file = AuditFile(path: folder.file, maxSize: 100)
        for number in 0..<50 { try append("{\"number\":\(number)}\n", to: file) }
        #expect(folder.size(of: "audit.jsonl") <= 100)
        #expect(folder.size(of: "audit.jsonl.1") <= 100)
        #expect(folder.mode(of: "audit.jsonl.1") == 0o600)
        #expect(folder.lines().last == "{\"number\":49}")
        // The two are neighbours: nothing between them is missing.
        let numbers = (folder.lines(of: "audit.jsonl.1") + folder.lines()).compactMap {
            Int($0.dropFirst(10).dropLast())
        }
        #expect(numbers == Array((50 - numbers.count)..<50))
        #expect(String(decoding: file.contents(), as: UTF8.self) == folder.text(of: "audit.jsonl.1") + folder.text())
    }

    @Test func `ends a line that was cut before it goes on`() throws {
        let folder = try Folder()
        try folder.put("{\"a\":1}\n{\"b\":")
        try append("{\"c\":3}\n", to: AuditFile(path: folder.file, maxSize: 1_000))
        #expect(folder.lines() == ["{\"a\":1}", "{\"b\":", "{\"c\":3}"])
    }

    @Test func `is no link, no pipe and no directory`() throws {
        let folder = try Folder()
        let file = AuditFile(path: folder.file, maxSize: 1_000)
        try folder.put("mine", in: "target")
        unsafe symlink("\(folder.path)/target", folder.file)
        #expect(throws: AuditFile.Failure(call: "open", errno: ELOOP)) { try append("{}\n", to: file) }
        #expect(folder.text(of: "target") == "mine")
        unsafe unlink(folder.file)
        unsafe mkfifo(folder.file, 0o600)
        #expect(throws: AuditFile.Failure.self) { try append("{}\n", to: file) }
        #expect(file.contents().isEmpty)
    }

    @Test func `says what a full disk left`() {
        // Not a file, so it is refused before a byte is written.
        #expect(throws: AuditFile.Failure(call: "open", errno: EPERM)) {
            try AuditFile(path: "/dev/full", maxSize: 10).append([[10]])
        }
        #expect(AuditLog.whole(of: [[1, 10], [2, 10], [3, 10]], in: 0) == 0)
        #expect(AuditLog.whole(of: [[1, 10], [2, 10], [3, 10]], in: 3) == 1)
        #expect(AuditLog.whole(of: [[1, 10], [2, 10], [3, 10]], in: 4) == 2)
        #expect(AuditLog.whole(of: [[1, 10], [2, 10], [3, 10]], in: 6) == 3)
    }
}
