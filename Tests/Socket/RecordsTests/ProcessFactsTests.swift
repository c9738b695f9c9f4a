import Glibc
import Testing

@testable import Records

@Suite struct `What is known of a process` {
    @Test func `is its program and its start`() throws {
        #expect(ProcessFacts.executable(of: getpid())?.hasPrefix("/") == true)
        let start = try #require(ProcessFacts.startTime(of: getpid()))
        #expect(start > 0)
        #expect(ProcessFacts.startTime(of: getpid()) == start)
        #expect(ProcessFacts.sessionStart(of: getpid()) == ProcessFacts.startTime(of: getsid(0)))
    }

    @Test(arguments: [0, -1, Int32.max]) func `is nothing where there is none`(pid: Int32) {
        #expect(ProcessFacts.executable(of: pid) == nil)
        #expect(ProcessFacts.unit(of: pid) == nil)
        #expect(ProcessFacts.startTime(of: pid) == nil)
    }
}

/// A process that replaces its program when told: a shell, then `cat`. Both wait for their input.
final class ExecutingChild {
    struct Failure: Error {}

    let pid: pid_t
    let first: String
    let second: String
    /// Its standard input and output.
    private let stream: Int32

    init() throws {
        guard let shell = ExecutingChild.resolved("/bin/sh"), let cat = ExecutingChild.resolved("/bin/cat") else {
            throw Failure()
        }
        (first, second) = (shell, cat)
        var ends: [Int32] = [-1, -1]
        guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0, &ends) == 0 else {
            throw Failure()
        }
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for number: Int32 in 0...1 { unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], number) }
        let words: [String] = ["sh", "-c", "echo; read line; exec /bin/cat"]
        var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
        defer { unsafe arguments.forEach { unsafe free($0) } }
        var child: pid_t = 0
        let result = unsafe posix_spawn(&child, "/bin/sh", &actions, nil, &arguments, nil)
        close(ends[1])
        guard result == 0 else { throw Failure() }
        pid = child
        stream = ends[0]
        try waitForLine()
    }

    deinit {
        close(stream)
        kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
    }

    /// Returns when the second program runs: it has copied a line.
    func execute() throws {
        guard unsafe write(stream, "go\nline\n", 8) == 8 else { throw Failure() }
        try waitForLine()
    }

    private func waitForLine() throws {
        var byte: UInt8 = 0
        repeat {
            var entry = pollfd(fd: stream, events: Int16(POLLIN), revents: 0)
            guard unsafe poll(&entry, 1, 20_000) == 1, unsafe read(stream, &byte, 1) == 1 else { throw Failure() }
        } while byte != 0x0A
    }

    private static func resolved(_ path: String) -> String? {
        guard let found = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(found) }
        return unsafe String(cString: found)
    }
}
