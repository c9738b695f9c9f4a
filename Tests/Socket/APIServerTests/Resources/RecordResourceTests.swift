import Glibc
import LocalHTTP
import Records
import RingbackBase
import SessionVault
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `The records on the socket` {
    private let session = "/v1/accounts/work/session"

    private func events(_ house: APIHouse, _ query: String = "") async -> [JSON] {
        await house.ask("GET", "/v1/audit\(query)")["entries"]?.array ?? []
    }

    @Test func `tell who took which token, on every way`() async throws {
        let house = try await APIHouse.signedIn()
        let peer = Peer.local(uid: 1_000, pid: getpid())
        for _ in 0..<3 { await house.ask("GET", session, peer: peer) }
        await house.ask("GET", session, peer: peer, immediate: false)
        await house.ask("GET", session + "?scope=email%20a&audience=x&resource=https://y.example", peer: peer)
        await house.ask("GET", session + "?kind=id_token", peer: peer)
        let all = await events(house).filter { $0["event"] == "issued_token" }
        func count(_ operation: String, audience: JSON?) -> Int {
            all.filter { $0["operation"]?.string == operation && $0["audience"] == audience }
                .compactMap { $0["count"]?.integer }.reduce(0, +)
        }
        #expect(count("token", audience: nil) == 4)
        #expect(count("token", audience: "x") == 1)
        #expect(count("id_token", audience: nil) == 1)
        // Of the session's own token too it is said what it is good for.
        let own = try #require(all.first { $0["audience"] == nil && $0["operation"] == "token" })
        let answer = await house.ask("GET", session, peer: peer)
        #expect(own["scope"] == answer["scope"] && own["scope"]?.string?.isEmpty == false)
        let downscoped = try #require(all.first { $0["audience"] == "x" })
        // What the provider says that it gave, not what was asked for.
        #expect(downscoped["scope"] == "openid email" && downscoped["resource"] == "https://y.example")
        for entry in all {
            #expect(entry["account"] == "work" && entry["uid"] == 1_000 && entry["pid"]?.integer == Int(getpid()))
            #expect(entry["executable"]?.string == ProcessFacts.executable(of: getpid()))
            // Requests of tests come over no socket.
            #expect(entry["verified"] == false)
        }
    }

    @Test func `record nothing for a token that was not issued`() async throws {
        let house = try await APIHouse()
        await house.ask("GET", session)
        try await house.signIn()
        await house.ask("GET", session, peer: .local(uid: 1_001, pid: 1))
        await house.ask("GET", session, fields: [("Origin", "x")])
        await house.ask("GET", session + "?subject=bob")
        #expect(await events(house).filter { $0["event"] == "issued_token" }.isEmpty)
        #expect(await house.ask("GET", "/v1/metrics").text.contains("ringback_issued_tokens_total{") == false)
    }

    @Test func `tell of sign-ins, sign-outs and changes of person, and of who asked`() async throws {
        let house = try await APIHouse.signedIn()
        try await house.signIn("work", as: "bob", #"{"switch_subject":true}"#)
        await house.ask("DELETE", session)
        let all = await events(house)
        let words = all.compactMap { $0["event"]?.string }.filter { $0 != "request" }
        #expect(words.filter { $0 == "sign_in" }.count == 2)
        let switched = try #require(all.first { $0["event"] == "subject_switched" })
        #expect(switched["subject"] == "bob" && switched["former_subject"] == "alice")
        #expect(all.contains { $0["event"] == "signed_in" && $0["subject"] == "alice" })
        #expect(all.contains { $0["event"] == "signed_out" && $0["account"] == "work" })
        let routes = Set(all.compactMap { $0["route"]?.string })
        #expect(
            routes == [
                "POST /v1/accounts/{account}/sign-in", "POST /v1/callbacks", "DELETE /v1/accounts/{account}/session",
            ])
    }

    @Test func `tell of everything that root asks for`() async throws {
        let house = try await APIHouse()
        await house.ask("GET", "/v1/accounts", peer: .local(uid: 0, pid: 1))
        await house.ask("GET", "/v1/accounts", peer: .local(uid: 1_000, pid: 1))
        let all = await events(house).filter { $0["route"] == "GET /v1/accounts" }
        #expect(all.map { $0["uid"] } == [0])
        #expect(all.first?["operation"] == "read_state")
    }

    @Test func `tell no more of an owner who is root than of another`() async throws {
        let house = try await APIHouse()
        let api = SocketAPI(
            broker: house.broker, policy: Policy(owner: 0), daemon: house.api.daemon, records: house.records, owner: 0)
        for method in ["GET", "POST"] {
            let target = method == "GET" ? "/v1/accounts" : "/v1/reload"
            let request = ServerRequest(
                method: method, target: target, fields: HTTPFields(), body: [], peer: .local(uid: 0, pid: 1))
            #expect(await api.respond(request).status == 200)
        }
        #expect(await events(house).compactMap { $0["route"]?.string } == ["POST /v1/reload"])
    }

    @Test func `hold no secret`() async throws {
        let house = try await APIHouse.signedIn()
        await house.ask("GET", session + "?include=user,id_token")
        await house.ask("POST", "/v1/accounts/work/refresh", #"{"force":true}"#)
        house.provider.answerNext(.init(status: 400, body: #"{"error":"invalid_grant"}"#))
        await house.ask("POST", "/v1/accounts/work/refresh", #"{"force":true}"#)
        await house.records.audit.flush()
        let text = house.folder.text
        #expect(text.contains("refresh_failed") || text.contains("session_ended"))
        for secret in house.provider.secrets { #expect(!text.contains(secret)) }
        #expect(!text.contains("access-1") && !text.contains("access-2") && !text.contains("eyJ"))
    }

    @Test func `are asked for by time, account and number`() async throws {
        let house = try await APIHouse()
        for number in 0..<5 {
            house.records.audit.write(
                "signed_out", JSONObject([.init("account", .string("a\(number)"))]))
            house.clock.advance(by: 1)
        }
        #expect(await events(house, "?limit=2").map { $0["account"] } == ["a3", "a4"])
        #expect(await house.ask("GET", "/v1/audit?limit=2")["truncated"] == true)
        #expect(await house.ask("GET", "/v1/audit?since=1800000003")["truncated"] == false)
        #expect(await events(house, "?account=a1").count == 1)
        #expect(await events(house, "?since=1800000003").map { $0["account"] } == ["a3", "a4"])
        #expect(await events(house, "?since=2027-01-15T08:00:03Z").count == 2)
        #expect(await events(house, "?limit=99999").filter { $0["event"] == "signed_out" }.count == 5)
        for query in ["since=yesterday", "since=", "since=-1", "limit=0", "limit=x", "limit=", "since=2027-01-15"] {
            let answer = await house.ask("GET", "/v1/audit?\(query)")
            #expect(answer.status == 400 && answer.code == "validation_failed", "\(query)")
        }
    }

    @Test func `are numbers for a monitor`() async throws {
        let house = try await APIHouse.signedIn()
        await house.ask("GET", session)
        await house.ask("GET", session, immediate: false)
        await house.ask("POST", "/v1/accounts/work/refresh", #"{"force":true}"#)
        let answer = await house.ask("GET", "/v1/metrics")
        #expect(answer.response.fields["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
        for line in [
            #"ringback_sign_ins_started_total{account="work",method="browser"} 1"#,
            #"ringback_sign_ins_completed_total{account="work",method="browser"} 1"#,
            #"ringback_sign_in_duration_seconds_count{account="work",method="browser"} 1"#,
            #"ringback_issued_tokens_total{account="work"} 2"#,
            #"ringback_refreshes_attempted_total{account="work"} 1"#,
            "ringback_accounts_authenticated 1", "ringback_vault_locked 0",
        ] { #expect(answer.text.split(separator: "\n").contains(Substring(line)), "\(line)") }
    }

    @Test func `are missing where none are kept, and that is said`() async throws {
        let house = try await APIHouse()
        let bare = SocketAPI(broker: house.broker, policy: house.api.policy, daemon: house.api.daemon)
        for target in ["/v1/audit", "/v1/metrics"] {
            let request = ServerRequest(
                method: "GET", target: target, fields: HTTPFields(), body: [], peer: .local(uid: 1_000, pid: 1))
            #expect(await bare.respond(request).status == 404)
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct `Failed refreshes in the audit log` {
    private func lines(_ house: APIHouse, _ event: String = "refresh_failed") async throws -> [JSON] {
        await house.records.audit.flush()
        return try house.folder.text.split(separator: "\n").map { try JSON(parsing: $0.utf8) }
            .filter { $0["event"]?.string == event }
    }

    @Test func `name the host whose request may explain that a session has ended`() async throws {
        let house = try await APIHouse()
        let name = try #require(AccountName("work"))
        let unheard = EndProof.UnheardRequest(host: "laptop", age: .milliseconds(640_900))
        house.records.note(.sessionEnded(name, subject: "ada", unheard: unheard))
        house.records.note(
            .sessionEnded(name, subject: "ada", error: .sessionExpired(name, message: "AADSTS700082: expired")))
        let lines = try await lines(house, "session_ended")
        #expect(lines.map { $0["unheard_host"]?.string } == ["laptop", nil])
        #expect(lines.map { $0["unheard_seconds"]?.integer } == [640, nil])
        #expect(lines.map { $0["provider_message"]?.string } == [nil, "AADSTS700082: expired"])
    }

    @Test func `have the provider's code and text, and a refused callback its reason`() async throws {
        let house = try await APIHouse()
        let name = try #require(AccountName("work"))
        house.records.note(
            .refreshFailed(name, .provider(.failing(status: 500, code: "x", message: "why", retryAfter: nil))))
        house.records.note(
            .refreshFailed(name, .refreshRefused(name, host: "h", .answered(code: "y", message: "because"))))
        house.records.note(.callbackRefused(name, .codeAndError))
        let failed = try await lines(house)
        #expect(failed.map { $0["provider_code"]?.string } == ["x", "y"])
        #expect(failed.map { $0["provider_message"]?.string } == ["why", "because"])
        let refused = try await lines(house, "callback_refused")
        #expect(refused.map { $0["reason"]?.string } == ["The callback has both a code and an error."])
    }

    @Test func `tell how an identity was linked`() async throws {
        let house = try await APIHouse()
        let name = try #require(AccountName("work"))
        for sight in [.asked, .inferred, .former(at: WallInstant(seconds: 7))] as [BrokerFact.IdentitySight] {
            house.records.note(.identityLinked(name, provider: "github", sight))
        }
        let linked = try await lines(house, "identity_linked")
        #expect(linked.map { $0["identity_provider"]?.string } == ["github", "github", "github"])
        #expect(linked.map { $0["inferred"]?.bool } == [nil, true, true])
        #expect(linked.map { $0["linked_at"]?.integer } == [nil, nil, 7])
    }

    @Test func `are one line in five minutes if they are equal, with their number`() async throws {
        let house = try await APIHouse()
        let name = try #require(AccountName("work"))
        // Two a second for half an hour, as a program behind an exposed socket can cause them.
        for _ in 0..<1_800 {
            for _ in 0..<2 {
                house.records.note(.refreshFailed(name, .provider(.refused(code: "invalid_scope", message: nil))))
            }
            house.clock.advance(by: 1)
        }
        let equal = try await lines(house)
        #expect(equal.count == 6, "\(equal)")
        #expect(equal.map { $0["count"]?.integer } == [nil, 600, 600, 600, 600, 600], "\(equal)")
        // Another failure, or another account's, is told at once.
        house.records.note(.refreshFailed(name, .provider(.refused(code: "invalid_target", message: nil))))
        let other = try #require(AccountName("home"))
        house.records.note(.refreshFailed(other, .provider(.refused(code: "invalid_scope", message: nil))))
        #expect(try await lines(house).suffix(2).map { $0["account"]?.string } == ["work", "home"])
    }
}
