import OAuthSignIn
import RingbackBase
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `Accounts on the socket` {
    @Test func `an account shows its state through a session's life`() async throws {
        let house = try await APIHouse()
        var answer = await house.ask("GET", "/v1/accounts/work")
        #expect(answer.status == 200)
        #expect(
            answer.text
                == #"{"name":"work","provider":"oidc","provider_host":"id.example","state":"unauthenticated","source":"test"}"#
        )
        let flow = await house.ask("POST", "/v1/accounts/work/sign-in", "{}")
        answer = await house.ask("GET", "/v1/accounts/work")
        #expect(answer["state"] == "authenticating")
        #expect(answer["flow"]?["id"] == flow["id"])
        #expect(answer["flow"]?["method"] == "browser")
        await house.ask("DELETE", "/v1/flows/\(flow["id"]?.string ?? "")")
        try await house.signIn()
        answer = await house.ask("GET", "/v1/accounts/work")
        #expect(answer["state"] == "authenticated")
        #expect(answer["subject"] == "alice")
        #expect(answer["user"]?["email"] == "alice@example.org")
        #expect(answer["expires_at"]?.integer == house.clock.now + 3_600)
        #expect(answer["stale"] == nil)
        #expect(!answer.text.contains("access-"))

        house.clock.advance(by: 3_600)
        house.provider.answerNext(.init(status: 503, retryAfter: 7))
        await house.ask("GET", "/v1/accounts/work/session")
        answer = await house.ask("GET", "/v1/accounts/work")
        #expect(answer["state"] == "authenticated")
        #expect(answer["stale"] == true)
        #expect(answer["error"]?["code"] == "provider_unreachable")
        #expect(answer["error"]?["retry_after"] == 7)
    }

    @Test func `all accounts come in one object, by name`() async throws {
        let house = try await APIHouse()
        try await house.configure([try APIHouse.account("b"), try APIHouse.account("a"), try APIHouse.account("a.1")])
        let answer = await house.ask("GET", "/v1/accounts")
        #expect(answer["accounts"]?.array?.compactMap { $0["name"]?.string } == ["a", "a.1", "b"])
        try await house.configure([])
        #expect(await house.ask("GET", "/v1/accounts").text == #"{"accounts":[]}"#)
    }

    @Test(arguments: ["nobody", "Work", "a%2Fb", "..", String(repeating: "a", count: 65)])
    func `an account that is none is not found, on every route`(name: String) async throws {
        let house = try await APIHouse()
        for (method, tail) in [
            ("GET", ""), ("GET", "/session"), ("DELETE", "/session"), ("POST", "/refresh"), ("POST", "/sign-in"),
            ("DELETE", "/session?scope=global"), ("GET", "/session?sign_in=wait"),
        ] {
            let answer = await house.ask(method, "/v1/accounts/\(name)\(tail)")
            #expect(answer.code == "account_not_found")
        }
        #expect(await house.ask("GET", "/v1/events?account=\(name)").code == "account_not_found")
    }

    @Test func `a sign-in is created, and an equal one joins it`() async throws {
        let house = try await APIHouse()
        let first = await house.ask("POST", "/v1/accounts/work/sign-in", #"{"method":"browser","timeout":30}"#)
        #expect(first.status == 201)
        #expect(first["status"] == "pending")
        #expect(first["waiting_for"] == "callback")
        #expect(first["redirect_uri"] == "http://127.0.0.1:4711/callback/work")
        #expect(first["expires_at"]?.integer == house.clock.now + 30)
        #expect(first["authorization_url"]?.string?.hasPrefix("https://id.example/authorize?") == true)
        // Without a body, and with members that are null.
        for body in [nil, "{}", #"{"method":null,"params":null}"#] {
            let next = await house.ask("POST", "/v1/accounts/work/sign-in", body)
            #expect(next.status == 200)
            #expect(next["id"] == first["id"])
        }
        let other = await house.ask("POST", "/v1/accounts/work/sign-in", #"{"scopes":"openid profile"}"#)
        #expect(other.code == "state_conflict")
    }

    @Test func `its fields reach the provider`() async throws {
        let house = try await APIHouse()
        let body = #"{"scopes":"openid  profile","params":{"prompt":"login","x y":"ä&"}}"#
        let flow = await house.ask("POST", "/v1/accounts/work/sign-in", body)
        let url = try #require(flow["authorization_url"]?.string)
        for part in ["scope=openid%20profile", "prompt=login", "x%20y=%C3%A4%26", "code_challenge_method=S256"] {
            #expect(url.contains(part))
        }
    }

    @Test(arguments: [
        #"{"method":1}"#, #"{"scopes":["openid"]}"#, #"{"params":[]}"#, #"{"params":{"a":1}}"#, #"{"timeout":"30"}"#,
        #"{"timeout":0}"#, #"{"timeout":3601}"#, #"{"timeout":1.5}"#, #"{"timeout":-1}"#, #"{"switch_subject":"yes"}"#,
        #"{"params":{"state":"x"}}"#, #"{"params":{"redirect_uri":"x"}}"#, #"{"params":{"code_verifier":"x"}}"#,
        #"{"params":{"":"x"}}"#, #"{"callback_port":0}"#, #"{"callback_port":65536}"#, #"{"callback_port":"x"}"#,
        #"{"callback_port":-1}"#,
    ])
    func `a wrong field is named`(body: String) async throws {
        let house = try await APIHouse()
        let answer = await house.ask("POST", "/v1/accounts/work/sign-in", body)
        #expect(answer.code == "validation_failed")
        let field = try #require(try JSON(parsing: Array(body.utf8)).object?.names.first)
        #expect(answer["detail"]?.string?.hasPrefix(field) == true)
        #expect(await house.ask("GET", "/v1/flows").text == #"{"flows":[]}"#)
    }

    @Test func `every reserved parameter is refused`() async throws {
        let house = try await APIHouse()
        for name in SignInRequest.reservedParameters {
            let answer = await house.ask("POST", "/v1/accounts/work/sign-in", #"{"params":{"\#(name)":"x"}}"#)
            #expect(answer.code == "validation_failed")
            #expect(answer["detail"]?.string?.contains("params.\(name)") == true)
        }
    }

    @Test func `what keeps a sign-in from beginning is said`() async throws {
        let house = try await APIHouse()
        let target = "/v1/accounts/work/sign-in"
        #expect(await house.ask("POST", target, #"{"method":"password"}"#).code == "method_unsupported")
        house.provider.goAway()
        let away = await house.ask("POST", target)
        #expect(away.code == "provider_unreachable")
        #expect(away["recovery"] == "retry")
        house.provider.goAway(false)

        var fixed = try APIHouse.account("work")
        fixed.redirectURI = "http://127.0.0.1:1/"
        try await house.configure([fixed])
        let taken = await house.ask("POST", target)
        #expect(taken.code == "port_in_use")
        fixed.oauth.clientSecret = Account.SecretSource { () throws(BrokerError) in
            throw .misconfigured(.any)
        }
        try await house.configure([fixed])
        #expect(await house.ask("POST", target).code == "invalid_configuration")
        #expect(await house.ask("POST", target, #"{"method":"password"}"#).code == "method_unsupported")
    }

    @Test func `another person's sign-in changes nothing, unless a switch was asked for`() async throws {
        let house = try await APIHouse.signedIn()
        let refused = try await house.signIn(as: "bob")
        #expect(refused["status"] == "failed")
        #expect(refused["error"]?["code"] == "state_conflict")
        #expect(refused["error"]?["status"] == 409)
        #expect(await house.ask("GET", "/v1/accounts/work")["subject"] == "alice")
        let taken = try await house.signIn(as: "bob", #"{"switch_subject":true}"#)
        #expect(taken["status"] == "completed")
        #expect(await house.ask("GET", "/v1/accounts/work")["subject"] == "bob")
    }
}
