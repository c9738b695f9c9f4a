import Glibc
import RingbackBase
import TestSupport
import Testing

@Suite struct `Many who wait for a sign-in` {
    private static let path = "/v1/accounts/work/session?sign_in=wait&timeout=300"

    private static func accounts(_ count: Int) -> String {
        (0..<count).map {
            "[accounts.a\($0)]\nissuer = \"{sandbox}\"\nclient_id = \"ringback-demo\"\nscopes = [\"openid\"]\n"
        }.joined(separator: "\n")
    }

    /// Thousands of connections, and what the other tests have open: many systems give a program 1,024 until it asks.
    private static let room: Void = {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = max(limit.rlim_cur, min(limit.rlim_max, 16_384))
        unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }()

    private func open(_ count: Int, _ stage: Stage) async throws -> [Connection] {
        _ = Self.room
        return try await onThread { try (0..<count).map { _ in try Connection(to: .unix(stage.socket)) } }
    }

    private func callers(_ count: Int, _ stage: Stage) async throws -> [Connection] {
        let connections = try await open(count, stage)
        await Connection.send(Stage.request("GET", Self.path), to: connections)
        return connections
    }

    private func playWithNotices(
        _ configuration: String = Stage.twoAccounts, _ test: (Stage, FakeService) async throws -> Void
    ) async throws {
        try await Stage.play(configuration, startsDaemon: false) { stage in
            let bus = try await PrivateBus(stage)
            let server = try await bus.fake("notifications")
            try await stage.startDaemon(environment: bus.session)
            try await test(stage, server)
        }
    }

    private func deliver(_ flow: Stage.PendingFlow, as user: String = "alice") async throws {
        let (answer, _) = try await Browser.deliver(Browser.signIn(at: flow.authorizationURL, as: user))
        #expect(answer.location == "/done", "\(answer)")
    }

    /// False where a program may not have so many descriptors.
    private static let hasRoom: Bool = {
        var limit = rlimit()
        return unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 && limit.rlim_max >= 16_384
    }()

    @Test(.enabled(if: hasRoom, "a program may have fewer than 16,384 descriptors here"))
    func `ten thousand idle connections stay open, and take little memory`() async throws {
        try await Stage.play { stage in
            let pid = try #require(stage.daemon?.pid)
            let question = Stage.request("GET", "/v1/status")
            let first = try await open(1, stage)[0]
            await first.send(question)
            #expect(try await first.answer().status == 200)
            let before = try #require(Processes.anonymousMemory(of: pid))
            var idle: [Connection] = []
            for _ in 0..<100 {
                // No more than the socket keeps until they are accepted.
                let hundred = try await open(100, stage)
                await Connection.send(question, to: hundred)
                for connection in hundred { #expect(try await connection.answer().status == 200) }
                idle += hundred
            }
            let after = try #require(Processes.anonymousMemory(of: pid))
            #expect(after - before < 10_000 * 2_048, "\(before) to \(after) bytes")
            for connection in [first, idle[0], idle[5_000], idle[9_999]] {
                await connection.send(question)
                #expect(try await connection.answer().status == 200)
            }
        }
    }

    @Test func `a thousand callers cause one flow and one notice, and all get the session`() async throws {
        try await playWithNotices { stage, server in
            let callers = try await callers(1_000, stage)
            let notice = try await server.notice(1)
            #expect(notice["summary"]?.string == "Sign in to work", "\(notice)")
            // One more, who is answered in order, has come after all of them were read.
            let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array ?? []
            #expect(flows.count == 1, "\(flows)")
            let flow = try await stage.begin()
            #expect(flow.id == flows.first?["id"]?.string)
            try await deliver(flow)
            var tokens: Set<String> = []
            for caller in callers {
                let session = try await caller.answer()
                #expect(session.status == 200, "\(session)")
                tokens.insert(session["access_token"]?.string ?? "none")
            }
            #expect(tokens == [try await stage.token() ?? ""])
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array?.count == 1)
            let counters = try await stage.sandbox.counters()
            #expect(counters.tokenRequests("authorization_code") == 1, "\(counters)")
            // Then it says who came, and nothing else was ever shown.
            let second = try await server.notice(2)
            #expect(second["summary"]?.string == "Signed in to work", "\(second)")
            #expect(server.notices.count == 2)
        }
    }
}
