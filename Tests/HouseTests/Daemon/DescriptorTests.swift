import Glibc
import RingbackBase
import TestSupport
import Testing

@Suite struct `A daemon with few descriptors` {
    private static let question = Stage.request("GET", "/v1/status")

    private func start(_ descriptors: Int, _ stage: Stage) throws -> Program {
        let command = "ulimit -n \(descriptors) && exec \"$@\""
        let daemon = [Programs.path("ringbackd"), "--state", stage.state]
        return try stage.start("/bin/sh", ["-c", command, "sh"] + daemon)
    }

    @Test func `keeps half of 400 for itself, and lets 200 programs stay connected`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let daemon = try start(400, stage)
            var connections = [try await Connection.first(to: .unix(stage.socket))]
            for _ in 1..<200 { connections.append(try stage.connect()) }
            for _ in 0..<2 {
                for connection in connections {
                    await connection.send(Self.question)
                    #expect(try await connection.answer().status == 200)
                }
            }
            // For one more, the oldest idle one gives way.
            let another = try stage.connect()
            await another.send(Self.question)
            #expect(try await another.answer().status == 200)
            #expect(try await connections[0].readToEnd() == "")
            await connections[1].send(Self.question)
            #expect(try await connections[1].answer().status == 200)
            #expect(await daemon.stop())
        }
    }

    @Test func `says what the system refused if there is no descriptor for the sockets' thread`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            for limit in [12, 13] {
                let ended = try await start(limit, stage).end().expect(71)
                let sentence = "cannot listen at \(stage.socket): "
                #expect(ended.err.contains(sentence) && ended.err.contains("Too many open files"), "\(limit): \(ended)")
            }
        }
    }

    @Test func `closes the oldest idle connections without free descriptors, and still proves who asks`() async throws {
        try await Stage.playSignedIn { stage in
            let pid = try #require(stage.daemon?.pid)
            let idle = try await connections(20, stage)
            try await takeFreeDescriptors(of: pid, stage)
            let caller = try stage.connect()
            await caller.send(Stage.request("GET", "/v1/accounts/work/session"))
            #expect(try await caller.answer().status == 200)
            // One gave way to the connection, the next one to the descriptor of the caller's process.
            let doctor = try await stage.ringback("doctor", "--json")
            let isProved = doctor.out.contains("The kernel proves")
            for connection in idle.prefix(isProved ? 2 : 1) { #expect(try await connection.readToEnd() == "") }
            let audit = try await stage.ringback("audit", "--json")
            let issued = try audit.lines.map { try JSON(parsing: $0.utf8) }.filter { $0["event"] == "issued_token" }
            #expect(!issued.isEmpty && issued.allSatisfy { $0["verified"]?.bool == isProved }, "\(issued)")
            let last = try #require(idle.last)
            await last.send(Self.question)
            #expect(try await last.answer().status == 200)
        }
    }

    @Test func `waits without work while every descriptor is in use, and goes on when one is free`() async throws {
        try await Stage.play { stage in
            let pid = try #require(stage.daemon?.pid)
            let busy = try await connections(8, stage)
            for connection in busy { try await occupy(connection) }
            try await takeFreeDescriptors(of: pid, stage)
            var next = try stage.connect()
            await next.send(Self.question)
            // First the descriptors of processes that the daemon knows are given up, for a connection each.
            var others: [Connection] = []
            while others.count < 10, await next.hasAnswer(within: 2_000) {
                #expect(try await next.answer().status == 200)
                try await occupy(next)
                others.append(next)
                next = try stage.connect()
                await next.send(Self.question)
            }
            let before = try #require(Processes.ticks(of: pid))
            #expect(await !next.hasAnswer(within: 2_000))
            // Two seconds of one processor are 200 ticks.
            #expect(try #require(Processes.ticks(of: pid)) - before < 50)
            busy[0].close()
            #expect(try await next.answer().status == 200)
        }
    }

    /// Follows the events: the connection is not idle any more.
    private func occupy(_ connection: Connection) async throws {
        await connection.send(Stage.request("GET", "/v1/events"))
        _ = try await connection.read(through: "\r\n\r\n")
    }

    private func connections(_ count: Int, _ stage: Stage) async throws -> [Connection] {
        var all: [Connection] = []
        for _ in 0..<count {
            let connection = try stage.connect()
            await connection.send(Self.question)
            #expect(try await connection.answer().status == 200)
            all.append(connection)
        }
        return all
    }

    /// Lowers the daemon's limit to the first number that is free: its next descriptor is one too many.
    private func takeFreeDescriptors(of pid: pid_t, _ stage: Stage) async throws {
        let taken = Set(FileTree.names(in: "/proc/\(pid)/fd").compactMap { Int($0) })
        let first = try #require((0..<65_536).first { !taken.contains($0) })
        let command = ["--pid", "\(pid)", "--nofile=\(first):"]
        let ended = try await stage.start("/usr/bin/prlimit", command).end()
        try #require(ended.status == 0, "\(ended)")
    }
}
