import OAuth
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `GitHub, as it answers` {
    private func house(_ scopes: [String] = ["repo", "gist", "read:user"]) async throws -> PresetHouse {
        try await PresetHouse(.github, metadata: "endpoints", hasSecret: true, scopes: scopes)
    }

    @Test(arguments: ["token-first", "token-form"])
    func `a token of an OAuth app has no end, and its scopes have spaces between`(answer: String) async throws {
        let house = try await house()
        let (verdict, query, flow) = try await house.signIn(answer)
        #expect(isCompleted(verdict))
        #expect(flow.authorizationURL.hasPrefix("https://github.com/login/oauth/authorize?"))
        #expect(query["redirect_uri"] == "http://127.0.0.1:4711/callback/mine" && query["nonce"] == nil)
        #expect(query["code_challenge_method"] == "S256")
        let request = try #require(house.provider.requests.first)
        #expect(request.accept == "application/json" && request.form["client_secret"] == "hush")
        #expect(request.form["code_verifier"]?.isEmpty == false)
        #expect(try await house.session.scope == "gist read:user repo")
        #expect(try await house.session.tokens[.own]?.scope == "gist read:user repo")
        #expect(try await house.view.expiresAt == nil)
        house.clock.advance(by: 400 * 86_400)
        #expect(try await house.token(minValid: 600) == "gho_16C7e42F292c6912E7710c838347Ae178B4a")
        #expect(try await house.view.error == nil)
        #expect(house.provider.requests.count == 2)
        let refusal = await thrown(by: try await house.broker.refresh(PresetHouse.name))
        #expect(refusal?.kind == "conflict")
    }

    @Test func `the subject is the number in the API's response`() async throws {
        let house = try await house()
        try await house.signIn()
        let request = try #require(house.provider.requests(to: "https://api.github.com/user").first)
        #expect(request.authorization == "Bearer gho_16C7e42F292c6912E7710c838347Ae178B4a")
        #expect(try await house.view.subject == "583231")
        #expect(try await house.view.user?["preferred_username"]?.string == "octo")
        #expect(try await house.view.user?["email"] == nil)
        // Somebody else at the same browser.
        house.provider.play("userinfo", "userinfo-other")
        guard case .failed(_, .conflict) = try await house.signIn().verdict else { throw Unexpected() }
        #expect(try await house.view.subject == "583231")
    }

    @Test func `an API without a usable response does not fail the sign-in`() async throws {
        let house = try await house()
        house.provider.play("userinfo", "userinfo-limited")
        #expect(isCompleted(try await house.signIn().verdict))
        #expect(try await house.view.subject == nil)
    }

    @Test(arguments: ["token-app", "token-app-texts"])
    func `a token of a GitHub App lasts eight hours, and both tokens are exchanged`(answer: String) async throws {
        let house = try await house([])
        let (verdict, query, _) = try await house.signIn(answer)
        #expect(isCompleted(verdict) && query["scope"] == nil)
        #expect(try await house.view.expiresAt?.seconds == house.clock.now + 28_800)
        #expect(try await house.session.end?.remaining(at: house.clock.bootInstant) ?? .zero > .seconds(15_800_000))
        for _ in 0..<2 {
            house.clock.advance(by: 28_800)
            house.provider.play("token", "refresh")
            #expect(try await house.token() == "ghu_second")
        }
        #expect(house.presented.count == 2 && house.presented[1] == "ghr_second")
        #expect(try await house.session.end?.remaining(at: house.clock.bootInstant) == .seconds(15_897_600))
    }

    @Test(arguments: ["error-code", "error-code-form"])
    func `an error with status 200 is one`(answer: String) async throws {
        let house = try await house()
        let (verdict, _, _) = try await house.signIn(answer)
        guard case .failed(_, .provider(.refused("bad_verification_code", let message))) = verdict
        else { throw Unexpected() }
        #expect(message == "The code passed is incorrect or expired.")
        #expect(await house.failure() == .signInRequired(PresetHouse.name))
    }

    @Test(arguments: ["error-refresh", "error-refresh-form"])
    func `a bad refresh token ends the session`(answer: String) async throws {
        let house = try await house([])
        try await house.signIn("token-app")
        guard case .sessionExpired(PresetHouse.name, nil, _, _)? = await house.failure(of: answer, after: 28_800)
        else { throw Unexpected() }
    }

    @Test(arguments: ["error-client", "error-redirect", "error-email", "error-page", "error-not-found", "error-code"])
    func `nothing else does`(answer: String) async throws {
        let house = try await house([])
        try await house.signIn("token-app")
        #expect(await house.failure(of: answer, after: 28_800) != nil)
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `a denial by the user is access_denied, and a wrong redirect URI is not`() async throws {
        let house = try await house()
        for (answer, isPersons) in [("callback-denied", true), ("callback-redirect", false)] {
            let (verdict, _, _) = try await house.signIn(callback: answer)
            guard case .failed(_, let error) = verdict else { throw Unexpected() }
            #expect((error == .accessDenied(PresetHouse.name)) == isPersons)
        }
    }

    @Test func `there is no ID token, which is said before the browser opens`() async throws {
        let house = try await house(["openid", "repo"])
        let refusal = await thrown(by: try await house.broker.signIn(PresetHouse.name, SignInRequest()))
        guard case .unusableSetting(let setting)? = refusal else { throw Unexpected() }
        #expect(setting.setting == "scopes" && setting.reason.holds("openid"))
    }
}

@Suite(.timeLimit(.minutes(1))) struct `GitLab, as it answers` {
    private func house(_ preset: ProviderPreset = .gitlab(host: "gitlab.com")) async throws -> PresetHouse {
        try await PresetHouse(preset, scopes: ["openid", "email", "read_api"])
    }

    @Test func `two hours, and both tokens are exchanged without another ID token`() async throws {
        let house = try await house()
        let (verdict, query, flow) = try await house.signIn()
        #expect(isCompleted(verdict))
        #expect(flow.authorizationURL.hasPrefix("https://gitlab.com/oauth/authorize?"))
        #expect(query["code_challenge_method"] == "S256")
        #expect(try await house.view.expiresAt?.seconds == house.clock.now + 7_200)
        #expect(try await house.view.user?["preferred_username"]?.string == "ada")
        let request = try #require(house.provider.requests(to: "https://gitlab.com/oauth/token").first)
        #expect(request.form["client_secret"] == nil && request.form["client_id"] == "ringback")
        for _ in 0..<2 {
            house.clock.advance(by: 7_200)
            house.provider.play("token", "refresh")
            #expect(await house.failure() == nil)
        }
        #expect(house.presented.map { $0.prefix(6) } == ["8257e6", "second"])
        #expect(try await house.view.subject == "1234567")
    }

    @Test(arguments: ["error-used", "error-used-401"])
    func `a refresh token that was used ends the session`(answer: String) async throws {
        let house = try await house()
        try await house.signIn()
        guard case .sessionExpired(PresetHouse.name, nil, _, _)? = await house.failure(of: answer, after: 7_200)
        else { throw Unexpected() }
    }

    @Test func `too many requests are answered with patience`() async throws {
        let house = try await house()
        try await house.signIn()
        #expect(await house.failure(of: "error-later", after: 7_200) == .provider(.rateLimited(retryAfter: 60)))
        #expect(await house.failure() == .provider(.rateLimited(retryAfter: 60)))
        #expect(house.presented.count == 1)
        #expect(await house.failure(of: "refresh", after: 61) == nil)
    }

    @Test func `a secret that is missing is no end of the session`() async throws {
        let house = try await house()
        try await house.signIn()
        guard case .provider(.refused("invalid_client", _)) = await house.failure(of: "error-client", after: 7_200)
        else { throw Unexpected() }
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `sign-out takes both tokens back`() async throws {
        let house = try await house()
        try await house.signIn()
        house.provider.play("revocation", "revoked", "revoked")
        #expect(try await house.broker.signOut(PresetHouse.name).account.error == nil)
        #expect(house.provider.requests(to: "https://gitlab.com/oauth/revoke").count == 2)
    }
}
