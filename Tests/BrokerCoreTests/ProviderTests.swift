import HTTPMessages
import OAuth
import Secrets
import StrictJSON
import Testing

@testable import BrokerCore

@Suite(.timeLimit(.minutes(1))) struct `A provider in a sign-in` {
    private func verdict(_ prepare: (FakeProvider) throws -> Void) async throws -> (House, BrokerError?) {
        let house = try await House()
        try prepare(house.provider)
        guard case .failed(_, let error) = try await house.signIn() else { return (house, nil) }
        return (house, error)
    }

    @Test func `a userinfo about somebody else fails it`() async throws {
        let (house, error) = try await verdict { $0.behave { $0.userinfo["sub"] = "mallory" } }
        guard case .provider(.invalidAnswer) = error else { throw Unexpected() }
        #expect(await house.failure() == .signInRequired(House.name))
        #expect(await house.vault.log.isEmpty)
    }

    @Test(
        arguments: [
            .status(500), .status(200, "<html>"), .status(200, ""), .fail(.timedOut(host: "id.example")),
            .answer(200, "ey.ey.ey", [("Content-Type", "application/jwt")]), .setting("sub", nil),
        ] as [FakeProvider.Turn])
    func `a userinfo that cannot be had is done without`(turn: FakeProvider.Turn) async throws {
        let (house, error) = try await verdict { $0.script(.userinfo, turn) }
        #expect(error == nil)
        #expect(try await house.view.subject == "alice")
        #expect(try await house.view.user?["email"]?.string == "alice@example.org")
    }

    @Test func `userinfo adds to what the ID token says`() async throws {
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
        guard case .provider(.invalidAnswer) = error else { throw Unexpected() }
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
        guard case .provider(.invalidAnswer) = error else { throw Unexpected() }
    }

    @Test func `a dead code is the provider's refusal, and harms no held session`() async throws {
        let house = try await House()
        try await house.signIn()
        house.provider.script(.token, .invalidGrant)
        let verdict = try await house.signIn()
        guard case .failed(_, .provider(.refused("invalid_grant", _))) = verdict else { throw Unexpected() }
        #expect(await house.failure() == nil)
    }

    // MARK: How we show who we are

    private func registration(
        secret: String?, _ authentication: ClientAuthentication? = nil, offered: [JSON]? = nil
    ) async throws -> Result<ClientRegistration, BrokerError> {
        let house = try await House()
        if let offered {
            house.provider.behave { $0.metadata["token_endpoint_auth_methods_supported"] = .array(offered) }
        }
        var account = House.account()
        account.clientSecret = secret.map { text in Account.SecretSource { () throws(BrokerError) in Secret(text) } }
        account.clientAuthentication = authentication
        let directory = ProviderDirectory(http: house.network, work: house.work, clock: house.clock.clock)
        let provider = Provider(account: account, http: house.network, directory: directory, clock: house.clock.clock)
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
}

@Suite(.timeLimit(.minutes(1))) struct `What providers say about themselves` {
    private func directory(_ house: House) -> ProviderDirectory {
        ProviderDirectory(http: house.network, work: house.work, clock: house.clock.clock)
    }

    @Test func `metadata are fetched once for all who wait, and kept for an hour`() async throws {
        let house = try await House()
        let directory = directory(house)
        house.provider.hold(.metadata)
        await withTaskGroup { group in
            for _ in 0..<50 {
                group.addTask { _ = try? await directory.metadata(of: House.account(), issuer: house.provider.origin) }
            }
            #expect(await house.provider.arrived(.metadata, 1))
            house.provider.release(.metadata)
        }
        house.clock.advance(by: 3_599)
        _ = try await directory.metadata(of: House.account(), issuer: house.provider.origin)
        #expect(house.provider.count(.metadata) == 1)
        house.clock.advance(by: 1)
        _ = try await directory.metadata(of: House.account(), issuer: house.provider.origin)
        #expect(house.provider.count(.metadata) == 2)
    }

    @Test func `a known provider that does not confirm its metadata is believed, and asked again a minute later`()
        async throws
    {
        let house = try await House()
        let directory = directory(house)
        let known = try await directory.metadata(of: House.account(), issuer: house.provider.origin)
        house.clock.advance(by: 3_600)
        house.provider.script(.metadata, .fail(.timedOut(host: "id.example")))
        for passed in [0, 0, 59] {
            house.clock.advance(by: passed)
            #expect(try await directory.metadata(of: House.account(), issuer: house.provider.origin) == known)
        }
        #expect(house.provider.count(.metadata) == 2)
        house.clock.advance(by: 1)
        _ = try await directory.metadata(of: House.account(), issuer: house.provider.origin)
        #expect(house.provider.count(.metadata) == 3)
    }

    @Test func `a failed look-up is not remembered`() async throws {
        let house = try await House()
        let directory = directory(house)
        house.provider.script(.metadata, .status(503))
        let failure = await error { () throws(BrokerError) in
            try await directory.metadata(of: House.account(), issuer: house.provider.origin)
        }
        #expect(failure == .provider(.unavailable(status: 503, retryAfter: nil)))
        _ = try await directory.metadata(of: House.account(), issuer: house.provider.origin)
        #expect(house.provider.count(.metadata) == 2)
    }

    @Test func `another trust is another provider`() async throws {
        let house = try await House()
        let directory = directory(house)
        var account = House.account()
        _ = try await directory.metadata(of: account, issuer: house.provider.origin)
        account.trust = ServerTrust(pinnedPublicKeys: ["sha256//x"])
        _ = try await directory.metadata(of: account, issuer: house.provider.origin)
        #expect(house.provider.count(.metadata) == 2)
    }

    @Test func `metadata that name another issuer are refused`() async throws {
        let house = try await House()
        house.provider.behave { $0.metadata["issuer"] = "https://evil.example" }
        guard
            case .provider(.invalidAnswer) = await error({ () throws(BrokerError) in
                try await house.broker.signIn(House.name, SignInRequest())
            })
        else { throw Unexpected() }
    }

    @Test func `a rotated key is fetched once, and unknown keys do not make us ask more often`() async throws {
        let house = try await House()
        try await house.signIn()
        #expect(house.provider.count(.keys) == 1)
        let rotated = try TokenMint(kid: "k2")
        house.provider.behave { $0.mint = rotated }
        house.clock.advance(by: 3_590)
        _ = try await house.token(minValid: 60)
        #expect(house.provider.count(.keys) == 2)
        // A kid that nobody has published.
        let stranger = try TokenMint(kid: "k3")
        for _ in 0..<3 {
            let token = try stranger.token(house.provider.claims(of: "alice"))
            house.provider.script(.token, .setting("id_token", .string(token)))
            guard case .provider(.invalidAnswer) = await house.refreshFailure(isForced: true) else {
                throw Unexpected()
            }
        }
        #expect(house.provider.count(.keys) == 2)
        house.clock.advance(by: 30)
        #expect(await house.refreshFailure(isForced: true) == nil)
        let published = try TokenMint(kid: "k3")
        house.provider.behave { $0.mint = published }
        #expect(await house.refreshFailure(isForced: true) == nil)
        #expect(house.provider.count(.keys) == 3)
    }

    @Test func `a key that is rotated right after the sign-in is found at once`() async throws {
        let house = try await House()
        try await house.signIn()
        let rotated = try TokenMint(kid: "k2")
        house.provider.behave { $0.mint = rotated }
        #expect(await house.refreshFailure(isForced: true) == nil)
        #expect(house.provider.count(.keys) == 2)
    }

    @Test func `a provider that hangs delays no other account`() async throws {
        let house = try await House(also: { [try FakeProvider("https://other.example", clock: $0)] })
        let second = House.named("second")
        await house.broker.configure([House.account(), House.account(second, issuer: "https://other.example")])
        try await house.signIn()
        for endpoint in FakeProvider.Endpoint.allCases { house.provider.hold(endpoint) }
        house.clock.advance(by: 3_600)
        let hanging = Task { await house.failure() }
        #expect(await eventually { house.provider.requests.count > 4 })
        let other = try #require(house.network.provider("https://other.example"))
        guard case .completed = try await house.signIn(second, as: "bob", at: other) else { throw Unexpected() }
        #expect(await house.failure(second) == nil)
        _ = try await house.broker.refresh(second, isForced: true)
        _ = try await house.broker.signOut(second)
        #expect(await house.broker.accounts().map(\.state) == [.unauthenticated, .refreshing])
        hanging.cancel()
        #expect(await hanging.value == .cancelled)
        for endpoint in FakeProvider.Endpoint.allCases { house.provider.release(endpoint) }
    }
}
