import CLinux
import Glibc
import Synchronization
import Testing

@testable import LocalHTTP

@Suite(
    .enabled(if: PeerProcess.isSupported, "this kernel does not tell processes by descriptor"),
    .timeLimit(.minutes(5)))
struct `The processes that a listener knows` {
    @Test func `a process that connects again is known, but not for a connection that was accepted before`()
        async throws
    {
        try await TestServer.withDirectory { directory in
            let steps = try Steps(in: directory)
            let early = try RawClient(steps.place)
            #expect(steps.settle())
            for client in [try RawClient(steps.place), try RawClient(steps.place), early] {
                client.get("/later")
                #expect(steps.settle())
                withExtendedLifetime(client) {}
            }
            let found = steps.waiting.exchanges.withLock { $0.compactMap(\.request.process) }
            try #require(found.count == 3)
            #expect(found[0] === found[1])
            // The early one may be an earlier process's with the same number.
            #expect(found[2] !== found[0] && found[2].identity == found[0].identity)
        }
    }

    @Test func `a process that has ended is known no more, and its descriptor is closed`() throws {
        let processes = KnownProcesses()
        let child = try #require(spawned("/bin/sleep", "infinity"))
        let descriptor = clinux_open_process(child)
        processes.keep(PeerProcess(descriptor: descriptor), child, age: 1)
        #expect(processes.find(child, age: 2)?.isAlive == true)
        #expect(processes.find(child, age: 1) == nil)
        #expect(processes.find(child + 1, age: 2) == nil)
        kill(child, SIGKILL)
        // It is a zombie until it is waited for: its number is not another process's yet, but it has ended.
        var status = unsafe siginfo_t()
        #expect(unsafe waitid(P_PID, id_t(child), &status, WEXITED | WNOWAIT) == 0)
        #expect(processes.find(child, age: 3) == nil)
        #expect(fcntl(descriptor, F_GETFD) == -1)
        #expect(waitpid(child, nil, 0) == child)
    }

    @Test func `eight are kept, and none that cannot be seen from here`() throws {
        let processes = KnownProcesses()
        for number in Int32(0)...9 {
            let descriptor = clinux_open_process(getpid())
            try #require(descriptor >= 0)
            processes.keep(PeerProcess(descriptor: descriptor), number, age: 1)
        }
        let known = (Int32(0)...9).filter { processes.find($0, age: 2) != nil }
        #expect(known == Array(2...9))
    }

    private func spawned(_ arguments: String...) -> pid_t? {
        var vector = unsafe arguments.map { unsafe strdup($0) } + [nil]
        defer { unsafe vector.forEach { unsafe free($0) } }
        var child: pid_t = 0
        return unsafe posix_spawn(&child, arguments[0], nil, nil, &vector, nil) == 0 ? child : nil
    }
}
