import LocalHTTP
import RingbackBase
import TestSupport
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(2))) struct `Consent on the socket` {
    private static let asker = Peer.local(uid: 1_000, pid: 10)
    private static let user = Peer.local(uid: 1_000, pid: 20)
    private static let session = "/v1/accounts/work/session"

    /// A house with a signed-in account, a program that asks and a user elsewhere.
    private func house(_ mode: ConsentMode) async throws -> APIHouse {
        let house = try await APIHouse()
        try await house.signIn()
        house.programs.set(10, "/usr/bin/git", session: "one")
        house.programs.set(20, "/usr/bin/ringback", session: "two")
        let work = try #require(AccountName("work"))
        house.origins.configure([
            Origin(
                OriginRule(try OriginPattern(parsing: "https://git.example.org/*"), username: nil), account: work,
                kind: .accessToken, key: .own, username: nil, headers: [.usual], allowed: ConnectionSettings())
        ])
        house.consents.configure([work: ConsentDesk.Rule(mode)])
        return house
    }

    private func question(_ house: APIHouse) async throws -> JSON {
        #expect(await eventually { house.consents.questions.count == 1 })
        let answer = await house.ask("GET", "/v1/consents", peer: Self.user)
        return try #require(answer["consents"]?.array?.first)
    }

    @Test(
        arguments: [
            ("GET", session, nil), ("GET", session + "?kind=id_token", nil),
            ("GET", session + "?include=id_token", nil),
            ("GET", "/v1/session?issuer=\(CanaryProvider.origin)", nil),
            ("POST", "/v1/lookup", #"{"url":"https://git.example.org/a"}"#),
            ("POST", "/v1/exposed-sockets", #"{"name":"ci","account":"work"}"#),
        ] as [(String, String, String?)])
    func `covers every way to a secret`(method: String, target: String, body: String?) async throws {
        let house = try await house(.deny)
        let denied = await house.ask(method, target, body, peer: Self.asker)
        #expect(denied.status == 403 && denied.code == "policy_denied", "\(denied.text)")
        #expect(denied["detail"]?.string?.contains(#""/usr/bin/git""#) == true)
        house.consents.configure([try #require(AccountName("work")): ConsentDesk.Rule(.ask)])
        let never = await house.ask(
            method, target + (target.contains("?") ? "&" : "?") + "consent=never", body, peer: Self.asker)
        #expect(never.status == 403 && never.code == "consent_required", "\(never.text)")
        house.consents.configure([:])
        #expect([200, 201].contains(await house.ask(method, target, body, peer: Self.asker).status))
    }

    @Test func `covers the password of the proxy in front of an MCP server, and not how the server is reached`()
        async throws
    {
        let house = try await house(.allow)
        var linear = try APIHouse.linear()
        let proxy = try WebURL(parsing: "http://proxy.example.org:3128")
        func ask(_ credentials: HTTPProxy.Credentials?, _ mode: ConsentMode) async throws -> APIHouse.Answer {
            linear.route = .proxy(HTTPProxy(url: proxy, credentials: credentials))
            try await house.configure([linear])
            house.consents.configure([linear.name: ConsentDesk.Rule(mode)])
            let query = mode == .ask ? "?consent=never" : ""
            return await house.ask("GET", "/v1/accounts/linear/mcp-server\(query)", peer: Self.asker)
        }
        let open = try await ask(nil, .deny)
        #expect(open.status == 200 && open["proxy"]?["url"] == .string(proxy.text), "\(open.text)")
        let credentials = HTTPProxy.Credentials(user: "u", password: Secret("hunter2"))
        let denied = try await ask(credentials, .deny)
        #expect(denied.code == "policy_denied" && !denied.text.contains("hunter2"), "\(denied.text)")
        let never = try await ask(credentials, .ask)
        #expect(never.code == "consent_required" && !never.text.contains("hunter2"), "\(never.text)")
        #expect(try await ask(credentials, .allow)["proxy"]?["password"] == "hunter2")
    }

    @Test func `says nothing of a state, and leaves the account itself readable`() async throws {
        let house = try await house(.deny)
        #expect(await house.ask("GET", "/v1/accounts/work", peer: Self.asker).status == 200)
        #expect(await house.ask("POST", "/v1/accounts/work/refresh", peer: Self.asker).status == 200)
    }

    @Test func `is asked for, and the waiting request gets its answer`() async throws {
        let house = try await house(.ask)
        let waiting = Task { await house.ask("GET", Self.session, peer: Self.asker) }
        let question = try await question(house)
        #expect(question["account"] == "work" && question["operation"] == "token" && question["requests"] == 1)
        #expect(question["program"]?["text"] == #""/usr/bin/git""#)
        let peer = await house.ask("GET", "/v1/peer", peer: Self.asker)
        #expect(peer["program"] == question["program"])
        let path = "/v1/consents/\(question["id"]?.string ?? "")"
        let own = await house.ask("POST", path, #"{"decision":"allow"}"#, peer: Self.asker)
        #expect(
            own.status == 403 && own.code == "policy_denied" && own["detail"]?.string?.contains("ringback") == false)
        for (body, field) in [
            (#"{"decision":"maybe"}"#, "decision"), ("{}", "decision"),
            (#"{"decision":"allow","remember":"8"}"#, "remember"),
        ] {
            let wrong = await house.ask("POST", path, body, peer: Self.user)
            #expect(wrong.status == 400 && wrong["field"]?.string == field, "\(wrong.text)")
        }
        let answer = await house.ask("POST", path, #"{"decision":"allow","remember":"session"}"#, peer: Self.user)
        #expect(answer.status == 200 && answer["decision"] == "allow" && answer["remember"] == "session")
        #expect(await waiting.value["access_token"] != nil)
        #expect(await house.ask("POST", path, #"{"decision":"allow"}"#, peer: Self.user).status == 404)
        #expect(await house.ask("GET", Self.session, peer: Self.asker).status == 200)

        let remembered = await house.ask("GET", "/v1/consents/remembered", peer: Self.user)
        let id = remembered["consents"]?.array?.first?["id"]?.string ?? ""
        #expect(await house.ask("DELETE", "/v1/consents/remembered/\(id)", peer: Self.user).status == 200)
        #expect(await house.ask("DELETE", "/v1/consents/remembered/\(id)", peer: Self.user).status == 404)

        let audit = await house.ask("GET", "/v1/audit", peer: Self.user)["entries"]?.array ?? []
        let decided = try #require(audit.first { $0["event"] == "consent_decided" })
        #expect(decided["answered_by"] == #""/usr/bin/ringback""# && decided["pid"] == 20)
        #expect(decided["program"] == #""/usr/bin/git""#)
    }

    @Test func `that nobody gives ends with the request`() async throws {
        let house = try await house(.ask)
        let late = await house.ask("GET", Self.session + "?timeout=1", peer: Self.asker)
        #expect(late.status == 403 && late.code == "consent_timeout" && late["recovery"] == "retry")
        #expect(late["detail"]?.string?.contains("ringback") == false)
    }

    @Test func `is not asked for at the asker's own stream of events`() async throws {
        let house = try await house(.ask)
        house.programs.set(11, "/usr/bin/sh", session: "one")
        func stream(_ peer: Peer) async throws -> AsyncStream<[UInt8]> {
            let answer = await house.ask("GET", "/v1/events", peer: peer)
            guard case .stream(let stream) = answer.response.body else { throw Unexpected() }
            return stream
        }
        var own = try await stream(.local(uid: 1_000, pid: 11)).makeAsyncIterator()
        var others = try await stream(Self.user).makeAsyncIterator()
        _ = (await own.next(), await others.next())
        let waiting = Task { await house.ask("GET", Self.session, peer: Self.asker) }
        let question = try await question(house)
        let heard = try StreamEvent.all(in: await others.next())
        #expect(heard.map(\.name) == ["consent_requested"])
        #expect(heard.first?.data["id"] == question["id"] && heard.first?.data["program"] == question["program"])
        await house.ask(
            "POST", "/v1/consents/\(question["id"]?.string ?? "")", #"{"decision":"deny"}"#, peer: Self.user)
        #expect(await waiting.value.code == "policy_denied")
        #expect(try StreamEvent.all(in: await own.next()).map(\.name) == ["consent_decided"])
    }

    @Test func `is told of with notify, as an event and in the audit log`() async throws {
        let house = try await house(.notify)
        let answer = await house.ask("GET", "/v1/events", peer: Self.user)
        guard case .stream(let stream) = answer.response.body else { throw Unexpected() }
        var events = stream.makeAsyncIterator()
        _ = await events.next()
        for _ in 0..<3 { #expect(await house.ask("GET", Self.session, peer: Self.asker).status == 200) }
        let heard = try StreamEvent.all(in: await events.next())
        #expect(heard.map(\.name) == ["account_used"] && heard.first?.data["operation"] == "token")
        let audit = await house.ask("GET", "/v1/audit", peer: Self.user)["entries"]?.array ?? []
        #expect(audit.count { $0["event"] == "account_used" } == 1)
    }
}
