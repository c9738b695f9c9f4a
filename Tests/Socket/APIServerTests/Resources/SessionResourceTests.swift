import Cryptography
import LocalHTTP
import RingbackBase
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `Sessions on the socket` {
    private let target = "/v1/accounts/work/session"

    private func house() async throws -> APIHouse {
        let house = try await APIHouse.signedIn()
        return house
    }

    @Test func `the hot path and the long way say the same`() async throws {
        let house = try await house()
        let hot = await house.ask("GET", target)
        #expect(
            hot.text
                == #"{"account":"work","subject":"alice","access_token":"access-1","token_type":"Bearer","#
                + #""scope":"openid email","issuer":"https://id.example","expires_at":1800003600,"expires_in":3600}"#)
        #expect(await house.ask("GET", target, immediate: false).text == hot.text)
        #expect(await house.ask("GET", target + "?min_valid=60&timeout=1").text == hot.text)
        #expect(await house.ask("GET", "/v1/session?issuer=https://id.example").text == hot.text)
        house.clock.advance(by: 100)
        #expect(await house.ask("GET", target)["expires_in"] == 3_500)
        #expect(await house.ask("GET", target, immediate: false)["expires_in"] == 3_500)
        #expect(house.provider.tokenRequests == 1)
    }

    @Test func `the hot path serves no token that has been replaced, and none after a sign-out`() async throws {
        let house = try await house()
        #expect(await house.ask("GET", target)["access_token"] == "access-1")
        house.clock.advance(by: 3_541)
        #expect(await house.ask("GET", target)["access_token"] == "access-2")
        #expect(await house.ask("GET", target)["access_token"] == "access-2")
        await house.ask("POST", "/v1/accounts/work/refresh", #"{"force":true}"#)
        #expect(await house.ask("GET", target)["access_token"] == "access-3")
        await house.ask("DELETE", target)
        #expect(await house.ask("GET", target).code == "sign_in_required")
    }

    @Test func `what was asked for is included, and nothing else`() async throws {
        let house = try await house()
        let plain = await house.ask("GET", target + "?min_valid=1")
        #expect(plain["user"] == nil && plain["id_token"] == nil)
        let full = await house.ask("GET", target + "?include=user,id_token")
        #expect(full["user"]?["email"] == "alice@example.org")
        #expect(full["id_token"]?.string?.hasPrefix("ey") == true)
        let identity = await house.ask("GET", target + "?kind=id_token")
        #expect(identity["id_token"] == full["id_token"])
        #expect(identity["access_token"] == nil)
        #expect(identity["expires_at"] == 1_800_003_600)
        for word in ["provider_token", "profile", "refresh_token", "User", "user,,x"] {
            let refused = await house.ask("GET", target + "?include=\(word)")
            #expect(refused.code == "validation_failed")
        }
    }

    @Test(arguments: [
        "min_valid=", "min_valid=-1", "min_valid=1.0", "min_valid=1e2", "min_valid=%2B1", "min_valid=%201", "timeout=x",
        "min_valid=%D9%A1", "kind=access", "kind=", "sign_in=1", "sign_in=", "scope=", "scope=%20", "audience=",
        "resource=",
    ])
    func `a bad parameter is named`(query: String) async throws {
        let house = try await house()
        let answer = await house.ask("GET", "\(target)?\(query)")
        #expect(answer.code == "validation_failed")
        #expect(answer["detail"]?.string?.hasPrefix(query.prefix { $0 != "=" }) == true)
    }

    @Test(arguments: ["600", "601", "99999999999", "999999999999999999999999999999", "0000000000000000000000000600"])
    func `a number of seconds over ten minutes is ten minutes`(seconds: String) async throws {
        let house = try await house()
        house.clock.advance(by: 3_000)
        await house.ask("GET", "\(target)?min_valid=\(seconds)&timeout=\(seconds)")
        #expect(house.provider.tokenRequests == 1)
        house.clock.advance(by: 1)
        await house.ask("GET", "\(target)?min_valid=\(seconds)")
        #expect(house.provider.tokenRequests == 2)
    }

    @Test func `downscoped tokens are asked for and cached on their own`() async throws {
        let house = try await house()
        let downscoped = await house.ask("GET", target + "?scope=email&audience=api&resource=https://api.example")
        #expect(downscoped["access_token"] == "access-2")
        #expect(
            await house.ask("GET", target + "?resource=https://api.example&scope=email&audience=api")["access_token"]
                == "access-2")
        #expect(await house.ask("GET", target)["access_token"] == "access-1")
    }

    @Test func `by issuer there must be one account`() async throws {
        let house = try await house()
        #expect(await house.ask("GET", "/v1/session").code == "validation_failed")
        #expect(await house.ask("GET", "/v1/session?issuer=https://other.example").code == "account_not_found")
        try await house.configure([try APIHouse.account("work"), try APIHouse.account("second")])
        let several = await house.ask("GET", "/v1/session?issuer=https://id.example")
        #expect(several.status == 409)
        #expect(several["detail"]?.string?.contains("second, work") == true)
    }

    @Test func `somebody else's session is a conflict`() async throws {
        let house = try await house()
        #expect(await house.ask("GET", target + "?subject=alice").status == 200)
        #expect(await house.ask("GET", target + "?subject=bob").code == "state_conflict")
    }

    @Test(arguments: [
        (CanaryProvider.Turn(status: 500), 503, "provider_unreachable", "retry"),
        (CanaryProvider.Turn(status: 503, retryAfter: 9), 503, "provider_unreachable", "retry"),
        (CanaryProvider.Turn(status: 429, retryAfter: 9), 429, "rate_limited", "retry"),
        (CanaryProvider.Turn(status: 200, body: "<html>"), 502, "invalid_provider_response", "retry"),
        (CanaryProvider.Turn(status: 302), 502, "invalid_provider_response", "retry"),
        (CanaryProvider.Turn(status: 400, body: #"{"error":"invalid_client"}"#), 422, "provider_error", "none"),
        (CanaryProvider.Turn(status: 400, body: #"{"error":"invalid_grant"}"#), 401, "session_expired", "sign_in"),
    ])
    func `each failure has its code, its status and its remedy`(
        turn: CanaryProvider.Turn, status: Int, code: String, recovery: String
    ) async throws {
        let house = try await house()
        house.clock.advance(by: 3_600)
        house.provider.answerNext(turn)
        let answer = await house.ask("GET", target)
        #expect(answer.status == status)
        #expect(answer.code == code)
        #expect(answer["recovery"]?.string == recovery)
        #expect(answer.response.fields["Content-Type"] == "application/problem+json")
        #expect(answer.response.fields["Retry-After"] == turn.retryAfter.map(String.init))
        #expect(answer["retry_after"]?.integer == turn.retryAfter)
    }

    @Test func `the network, the caller's bound and a caller that leaves have codes too`() async throws {
        let house = try await house()
        house.clock.advance(by: 3_600)
        house.provider.hold()
        let late = await house.ask("GET", target + "?timeout=0")
        #expect(late.code == "timeout")
        let leaving = Task { await house.ask("GET", target) }
        leaving.cancel()
        let left = await leaving.value
        #expect(left.code == "shutting_down")
        house.provider.release()
        // A caller who came before the refresh has ended would join it, and get a token that the clock has passed.
        #expect(await eventually { await house.ask("GET", "/v1/accounts/work")["state"] == "authenticated" })
        #expect(house.broker.snapshot.current("work") != nil)
        house.clock.advance(by: 3_600)
        house.provider.goAway()
        let away = await house.ask("GET", target)
        #expect(away.code == "provider_unreachable")
        #expect(away["detail"]?.string?.contains("id.example") == true)
    }

    @Test func `a session that waits for a sign-in gets it`() async throws {
        let house = try await APIHouse()
        #expect(await house.ask("GET", target).code == "sign_in_required")
        let waiting = Task { await house.ask("GET", target + "?sign_in=wait") }
        #expect(await eventually { await house.broker.flows().count == 1 })
        let flow = try #require(await house.ask("GET", "/v1/flows")["flows"]?.array?.first)
        let callback = try house.provider.consent(try #require(flow["authorization_url"]?.string))
        await house.deliver(callback)
        #expect(await waiting.value["access_token"] == "access-1")

        await house.ask("DELETE", target)
        let refused = Task { await house.ask("GET", target + "?sign_in=wait") }
        #expect(await eventually { await house.broker.flows().contains { $0.status == .pending } })
        let second = try #require(await house.broker.flows().first { $0.status == .pending })
        let denial = try house.provider.consent(second.authorizationURL).replacing(
            "code=authorization-7", with: "error=access_denied")
        await house.deliver(denial)
        #expect(await refused.value.code == "access_denied")
        // A person who said no is left alone for five minutes.
        #expect(await house.ask("GET", target + "?sign_in=wait&timeout=0").code == "sign_in_required")
        house.clock.advance(by: 301)
        #expect(await house.ask("GET", target + "?sign_in=wait&timeout=0").code == "timeout")
    }

    @Test func `a refresh answers with the account`() async throws {
        let house = try await house()
        house.clock.advance(by: 100)
        let view = await house.ask("POST", "/v1/accounts/work/refresh")
        #expect(view["expires_at"] == 1_800_003_700)
        #expect(view["state"] == "authenticated")
        await house.ask("POST", "/v1/accounts/work/refresh", "{}")
        #expect(house.provider.tokenRequests == 2)
        await house.ask("POST", "/v1/accounts/work/refresh", #"{"force":true}"#)
        #expect(house.provider.tokenRequests == 3)
        let digest = Digest.sha256(Array("access-1".utf8)).map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
        await house.ask("POST", "/v1/accounts/work/refresh", #"{"force":true,"rejected_sha256":"\#(digest)"}"#)
        #expect(house.provider.tokenRequests == 3)
    }

    @Test(arguments: [
        #"{"force":"true"}"#, #"{"force":1}"#, #"{"rejected_sha256":1}"#, #"{"rejected_sha256":""}"#,
        #"{"rejected_sha256":"abc"}"#, #"{"rejected_sha256":"zz"}"#,
        "{\"rejected_sha256\":\"\(String(repeating: "é", count: 32))\"}",
        "{\"rejected_sha256\":\"\(String(repeating: "a", count: 62))\"}",
    ])
    func `a refresh's wrong field is named`(body: String) async throws {
        let house = try await house()
        let answer = await house.ask("POST", "/v1/accounts/work/refresh", body)
        #expect(answer.code == "validation_failed")
        #expect(house.provider.tokenRequests == 1)
    }

    @Test func `a session without a refresh token cannot be refreshed`() async throws {
        let house = try await APIHouse()
        var account = try APIHouse.account("work")
        account.scopes = ["email"]
        try await house.configure([account])
        house.provider.answerNext(.init(body: #"{"access_token":"a","token_type":"Bearer"}"#))
        try await house.signIn()
        let answer = await house.ask("GET", target + "?min_valid=600")
        #expect(answer["access_token"] == "a")
        // Absent where the provider states no lifetime.
        #expect(answer["expires_at"] == nil && answer["expires_in"] == nil)
        #expect(await house.ask("GET", target).text.contains("expires") == false)
        let refusal = await house.ask("POST", "/v1/accounts/work/refresh")
        #expect(refusal.code == "state_conflict")
    }

    @Test func `a sign-out answers with the account, as often as it is asked`() async throws {
        let house = try await house()
        for query in ["", "?scope=local"] {
            let view = await house.ask("DELETE", target + query)
            #expect(view.status == 200)
            #expect(view["state"] == "unauthenticated")
        }
        for scope in ["global", "others"] {
            #expect(await house.ask("DELETE", target + "?scope=\(scope)").code == "method_unsupported")
        }
        #expect(await house.ask("DELETE", target + "?scope=all").code == "validation_failed")
    }
}
