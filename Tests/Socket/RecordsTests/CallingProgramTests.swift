import FoundationEssentials
import Glibc
import RingbackBase
import Testing

@testable import Records

@Suite struct `The program for which a process connected` {
    @Test func `is the process itself unless it is one of Ringback's own`() throws {
        let own = CallingProgram(of: getpid())
        #expect(own.identity.executable == ProcessFacts.executable(of: getpid()))
        #expect(own.identity.text.hasPrefix("\"/") && own.origin.scope != nil)
        #expect(own.origin.isShared(with: own.origin))
        for path in [
            "/usr/bin/ringback", "/home/u/.local/bin/ringback-relay", "ringback", "/usr/bin/ringback (deleted)",
        ] {
            #expect(CallingProgram.isOwn(path), "\(path)")
        }
        for path in ["/usr/bin/git", "/usr/bin/ringback/x", "/usr/bin/ringback2", ""] {
            #expect(!CallingProgram.isOwn(path), "\(path)")
        }
        #expect(!CallingProgram.isOwn(nil))
    }

    /// `ringback` is a copy of another program; a shell starts it, and this process has started the shell.
    @Test func `is the nearest ancestor that is neither a shell nor one of Ringback's own`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "calling-\(getpid())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let program = "\(folder)/ringback"
        try FileManager.default.copyItem(atPath: "/bin/cat", toPath: program)
        let child = try Conversation(["/bin/sh", "-c", "\"$0\"; exit 0", program])
        // The copy has answered, so the shell has started it.
        try child.say("hello")
        let copy = try #require(child.children.first)
        #expect(ProcessFacts.executable(of: copy) == program)
        let found = CallingProgram(of: copy)
        #expect(found.identity.executable == ProcessFacts.executable(of: getpid()))
        let answering = ProgramOrigin(group: "other", session: "other", ancestors: CallingProgram.ancestors(of: copy))
        #expect(answering.isShared(with: CallingProgram(of: getpid()).origin))

        // A relay's executable cannot be read.
        let named = CallingProgram(of: copy, namedBy: Int32.max, of: getuid())
        #expect(named?.identity.executable == found.identity.executable && named?.origin == found.origin)
        #expect(named?.identity.isVerified == false)
        #expect(CallingProgram(of: copy, namedBy: copy, of: getuid())?.origin == found.origin)
        #expect(CallingProgram(of: copy, namedBy: getpid(), of: getuid()) == nil)
        #expect(CallingProgram(of: copy, namedBy: Int32.max, of: getuid() + 1) == nil)
        #expect(CallingProgram(of: Int32.max, namedBy: Int32.max, of: getuid()) == nil)
    }

    /// The copy of another program is `systemd` here, which starts `ringback`.
    @Test func `is not known where a service manager or one of Ringback's own is the last ancestor`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "managed-\(getpid())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (manager, program) = ("\(folder)/systemd", "\(folder)/ringback")
        try FileManager.default.copyItem(atPath: "/bin/bash", toPath: manager)
        try FileManager.default.copyItem(atPath: "/bin/cat", toPath: program)
        let child = try Conversation([manager, "-c", "\"$0\"; exit 0", program])
        try child.say("hello")
        let copy = try #require(child.children.first)
        let found = CallingProgram(of: copy)
        #expect(found.identity.executable == nil && !found.identity.isRootOwned && !found.identity.isVerified)
        #expect(found.identity.text == "an unknown program" && found.origin.scope != nil)
        #expect(found.origin.process?.hasPrefix("\(copy) ") == true)
    }

    @Test func `is not known once it has ended`() {
        let gone = CallingProgram(of: Int32.max)
        #expect(gone.identity.text == "an unknown program" && gone.origin.scope == nil)
        #expect(gone.origin.isShared(with: CallingProgram(of: getpid()).origin))
        let read = CallingProgram(of: -1, readAs: "/tmp/x y", isVerified: true)
        #expect(read.identity.text == "\"/tmp/x y\" (this file can be changed by you)")
    }

    @Test func `is one that only root can change where root owns the file and every folder above it`() throws {
        #expect(FileOwner.isRootAlone("/usr/bin/env"))
        let file = FileManager.default.temporaryDirectory.appending(path: "owned-\(getpid())").path
        try #require(FileManager.default.createFile(atPath: file, contents: nil))
        defer { try? FileManager.default.removeItem(atPath: file) }
        for path in [file, "/usr/bin", "/usr/bin/no such program", "usr/bin/env", ""] {
            #expect(!FileOwner.isRootAlone(path), "\(path)")
        }
    }
}

/// A process that copies lines from its input to its output.
private final class Conversation {
    private let pid: pid_t
    private let stream: Int32

    init(_ words: [String]) throws {
        var ends: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0, &ends) == 0)
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for number: Int32 in 0...1 { unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], number) }
        var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
        defer { unsafe arguments.forEach { unsafe free($0) } }
        var child: pid_t = 0
        let result = unsafe posix_spawn(&child, words[0], &actions, nil, &arguments, nil)
        close(ends[1])
        try #require(result == 0)
        pid = child
        stream = ends[0]
    }

    deinit {
        close(stream)
        waitpid(pid, nil, 0)
    }

    /// Waits until the line comes back.
    func say(_ line: String) throws {
        let bytes = Array("\(line)\n".utf8)
        try #require(unsafe write(stream, bytes, bytes.count) == bytes.count)
        for _ in bytes {
            var byte: UInt8 = 0
            var entry = pollfd(fd: stream, events: Int16(POLLIN), revents: 0)
            try #require(unsafe poll(&entry, 1, 20_000) == 1)
            try #require(unsafe read(stream, &byte, 1) == 1)
        }
    }

    var children: [pid_t] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { pid_t($0) }.filter { ProcessFacts.parent(of: $0) == pid }
    }
}
