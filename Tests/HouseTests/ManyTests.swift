// Many logins at once.

import Glibc
import StrictJSON
import Testing

@Suite struct `Many who wait for a sign-in` {
    /// Every one of them has a connection of its own; one thread reads them all.
    private func open(_ count: Int, _ stage: Stage, _ path: String) async throws -> [Connection] {
        let connections = try await onThread {
            Result { try (0..<count).map { _ in try Connection(to: .unix(stage.socket)) } }
        }
        try await Connection.send(Stage.request("GET", path), to: connections)
        return connections
    }

    @Test func `a thousand callers of a signed-out account cause one flow, and all get the session`() async throws {
        try await Stage.play { stage in
            let path = "/v1/accounts/work/session?sign_in=wait&timeout=300"
            let callers = try await open(1_000, stage, path)
            try await stage.eventually("a flow") { try await stage.account()["flow"] != nil }
            // One more, who is answered in order, has come after all of them were read.
            let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array ?? []
            #expect(flows.count == 1, "\(flows)")
            let flow = try await stage.begin()
            #expect(flow.id == flows.first?["id"]?.string)
            let (answer, _) = try await Browser.deliver(Browser.signIn(at: flow.authorizationURL))
            #expect(answer.location == "/done", "\(answer)")
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
        }
    }

    @Test func `are all told of a no, and cause no other flow for a while`() async throws {
        try await Stage.play { stage in
            let path = "/v1/accounts/work/session?sign_in=wait&timeout=300"
            let callers = try await open(100, stage, path)
            try await stage.eventually("a flow") { try await stage.account()["flow"] != nil }
            let flow = try await stage.begin()
            let withdrawn = try await stage.api("DELETE", "/v1/flows/\(flow.id)?all=true")
            #expect(withdrawn["status"]?.string == "cancelled", "\(withdrawn)")
            for caller in callers {
                let answer = try await caller.answer()
                #expect([401, 410].contains(answer.status), "\(answer)")
            }
            let again = try await stage.api("GET", path)
            #expect(again.status == 401 && again.code == "sign_in_required", "\(again)")
            #expect(try await stage.account()["flow"] == nil)
        }
    }

    /// CONTRACT section 5: at most one flow an account, 16 a daemon.
    @Test func `of many accounts have sixteen flows, and the next is told why it has none`() async throws {
        let accounts = (0..<20).map {
            "[accounts.a\($0)]\nissuer = \"{sandbox}\"\nclient_id = \"ringback-demo\"\nscopes = [\"openid\"]\n"
        }
        try await Stage.play(accounts.joined(separator: "\n")) { stage in
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
            for (_, refused) in started where refused.status >= 300 {
                #expect([409, 429].contains(refused.status), "\(refused)")
            }
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array?.count == 16)
            // Whoever ends one makes room.
            let id = try #require(good.first?.1["id"]?.string)
            _ = try await stage.api("DELETE", "/v1/flows/\(id)?all=true")
            let out = Set((0..<20).map { "a\($0)" }).subtracting(good.map(\.0)).sorted()
            let next = try await stage.api("POST", "/v1/accounts/\(out[0])/sign-in", [:])
            #expect(next.status == 201, "\(next)")
        }
    }
}
