import OAuth
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `Google, as it answers` {
    private func house(_ parameters: [(String, String)]? = nil) async throws -> PresetHouse {
        try await PresetHouse(
            .google, hasSecret: true, scopes: ["openid", "email", "https://mail.google.com/"], parameters: parameters)
    }

    @Test func `a sign-in asks for offline access, and refreshes keep the one refresh token`() async throws {
        let house = try await house()
        let (verdict, query, flow) = try await house.signIn()
        #expect(isCompleted(verdict))
        #expect(flow.authorizationURL.hasPrefix("https://accounts.google.com/o/oauth2/v2/auth?"))
        #expect(query["access_type"] == "offline" && query["code_challenge_method"] == "S256")
        #expect(query["redirect_uri"] == "http://127.0.0.1:4711/callback/mine")
        #expect(query["scope"] == "openid email https://mail.google.com/" && query["prompt"] == nil)
        let request = try #require(house.provider.requests(to: "https://oauth2.googleapis.com/token").first)
        #expect(request.form["client_secret"] == "hush" && request.form["client_id"] == "ringback")
        #expect(request.authorization == nil && request.form["code"] == "4/0AVMBsJi_x-")
        #expect(try await house.token() == "ya29.a0AcM612x-first_1")
        #expect(try await house.view.user?["email"]?.string == "ada@example.org")
        #expect(try await house.view.subject == "110169484474386276334")
        for _ in 0..<2 {
            house.clock.advance(by: 3_600)
            house.provider.play("token", "refresh")
            #expect(try await house.token() == "ya29.a0AcM612x-second_1")
        }
        #expect(house.presented == ["1//09dFx-refresh_1", "1//09dFx-refresh_1"])
        let refresh = try #require(house.provider.requests.last { $0.form["grant_type"] == "refresh_token" })
        #expect(refresh.form["scope"] == nil && refresh.form["client_secret"] == "hush")
        let scope = try await house.session.scope?.split(separator: " ")
        #expect(scope?.contains("https://www.googleapis.com/auth/userinfo.email") == true)
    }

    @Test func `a second sign-in brings no refresh token, and the first one's goes on`() async throws {
        let house = try await house()
        try await house.signIn()
        let (verdict, _, _) = try await house.signIn("token-again")
        #expect(isCompleted(verdict))
        #expect(try await house.token() == "ya29.a0AcM612x-again_1")
        house.clock.advance(by: 3_600)
        house.provider.play("token", "refresh")
        #expect(try await house.token() == "ya29.a0AcM612x-second_1")
        #expect(house.presented == ["1//09dFx-refresh_1"])
    }

    @Test func `consent that was given before yields an hour, and then the advice how to get more`() async throws {
        let house = try await house()
        let (verdict, _, _) = try await house.signIn("token-again")
        #expect(isCompleted(verdict))
        #expect(try await house.token() == "ya29.a0AcM612x-again_1")
        #expect(try await house.view.error == nil)
        #expect(try await house.view.state == .authenticated)
        house.clock.advance(by: 3_600)
        for error in [await house.failure(), await house.failure(minValid: 60), try await house.view.error] {
            guard case .sessionRanOut(PresetHouse.name, let advice?) = error else { throw Unexpected() }
            #expect(advice.oauth == .tokenAtFirstConsent)
        }
        let refusal = await thrown(by: try await house.broker.refresh(PresetHouse.name))
        guard case .conflict(let reason, nil) = refusal else { throw Unexpected() }
        let advice = Reason.kind(KindFact(OAuthReason.tokenAtFirstConsent))
        #expect(reason == .session(.notRefreshable(PresetHouse.name, advice: advice)))
        #expect(house.presented.isEmpty)
        // The way out.
        try await house.signIn()
        #expect(try await house.view.error == nil)
        #expect(await house.failure(of: "refresh", after: 3_600) == nil)
    }

    @Test func `who asks for consent each time is told nothing about it`() async throws {
        let house = try await house([("access_type", "offline"), ("prompt", "consent")])
        let (_, query, _) = try await house.signIn("token-again")
        #expect(query["prompt"] == "consent")
        house.clock.advance(by: 3_600)
        #expect(await house.failure() == .sessionRanOut(PresetHouse.name, advice: nil))
    }

    @Test func `an app in testing has a week, of which its people are told`() async throws {
        let house = try await house()
        try await house.signIn("token-testing")
        let end = try #require(try await house.session.end)
        #expect(end.remaining(at: house.clock.bootInstant) == .seconds(604_799))
    }

    @Test(arguments: ["error-revoked", "error-bad-request", "error-rapt"])
    func `a grant that was taken back ends the session`(answer: String) async throws {
        let house = try await house()
        try await house.signIn()
        guard case .sessionExpired(PresetHouse.name, nil, _, _)? = await house.failure(of: answer, after: 3_600)
        else { throw Unexpected() }
        #expect(try await house.view.state == .unauthenticated)
    }

    @Test(arguments: ["error-client", "error-client-deleted", "error-policy", "error-later", "error-secret-missing"])
    func `whatever else goes wrong keeps it`(answer: String) async throws {
        let house = try await house()
        try await house.signIn()
        #expect(await house.failure(of: answer, after: 3_600) != nil)
        #expect(try await house.view.state == .authenticated)
        #expect(await house.failure(of: "refresh", after: 600) == nil)
    }

    @Test func `a sign-out revokes both tokens, and the second is revoked together with the first`() async throws {
        let house = try await house()
        try await house.signIn()
        house.provider.play("revocation", "revoked", "revoked-before")
        #expect(try await house.broker.signOut(PresetHouse.name).account.error == nil)
        let revoked = house.provider.requests(to: "https://oauth2.googleapis.com/revoke").map { $0.form["token"] }
        #expect(revoked == ["1//09dFx-refresh_1", "ya29.a0AcM612x-first_1"])
    }

    @Test(arguments: [("callback-denied", true), ("callback-organization", false)])
    func `a no in the browser is said as it is`(answer: String, isPersons: Bool) async throws {
        let house = try await house()
        guard case .failed(_, let error) = try await house.signIn(callback: answer).verdict else { throw Unexpected() }
        #expect((error == .accessDenied(PresetHouse.name)) == isPersons)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `Microsoft, as it answers` {
    private let scopes = ["openid", "profile", "email", "offline_access", "https://graph.microsoft.com/User.Read"]

    private func house(_ tenant: String = "common", _ metadata: String = "metadata") async throws -> PresetHouse {
        try await PresetHouse(try ProviderPreset(name: "microsoft", tenant: tenant), metadata: metadata, scopes: scopes)
    }

    @Test(arguments: [
        ("common", "metadata"), ("organizations", "metadata-organizations"),
        ("F8CDEF31-A31E-4B4A-93E4-5F571E91255A", "metadata-tenant"),
    ])
    func `a sign-in comes back to localhost, and its directory counts`(tenant: String, metadata: String) async throws {
        let house = try await house(tenant, metadata)
        let (verdict, query, flow) = try await house.signIn()
        #expect(isCompleted(verdict))
        #expect(flow.authorizationURL.hasPrefix("https://login.microsoftonline.com/\(tenant.lowercased())/"))
        #expect(query["redirect_uri"] == "http://localhost:4711" && query["response_mode"] == nil)
        let request = try #require(house.provider.requests.first { $0.form["grant_type"] == "authorization_code" })
        #expect(request.form["client_secret"] == nil && request.form["client_id"] == "ringback")
        #expect(request.form["redirect_uri"] == "http://localhost:4711")
        #expect(try await house.token() == "eyJ0eXAi.first.x")
        #expect(try await house.view.user?["preferred_username"]?.string == "ada@contoso.example")
        let issuer = try await house.session.identity?.issuer
        #expect(issuer == "https://login.microsoftonline.com/f8cdef31-a31e-4b4a-93e4-5f571e91255a/v2.0")
    }

    @Test func `refresh tokens are exchanged, and the scopes are not repeated`() async throws {
        let house = try await house()
        try await house.signIn()
        for _ in 0..<2 {
            house.clock.advance(by: 4_790)
            house.provider.play("token", "refresh")
            #expect(try await house.token() == "eyJ0eXAi.second.x")
        }
        #expect(house.presented == ["1.AXoAMe.first-r_1", "1.AXoAMe.second-r_2"])
        #expect(house.provider.requests.allSatisfy { $0.form["refresh_token"] == nil || $0.form["scope"] == nil })
        house.clock.advance(by: 4_790)
        house.provider.play("token", "refresh-texts")
        #expect(try await house.token() == "eyJ0eXAi.texts.x")
    }

    @Test(arguments: ["error-70008", "error-700082", "error-50173"])
    func `a dead refresh token ends the session`(answer: String) async throws {
        let house = try await house()
        try await house.signIn()
        guard case .sessionExpired(PresetHouse.name, nil, _, _)? = await house.failure(of: answer, after: 4_000)
        else { throw Unexpected() }
    }

    @Test(arguments: ["error-50076", "error-50076-grant", "error-50079", "error-53003"])
    func `a wish for more than the refresh token leaves the session, and says why`(answer: String) async throws {
        let house = try await house()
        try await house.signIn()
        guard
            case .provider(.refused("interaction_required", let message?)) = await house.failure(
                of: answer, after: 4_000)

        else { throw Unexpected() }
        #expect(message.hasPrefix("AADSTS"))
        #expect(try await house.view.state == .authenticated)
        // Back where the organization allows it, say.
        house.clock.advance(by: 600)
        house.provider.play("token", "refresh")
        #expect(try await house.token() == "eyJ0eXAi.second.x")
    }

    @Test func `a request for a scope without consent fails, and the session stays`() async throws {
        let house = try await house()
        try await house.signIn()
        house.provider.play("token", "error-65001")
        var query = SessionQuery()
        query.key = TokenKey(scopes: ["https://outlook.office.com/IMAP.AccessAsUser.All"])
        let wanted = query
        let refusal = await thrown(by: try await house.broker.session(PresetHouse.name, wanted))
        guard case .provider(.refused("consent_required", _)) = refusal else { throw Unexpected() }
        #expect(try await house.view.error == nil)
        #expect(try await house.token() == "eyJ0eXAi.first.x")
        #expect(house.presented.count == 1)
    }

    @Test(arguments: ["error-7000215", "error-7000218", "error-700016", "error-70011", "error-90033"])
    func `a mistake of the registration keeps the session`(answer: String) async throws {
        let house = try await house()
        try await house.signIn()
        #expect(await house.failure(of: answer, after: 4_000) != nil)
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `a sign-out succeeds at a provider without a revocation endpoint`() async throws {
        let house = try await house()
        try await house.signIn()
        #expect(try await house.broker.signOut(PresetHouse.name).account.error == nil)
        #expect(try await house.view.state == .unauthenticated)
    }

    @Test func `a consent that only an administrator can give is said in Microsoft's words`() async throws {
        let house = try await house()
        let (verdict, _, _) = try await house.signIn(callback: "callback-consent")
        guard case .failed(_, .provider(.refused("consent_required", let message?))) = verdict
        else { throw Unexpected() }
        #expect(message.hasPrefix("AADSTS65001: "))
    }
}
