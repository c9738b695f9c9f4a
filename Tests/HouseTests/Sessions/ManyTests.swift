// Many logins at once: however many callers come, there is one flow and one notice an account, and a bound on both.

import Glibc
import RingbackBase
import TestSupport
import Testing

@Suite struct `Many who wait for a sign-in` {
    private static let path = "/v1/accounts/work/session?sign_in=wait&timeout=300"

    /// Accounts `a0` and so on.
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

    /// Every one of them has a connection of its own.
    private func open(_ count: Int, _ stage: Stage) async throws -> [Connection] {
        _ = Self.room
        return try await onThread { try (0..<count).map { _ in try Connection(to: .unix(stage.socket)) } }
    }

    private func callers(_ count: Int, _ stage: Stage) async throws -> [Connection] {
        let connections = try await open(count, stage)
        await Connection.send(Stage.request("GET", Self.path), to: connections)
        return connections
    }

    /// A stage with a notification server.
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

    @Test func `a thousand callers of a signed-out account cause one flow and one notice, and all get the session`()
        async throws
    {
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

    @Test func `a thousand callers of ten accounts cause a flow and a notice each, and each gets its own session`()
        async throws
    {
        try await playWithNotices(Self.accounts(10)) { stage, server in
            let connections = try await open(1_000, stage)
            let groups = (0..<10).map { group in connections.indices.filter { $0 % 10 == group } }
            for (group, members) in groups.enumerated() {
                let path = "/v1/accounts/a\(group)/session?sign_in=wait&timeout=300"
                await Connection.send(Stage.request("GET", path), to: members.map { connections[$0] })
            }
            _ = try await server.notice(10)
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array?.count == 10)
            var tokens: [Set<String>] = []
            for (group, members) in groups.enumerated() {
                try await deliver(stage.begin("a\(group)"))
                var found: Set<String> = []
                for member in members {
                    let session = try await connections[member].answer()
                    #expect(session.status == 200 && session["account"]?.string == "a\(group)", "\(session)")
                    found.insert(session["access_token"]?.string ?? "none")
                }
                tokens.append(found)
            }
            #expect(tokens.allSatisfy { $0.count == 1 } && Set(tokens).count == 10)
            let counters = try await stage.sandbox.counters()
            #expect(counters.tokenRequests("authorization_code") == 10, "\(counters)")
            _ = try await server.notice(20)
            let asked = server.notices.compactMap { $0["summary"]?.string }.filter { $0.hasPrefix("Sign in to ") }
            #expect(asked.sorted() == (0..<10).map { "Sign in to a\($0)" })
        }
    }

    @Test func `are not missed when they go away: the flow stays, for the rest and for the person`() async throws {
        try await Stage.play { stage in
            let callers = try await callers(100, stage)
            try await stage.eventually("a flow") { try await stage.account()["flow"] != nil }
            for caller in callers.dropFirst(10) { caller.close() }
            try await deliver(stage.begin())
            for caller in callers.prefix(10) { #expect(try await caller.answer().status == 200) }
            // All of them, this time: whoever signs in now has not come in vain.
            try await stage.ringback("logout", "work")
            let others = try await self.callers(100, stage)
            try await stage.eventually("a flow") { try await stage.account()["flow"] != nil }
            for caller in others { caller.close() }
            let pending = try await stage.api("GET", "/v1/flows")["flows"]?.array?.last
            let flow = try await stage.begin()
            #expect(pending?["id"]?.string == flow.id && pending?["status"]?.string == "pending", "\(pending as Any)")
            try await deliver(flow)
            #expect(try await stage.account()["state"]?.string == "authenticated")
        }
    }

    @Test func `are all told of a no, and cause no other flow for a while`() async throws {
        try await Stage.play { stage in
            let callers = try await callers(1_000, stage)
            try await stage.eventually("a flow") { try await stage.account()["flow"] != nil }
            let flow = try await stage.begin()
            let cancelled = try await stage.api("DELETE", "/v1/flows/\(flow.id)?all=true")
            #expect(cancelled["status"]?.string == "cancelled", "\(cancelled)")
            var codes: [String] = []
            for caller in callers { codes.append(try await caller.answer().code ?? "none") }
            // Whoever was read after the end is not let in; the others waited for what has ended.
            #expect(Set(codes).isSubset(of: ["flow_cancelled", "sign_in_required"]), "\(Set(codes))")
            #expect(codes.contains("flow_cancelled"))
            let again = try await stage.api("GET", Self.path)
            #expect(again.status == 401 && again.code == "sign_in_required", "\(again)")
            #expect(try await stage.account()["flow"] == nil)
        }
    }

    @Test func `are all told that its time has run out, and what was awaited`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin("work", ["timeout": 2])
            let callers = try await callers(100, stage)
            #expect(try await stage.ended(flow)["status"]?.string == "expired")
            // Where it had ended before the last of them was read, there is another one by now, which nobody finishes.
            let next = try await stage.account()["flow"]?["id"]?.string
            if let next { _ = try await stage.api("DELETE", "/v1/flows/\(next)?all=true") }
            var details: [String] = []
            for caller in callers {
                let answer = try await caller.answer()
                #expect(answer.status == 410 && answer.code == "flow_expired", "\(answer)")
                details.append(answer["detail"]?.string ?? "none")
            }
            let told = details.filter { $0.contains("within 2 seconds") && $0.contains(flow.redirectURI) }
            #expect(next != nil || told.count == 100, "\(Set(details))")
        }
    }

    @Test func `wait as long as they said, each for itself`() async throws {
        try await Stage.play { stage in
            let callers = try await callers(10, stage)
            let hasty = try await open(100, stage)
            await Connection.send(
                Stage.request("GET", "/v1/accounts/work/session?sign_in=wait&timeout=1"), to: hasty)
            for caller in hasty {
                let answer = try await caller.answer()
                #expect(answer.status == 504 && answer.code == "timeout", "\(answer)")
            }
            try await deliver(stage.begin())
            for caller in callers { #expect(try await caller.answer().status == 200) }
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array?.count == 1)
        }
    }

    /// At most one flow an account, 16 a daemon.
    @Test func `of many accounts have sixteen flows, and the next is told why it has none`() async throws {
        try await Stage.play(Self.accounts(20)) { stage in
            let started = try await withThrowingTaskGroup(of: (String, Answer).self) { group in
                for index in 0..<20 {
                    for _ in 0..<10 {
                        group.addTask {
                            ("a\(index)", try await stage.api("POST", "/v1/accounts/a\(index)/sign-in", [:]))
                        }
                    }
                }
                return try await group.reduce(into: [(String, Answer)]()) { $0.append($1) }
            }
            let good = started.filter { $0.1.status < 300 }
            #expect(Set(good.map { $0.1["id"]?.string }).count == 16)
            #expect(Set(good.map(\.0)).count == 16)
            #expect(good.count { $0.1.status == 201 } == 16, "\(good.count)")
            let refused = started.filter { $0.1.status >= 300 }.map(\.1)
            #expect(refused.count == 40)
            let out = Set((0..<20).map { "a\($0)" }).subtracting(good.map(\.0)).sorted()
            // Who waits for a session is told the same, at once.
            let waiter = try await stage.api("GET", "/v1/accounts/\(out[0])/session?sign_in=wait&timeout=300")
            for answer in refused + [waiter] {
                #expect(answer.status == 409 && answer.code == "state_conflict", "\(answer)")
                #expect(answer["detail"]?.string?.hasPrefix("16 sign-ins are pending already.") == true, "\(answer)")
            }
            // A different sign-in of an account that has one is told of that one.
            let id = try #require(good.first)
            let other = try await stage.api("POST", "/v1/accounts/\(id.0)/sign-in", ["scopes": "openid email"])
            #expect(other.status == 409 && other.code == "state_conflict", "\(other)")
            #expect(other["detail"]?.string?.contains("method browser, ") == true, "\(other)")
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array?.count == 16)
            // Whoever ends one makes room.
            _ = try await stage.api("DELETE", "/v1/flows/\(id.1["id"]?.string ?? "")?all=true")
            let next = try await stage.api("POST", "/v1/accounts/\(out[0])/sign-in", [:])
            #expect(next.status == 201, "\(next)")
        }
    }
}
