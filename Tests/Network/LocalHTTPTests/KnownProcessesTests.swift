import CLinux
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LocalHTTP

@Suite(
    .enabled(if: PeerProcess.isSupported, "this kernel does not tell processes by descriptor"),
    .timeLimit(.minutes(5)))
struct `The processes that a loop knows` {
    @Test func `a process that connects again is known, though not for a connection of before`() async throws {
        try await Steps.run { steps in
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
        var processes = KnownProcesses()
        let child = try #require(spawned("/bin/sleep", "infinity"))
        let descriptor = clinux_open_process(child)
        processes.keep(PeerProcess(Descriptor(descriptor)), child, at: 1, age: 1, now: 0)
        #expect(processes.find(child, at: 1, age: 2, now: 0)?.isAlive == true)
        #expect(processes.find(child, at: 1, age: 1, now: 0) == nil)
        #expect(processes.find(child + 1, at: 1, age: 2, now: 0) == nil)
        // Another listener's connection may be an older process's, though it was accepted later.
        #expect(processes.find(child, at: 2, age: 2, now: 0) == nil)
        kill(child, SIGKILL)
        // It is a zombie until it is waited for: its number is not another process's yet, but it has ended.
        var status = unsafe siginfo_t()
        #expect(unsafe waitid(P_PID, id_t(child), &status, WEXITED | WNOWAIT) == 0)
        // It is looked at again after a second.
        #expect(processes.find(child, at: 1, age: 3, now: 999_999_999)?.isAlive == false)
        #expect(processes.find(child, at: 1, age: 3, now: 1_000_000_000) == nil)
        #expect(fcntl(descriptor, F_GETFD) == -1)
        #expect(waitpid(child, nil, 0) == child)
    }

    @Test func `eight are kept, and none that cannot be seen from here`() throws {
        var processes = KnownProcesses()
        for number in Int32(0)...9 {
            let descriptor = clinux_open_process(getpid())
            try #require(descriptor >= 0)
            processes.keep(PeerProcess(Descriptor(descriptor)), number, at: 1, age: 1, now: 0)
        }
        let known = (Int32(0)...9).filter { processes.find($0, at: 1, age: 2, now: 0) != nil }
        #expect(known == Array(2...9))
    }

    @Test func `gives up the descriptors that nothing else uses`() throws {
        var processes = KnownProcesses()
        for number in Int32(1)...3 {
            let descriptor = clinux_open_process(getpid())
            try #require(descriptor >= 0)
            processes.keep(PeerProcess(Descriptor(descriptor)), number, at: 1, age: 1, now: 0)
        }
        let used = processes.find(2, at: 1, age: 2, now: 0)
        let gaveUp = processes.giveUp()
        #expect(gaveUp)
        let kept = (Int32(1)...3).map { processes.find($0, at: 1, age: 2, now: 0) }
        #expect(kept[0] == nil && kept[1] === used && kept[2] == nil)
        let gaveUpMore = processes.giveUp()
        #expect(!gaveUpMore)
    }

    @Test
    func `without a free descriptor they are given up before an idle client, at whichever listener`()
        async throws
    {
        try await TestServer.withDirectory { directory in
            let steps = try Steps(in: directory)
            let other = ServerPlace.unix(directory + "/other.sock")
            let socket = try ListeningSocket.open(.unix(path: directory + "/other.sock"))
            try steps.loop.add(Listener(socket, server: steps.rules))
            let idle = try RawClient(other)
            idle.get("/known")
            #expect(steps.settle())
            steps.waiting.exchanges.withLock { exchanges in
                for exchange in exchanges { exchange.connection.send(.text("known"), of: exchange, isHead: false) }
                exchanges = []
            }
            #expect(try idle.answer().text == "known")
            steps.fail(1)
            let next = try RawClient(steps.place)
            next.get("/now")
            #expect(steps.settle())
            #expect(try next.answer().text == "now")
            idle.get("/now")
            #expect(steps.settle())
            #expect(try idle.answer().text == "now")
            // The process of the last client is known again. Without it the idle one gives way.
            let gaveUp = steps.loop.processes.giveUp()
            #expect(gaveUp)
            steps.fail(1)
            let last = try RawClient(steps.place)
            #expect(steps.settle())
            #expect(try idle.readToEnd().isEmpty)
            withExtendedLifetime(last) {}
        }
    }

    private func spawned(_ arguments: String...) -> pid_t? {
        var vector = unsafe arguments.map { unsafe strdup($0) } + [nil]
        defer { unsafe vector.forEach { unsafe free($0) } }
        var child: pid_t = 0
        return unsafe posix_spawn(&child, arguments[0], nil, nil, &vector, nil) == 0 ? child : nil
    }
}
