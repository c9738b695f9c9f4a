import OAuth
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `A provider in a sign-in` {
    private func verdict(_ prepare: (FakeProvider) throws -> Void) async throws -> (House, BrokerError?) {
        let house = try await House()
        try prepare(house.provider)
        guard case .failed(_, let error) = try await house.signIn() else { return (house, nil) }
        return (house, error)
    }

    @Test func `a userinfo response about another user fails it`() async throws {
        let (house, error) = try await verdict { $0.behave { $0.userinfo["sub"] = "mallory" } }
        #expect(error?.kind == "provider.invalidResponse")
        #expect(await house.failure() == .signInRequired(House.name))
        #expect(await house.vault.log.isEmpty)
    }

    @Test(
        arguments: [
            .status(500), .status(200, "<html>"), .status(200, ""), .fail(.timedOut(host: "id.example")),
            .answer(200, "ey.ey.ey", [("Content-Type", "application/jwt")]), .setting("sub", nil),
        ] as [FakeProvider.Turn])
    func `a userinfo response that cannot be fetched is ignored`(turn: FakeProvider.Turn) async throws {
        let (house, error) = try await verdict { $0.script(.userinfo, turn) }
        #expect(error == nil)
        #expect(try await house.view.subject == "alice")
        #expect(try await house.view.user?["email"]?.string == "alice@example.org")
    }

    @Test func `OIDF-13: userinfo adds to what the ID token says`() async throws {
        let (house, _) = try await verdict {
            $0.behave { $0.userinfo = ["name": "Алиса", "secret_claim": "x"] }
        }
        let user = try #require(try await house.view.user)
        #expect(user["name"]?.string == "Алиса")
        #expect(user["sub"]?.string == "alice")
        #expect(user["secret_claim"] == nil)
    }

    @Test func `a missing ID token with the scope openid fails it`() async throws {
        let (house, error) = try await verdict { $0.script(.token, .setting("id_token", nil)) }
        #expect(error?.kind == "provider.invalidResponse")
        #expect(await house.vault.log.isEmpty)
    }

    @Test(arguments: ["nonce", "iss", "aud", "sub"])
    func `an ID token with another claim than expected fails it`(claim: String) async throws {
        let mint = try TokenMint()
        let (_, error) = try await verdict { provider in
            provider.behave { $0.mint = mint }
            let claims = provider.claims(of: "alice", nonce: "x").setting(claim, claim == "sub" ? nil : "other")
            provider.script(.token, .setting("id_token", .string(try mint.token(claims))))
        }
        #expect(error?.kind == "provider.invalidResponse")
    }

    @Test func `a dead code is the provider's refusal, and harms no held session`() async throws {
        let house = try await House.signedIn()
        house.provider.script(.token, .invalidGrant)
        let verdict = try await house.signIn()
        guard case .failed(_, .provider(.refused("invalid_grant", _))) = verdict else { throw Unexpected() }
        #expect(await house.failure() == nil)
    }

    private func registration(
        secret: String?, _ authentication: ClientAuthentication? = nil, offered: [JSON]? = nil
    ) async throws -> Result<ClientRegistration, BrokerError> {
        let house = try await House()
        if let offered {
            house.provider.behave { $0.metadata["token_endpoint_auth_methods_supported"] = .array(offered) }
        }
        var account = House.account()
        account.oauth.clientSecret = secret.map { text in
            Account.SecretSource { () throws(BrokerError) in Secret(text) }
        }
        account.oauth.clientAuthentication = authentication
        let directory = ProviderDirectory(http: house.network, work: house.work, clock: house.clock.clock)
        let provider = Provider(
            account: account, rules: account.oauth, http: house.network, directory: directory,
            vault: house.vault, clock: house.clock.clock,
            proofs: Prover(account, by: account.oauth, house.broker.tools))
        do throws(BrokerError) {
            return .success(try await provider.registration(try await provider.metadata()))
        } catch {
            return .failure(error)
        }
    }

    @Test func `a secret is sent as configured, else as the provider takes it`() async throws {
        #expect(try await registration(secret: nil).get().authentication == .none)
        #expect(try await registration(secret: "s").get().authentication == .clientSecretBasic)
        #expect(
            try await registration(secret: "s", offered: ["client_secret_post"]).get().authentication
                == .clientSecretPost)
        #expect(
            try await registration(secret: "s", offered: ["private_key_jwt"]).get().authentication
                == .clientSecretBasic)
        #expect(
            try await registration(secret: "s", .clientSecretBasic, offered: ["client_secret_post"]).get()
                .authentication == .clientSecretBasic)
    }

    @Test func `a secret that is missing or empty is the configuration's mistake`() async throws {
        for result in [
            try await registration(secret: nil, .clientSecretPost), try await registration(secret: ""),
        ] {
            guard case .failure(.misconfigured) = result else { throw Unexpected() }
        }
    }

    private let signed = "application/jwt"

    private func signedUserinfo(
        _ change: (JSON, House) throws -> JSON, by mint: TokenMint? = nil
    ) async throws -> (House, CallbackVerdict) {
        let house = try await House()
        let own = try TokenMint()
        house.provider.behave { $0.mint = own }
        let claims: JSON = [
            "iss": .string(house.provider.origin), "aud": "ringback", "sub": "alice", "name": "Алиса",
        ]
        let token = try (mint ?? own).token(try change(claims, house))
        house.provider.script(.userinfo, .answer(200, token, [("Content-Type", signed)]))
        return (house, try await house.signIn())
    }

    @Test func `a signed userinfo adds to what the ID token says`() async throws {
        let (house, verdict) = try await signedUserinfo({ claims, _ in claims })
        guard case .completed = verdict else { throw Unexpected() }
        #expect(try await house.view.user?["name"]?.string == "Алиса")
        #expect(try await house.view.user?["email"]?.string == "alice@example.org")
    }

    @Test func `a signed userinfo response about another user fails the sign-in`() async throws {
        let (house, verdict) = try await signedUserinfo({ claims, _ in claims.setting("sub", "mallory") })
        guard case .failed(_, .provider(.invalidResponse)) = verdict else { throw Unexpected() }
        #expect(await house.vault.log.isEmpty)
    }

    @Test(arguments: ["iss", "aud"])
    func `a signed userinfo response of another issuer or for another client is ignored`(claim: String) async throws {
        let (house, verdict) = try await signedUserinfo({ claims, _ in claims.setting(claim, "other") })
        guard case .completed = verdict else { throw Unexpected() }
        #expect(try await house.view.user?["name"] == nil)
        // A stranger's signature proves nothing, not even that it is about somebody else.
        let (stranger, second) = try await signedUserinfo(
            { claims, _ in claims.setting("sub", "mallory") }, by: try TokenMint(kid: "k1"))
        guard case .completed = second else { throw Unexpected() }
        #expect(try await stranger.view.user?["name"] == nil)
        #expect(try await stranger.view.subject == "alice")
    }

    @Test func `a userinfo signed with a key that is new is looked up once`() async throws {
        let house = try await House()
        let (old, new) = (try TokenMint(), try TokenMint(kid: "k2"))
        house.provider.behave { $0.mint = old }
        let claims: JSON = ["iss": .string(house.provider.origin), "aud": "ringback", "sub": "alice", "name": "A"]
        let token = try new.token(claims)
        house.provider.script(.keys, .setting("keys", [old.jwk]), .setting("keys", [old.jwk, new.jwk]))
        house.provider.script(.userinfo, .answer(200, token, [("Content-Type", signed)]))
        guard case .completed = try await house.signIn() else { throw Unexpected() }
        #expect(try await house.view.user?["name"]?.string == "A")
        #expect(house.provider.count(.keys) == 2)
    }

    @Test func `a callback answers no flow of an account that does not accept its sender`() async throws {
        let house = try await House()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        let callback = try house.provider.consent(flow.authorizationURL)
        guard case .ignored = await house.broker.receive(callback, for: []) else { throw Unexpected() }
        #expect(await house.broker.receive(callback, for: [House.name]) == .completed(flow: flow.id))
    }

    @Test(
        arguments: [(0, true), (60, true), (180, true), (181, false), (nil, false)] as [(Int?, Bool)])
    func `a max_age that was asked for is checked`(age: Int?, isGood: Bool) async throws {
        let house = try await House()
        let signedInAt = age.map { JSON.integer(house.clock.now - $0) }
        house.provider.behave { $0.claims["auth_time"] = .some(signedInAt) }
        let request = SignInRequest(parameters: [("max_age", "60")])
        let flow = try await house.broker.signIn(House.name, request).flow
        let verdict = await house.broker.receive(try house.provider.consent(flow.authorizationURL))
        switch verdict {
        case .completed: #expect(isGood)
        case .failed(_, .provider(.invalidResponse)): #expect(!isGood)
        default: throw Unexpected()
        }
        guard isGood else { return }
        // It was about the sign-in: a refresh later on does not ask for the person again.
        house.clock.advance(by: 7_200)
        #expect(await house.failure() == nil)
    }

    private static let directory = "72f988bf-86f1-41af-91ab-2d7cd011db47"
    private static let other = "9188040d-6c67-4c5b-b112-36a304b66dad"
    private static let template = "https://id.example/{tenantid}"
    private static func issuer(_ directory: String) -> String { "https://id.example/\(directory)" }

    private func shared(_ directory: String, tenant: String? = nil) async throws -> House {
        let house = try await House()
        await house.broker.configure([House.account(issuer: "https://id.example/common")])
        house.provider.behave { manners in
            manners.metadata["issuer"] = .string(`A provider in a sign-in`.template)
            manners.claims["iss"] = .string(`A provider in a sign-in`.issuer(directory))
            manners.claims["tid"] = .string(tenant ?? directory)
        }
        return house
    }

    @Test func `each of its directories signs in, and its session stays that directory's`() async throws {
        let house = try await shared(`A provider in a sign-in`.directory)
        guard case .completed = try await house.signIn() else { throw Unexpected() }
        let session = try #require(await house.vault.sessions.first)
        #expect(session.issuer == "https://id.example/common")
        #expect(session.identity?.issuer == `A provider in a sign-in`.issuer(`A provider in a sign-in`.directory))
        house.clock.advance(by: 3_600)
        #expect(await house.failure() == nil)
        // The same person's name in another directory is another person.
        house.clock.advance(by: 3_600)
        let other = `A provider in a sign-in`.other
        house.provider.behave { manners in
            manners.claims["iss"] = .string(`A provider in a sign-in`.issuer(other))
            manners.claims["tid"] = .string(other)
        }
        #expect(await house.failure()?.kind == "provider.invalidResponse")
    }

    @Test func `a directory that its token does not name twice alike is refused`() async throws {
        let house = try await shared(`A provider in a sign-in`.directory, tenant: `A provider in a sign-in`.other)
        guard case .failed(_, .provider(.invalidResponse)) = try await house.signIn() else { throw Unexpected() }
    }

    @Test func `a callback of something that is no directory is ignored`() async throws {
        let house = try await shared("evil")
        guard case .ignored = try await house.signIn() else { throw Unexpected() }
    }
}
