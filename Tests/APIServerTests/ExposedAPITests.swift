import HTTPMessages
import LocalHTTP
import StrictJSON
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `A restricted socket` {
    private let session = "/v1/accounts/work/session"

    @Test func `serves the access token of what it shows, and nothing beside it`() async throws {
        let narrow = try await Narrow()
        let answer = await narrow.ask("GET", session)
        #expect(answer.status == 200)
        #expect(
            answer.json.object?.names == [
                "account", "subject", "access_token", "token_type", "scope", "issuer", "expires_at", "expires_in",
            ])
        #expect(answer["access_token"] == "access-1")
        #expect(answer.response.fields["Cache-Control"] == "no-store")
        #expect(
            await narrow.ask("GET", session + "?min_valid=10&timeout=5&subject=alice&kind=access_token").status == 200)
        #expect(await narrow.ask("GET", session + "?subject=bob").code == "state_conflict")
        #expect(await narrow.ask("GET", session + "?min_valid=x").code == "validation_failed")
    }

    @Test func `serves a reduced status and the accounts that it shows`() async throws {
        let narrow = try await Narrow(["openid", "email"], lifetime: 100)
        let status = await narrow.ask("GET", "/v1/status")
        #expect(status.status == 200)
        #expect(
            Set(status.json.object?.names ?? []) == [
                "version", "uptime", "vault", "accounts", "policy", "exposed_socket",
            ])
        #expect(status["accounts"]?["authenticated"] == 1 && status["accounts"]?["unauthenticated"] == 0)
        #expect(
            status["exposed_socket"] == [
                "name": "ci", "accounts": ["work"], "scope": "email openid",
                "expires_at": .integer(narrow.house.clock.now + 100),
            ])
        let accounts = await narrow.ask("GET", "/v1/accounts")["accounts"]?.array ?? []
        #expect(accounts.map { $0["name"]?.string } == ["work"])
        let account = await narrow.ask("GET", "/v1/accounts/work")
        #expect(account.json == accounts.first)
        #expect(account["state"] == "authenticated" && account["user"]?["email"] == "alice@example.org")
        let told = account["user"]?.object?.names ?? []
        #expect(told.contains("email") && told.allSatisfy(["sub", "id", "email"].contains))
        #expect(account["source"] == "exposed socket ci" && account["flow"] == nil)
        // Not whatever the daemon's own socket tells next.
        #expect(
            ExposedAPI.told == [
                "name", "provider", "state", "source", "stale", "grant", "subject", "user", "aal", "next_aal",
                "expires_at", "error",
            ])
        #expect(account.json.object?.names.allSatisfy(ExposedAPI.told.contains) == true)
    }

    @Test func `what it does not show is refused, whether it is there or not`() async throws {
        let narrow = try await Narrow()
        let there = await narrow.ask("GET", "/v1/accounts/hidden")
        let nowhere = await narrow.ask("GET", "/v1/accounts/nowhere")
        #expect(there.status == 403 && there.code == "policy_denied" && there.text == nowhere.text)
        for name in ["hidden", "nowhere", "WORK", "work%20"] {
            #expect(await narrow.ask("GET", "/v1/accounts/\(name)/session").code == "policy_denied", "\(name)")
        }
    }

    @Test func `by issuer, what it does not show is not among the answers`() async throws {
        let narrow = try await Narrow()
        // On the daemon's own socket two accounts have the issuer.
        #expect(await narrow.house.ask("GET", "/v1/session?issuer=https://id.example").code == "state_conflict")
        let answer = await narrow.ask("GET", "/v1/session?issuer=https://id.example")
        #expect(answer["account"] == "work" && answer["access_token"] == "access-1")
        #expect(await narrow.ask("GET", "/v1/session?issuer=https://other.example").code == "account_not_found")
        #expect(await narrow.ask("GET", "/v1/session").code == "validation_failed")
    }

    @Test func `NAT-28: with a ceiling it asks for a token that is no wider, and keeps it`() async throws {
        let narrow = try await Narrow(["openid"])
        narrow.house.provider.answerNext(Self.turn("narrow", "openid"))
        let answer = await narrow.ask("GET", session)
        #expect(answer["access_token"] == "narrow" && answer["scope"] == "openid")
        #expect(await narrow.ask("GET", session)["access_token"] == "narrow")
        #expect(await narrow.ask("GET", session + "?scope=openid")["access_token"] == "narrow")
        #expect(narrow.house.provider.tokenRequests == 2)
        // The daemon's own socket is not narrowed by it.
        #expect(await narrow.house.ask("GET", session)["scope"] == "openid email")
    }

    @Test(arguments: [
        Self.turn("wide", "openid email"), Self.turn("wide", "other"), Self.turn("silent", nil),
        Self.turn("silent", ""), Self.turn("odd", "OPENID"),
    ])
    func `with a ceiling, a token that the provider does not say is within it is not served`(
        turn: FakeProvider.Turn
    ) async throws {
        let narrow = try await Narrow(["openid"])
        narrow.house.provider.answerNext(turn)
        let answer = await narrow.ask("GET", session)
        #expect(answer.status == 403 && answer.code == "policy_denied")
        #expect(answer["access_token"] == nil && !answer.text.contains("access-1"))
        // And not from the cache either.
        #expect(await narrow.ask("GET", session).code == "policy_denied")
        #expect(narrow.house.provider.tokenRequests == 2)
    }

    @Test func `a ceiling that the session's own token does not reach costs no request`() async throws {
        let narrow = try await Narrow(["openid", "email", "profile"])
        #expect(await narrow.ask("GET", session)["access_token"] == "access-1")
        #expect(narrow.house.provider.tokenRequests == 1)
    }

    @Test func `of a ceiling, what the account never asks its provider for is not asked for`() async throws {
        let narrow = try await Narrow(["openid", "calendar"])
        narrow.house.provider.answerNext(Self.turn("narrow", "openid"))
        #expect(await narrow.ask("GET", session)["access_token"] == "narrow")
        #expect(narrow.house.provider.lastScope == "openid")
    }

    @Test func `an answer without a scope, and one with too much, are told apart`() async throws {
        for (turn, words) in [
            (Self.turn("silent", nil), "did not state the token's scope"),
            (Self.turn("wide", "openid email"), "good for more than “openid”"),
        ] {
            let narrow = try await Narrow(["openid"])
            narrow.house.provider.answerNext(turn)
            let answer = await narrow.ask("GET", session)
            #expect(answer["detail"]?.string?.contains(words) == true, "\(answer.text)")
        }
    }

    @Test func `a scope within the ceiling is asked for, one beyond it is refused unasked`() async throws {
        let narrow = try await Narrow(["openid", "email"])
        narrow.house.provider.answerNext(Self.turn("narrow", "email"))
        #expect(await narrow.ask("GET", session + "?scope=email")["access_token"] == "narrow")
        for scope in ["mail", "openid%20mail", "OPENID"] {
            #expect(await narrow.ask("GET", session + "?scope=\(scope)").code == "policy_denied", "\(scope)")
        }
        #expect(await narrow.ask("GET", session + "?scope=").code == "validation_failed")
        #expect(narrow.house.provider.tokenRequests == 2)
    }

    @Test func `without a ceiling, a scope beyond the session's own is refused unasked`() async throws {
        let narrow = try await Narrow()
        narrow.house.provider.answerNext(Self.turn("narrow", "email"))
        #expect(await narrow.ask("GET", session + "?scope=email").status == 200)
        #expect(await narrow.ask("GET", session + "?scope=admin").code == "policy_denied")
        #expect(narrow.house.provider.tokenRequests == 2)
    }

    @Test func `an account that is signed out says so, and no sign-in begins`() async throws {
        let narrow = try await Narrow(["openid"], signsIn: false)
        let answer = await narrow.ask("GET", session)
        #expect(answer.status == 401 && answer.code == "sign_in_required")
        #expect(await narrow.house.ask("GET", "/v1/flows")["flows"]?.array == [])
    }

    @Test func `an account that is gone is not found`() async throws {
        let narrow = try await Narrow()
        try await narrow.house.configure([try House.account("hidden")])
        #expect(await narrow.ask("GET", "/v1/accounts")["accounts"] == [])
        #expect(await narrow.ask("GET", session).code == "account_not_found")
    }

    @Test func `an account that is another one now is not served, before the socket is closed for it`() async throws {
        let narrow = try await Narrow()
        var account = try House.account("work")
        account.clientID = "another"
        try await narrow.house.configure([account])
        for target in [session, "/v1/accounts/work"] {
            #expect(await narrow.ask("GET", target).code == "policy_denied", "\(target)")
        }
        #expect(await narrow.ask("GET", "/v1/session?issuer=https://id.example").code == "policy_denied")
        #expect(await narrow.ask("GET", "/v1/accounts")["accounts"] == [])
        #expect(await narrow.ask("GET", "/v1/status")["accounts"]?["unauthenticated"] == 0)
        try await narrow.house.configure([try House.account("work")])
        #expect(await narrow.ask("GET", session).status == 200)
    }

    @Test func `what only the daemon's own machine can mend is said to be for there`() async throws {
        let narrow = try await Narrow(signsIn: false)
        let answer = await narrow.ask("GET", session)
        #expect(answer["detail"] == "work is not signed in.")
        #expect(answer["exposed_socket"] == "ci" && answer["recovery"] == "sign_in")
        #expect(await narrow.ask("GET", "/v1/events")["exposed_socket"] == "ci")
    }

    @Test func `serves nothing from the instant in which its time is over`() async throws {
        let narrow = try await Narrow(lifetime: 10)
        narrow.house.clock.advance(by: 9)
        #expect(await narrow.ask("GET", session).status == 200)
        narrow.house.clock.advance(by: 1)
        #expect(await narrow.ask("GET", session).code == "policy_denied")
    }

    @Test func `lets its users connect and nobody else, and the audit log says who was turned away`() async throws {
        let narrow = try await Narrow()
        for uid: UInt32 in [1_000, 0, 100_999] { #expect(narrow.api.accepts(.local(uid: uid, pid: 1))) }
        for uid: UInt32 in [1_001, 65_534, 100_998, 1_001] { #expect(!narrow.api.accepts(.local(uid: uid, pid: 1))) }
        let tcp = Peer.network(client: [127, 0, 0, 1], clientPort: 1, server: [127, 0, 0, 1], serverPort: 2)
        #expect(!narrow.api.accepts(tcp))
        #expect(await narrow.ask("GET", session, uid: 1_001).code == "policy_denied")
        let entries = await narrow.house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        let refused = entries.filter { $0["event"] == "exposed_socket_refused" }
        #expect(refused.compactMap { $0["uid"]?.integer } == [1_001, 65_534, 100_998])
        #expect(refused.allSatisfy { $0["exposed_socket"] == "ci" })
    }

    @Test func `the audit log says which socket gave which token to whom`() async throws {
        let narrow = try await Narrow()
        let memory = ConnectionMemory()
        for _ in 0..<3 { _ = await narrow.ask("GET", session, uid: 100_999, memory: memory) }
        await narrow.house.ask("GET", session)
        let entries = await narrow.house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        let given = entries.filter { $0["event"] == "issued_token" }
        let there = given.filter { $0["exposed_socket"] == "ci" }
        #expect(there.allSatisfy { $0["uid"] == 100_999 && $0["account"] == "work" && $0["operation"] == "token" })
        #expect(there.compactMap { $0["count"]?.integer }.reduce(0, +) == 3)
        #expect(given.contains { $0["exposed_socket"] == nil && $0["uid"] == 1_000 })
    }

    @Test func `web pages are not served`() async throws {
        let narrow = try await Narrow()
        let answer = await narrow.ask("GET", session, fields: [("Origin", "https://evil.example")])
        #expect(answer.code == "policy_denied")
    }

    @Test func `makes the provider be asked so often and no more, and costs nobody else a token`() async throws {
        let narrow = try await Narrow(["openid", "email"])
        let refusal = FakeProvider.Turn(status: 400, body: #"{"error":"invalid_scope"}"#)
        let before = narrow.house.provider.tokenRequests
        for _ in 0..<30 {
            narrow.house.provider.answerNext(refusal)
            #expect(await narrow.ask("GET", session + "?scope=email").code == "provider_error")
        }
        let over = await narrow.ask("GET", session + "?scope=email")
        #expect(over.status == 429 && over.code == "rate_limited", "\(over.text)")
        #expect(over["retry_after"] == 60 && over["detail"]?.string?.contains("this socket") == true, "\(over.text)")
        #expect(narrow.house.provider.tokenRequests == before + 30)
        // What is held is served, here and to everybody; and the daemon's own socket asks.
        #expect(await narrow.ask("GET", session)["access_token"] == "access-1")
        narrow.house.provider.answerNext(Self.turn("narrow", "email"))
        #expect(await narrow.house.ask("GET", session + "?scope=email")["access_token"] == "narrow")
        #expect(await narrow.ask("GET", session + "?scope=email")["access_token"] == "narrow")
        narrow.house.clock.advance(by: 60)
        narrow.house.provider.answerNext(refusal)
        #expect(await narrow.ask("GET", session + "?scope=openid").code == "provider_error")
    }

    private static func turn(_ token: String, _ scope: String?) -> FakeProvider.Turn {
        let scope = scope.map { #","scope":"\#($0)""# } ?? ""
        return FakeProvider.Turn(
            status: 200,
            body: #"{"access_token":"\#(token)","token_type":"Bearer","expires_in":3600\#(scope)}"#)
    }
}
