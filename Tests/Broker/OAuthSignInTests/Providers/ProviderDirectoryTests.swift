import OAuth
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `What providers say about themselves` {
    private func directory(_ house: House) -> ProviderDirectory {
        ProviderDirectory(http: house.network, work: house.work, clock: house.clock.clock)
    }

    @Test func `MD-06, OIDF-16: metadata are fetched once for all who wait, and kept for an hour`() async throws {
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

    @Test func `MD-06: cached metadata are used while the provider is away, and fetched again later`() async throws {
        let house = try await House()
        let directory = directory(house)
        let known = try await directory.metadata(of: House.account(), issuer: house.provider.origin)
        house.clock.advance(by: 3_600)
        house.provider.script(.metadata, .fail(.timedOut(host: "id.example")))
        for passed in [0, 0, 899] {
            house.clock.advance(by: passed)
            #expect(try await directory.metadata(of: House.account(), issuer: house.provider.origin) == known)
        }
        #expect(house.provider.count(.metadata) == 2)
        house.clock.advance(by: 1)
        _ = try await directory.metadata(of: House.account(), issuer: house.provider.origin)
        #expect(house.provider.count(.metadata) == 3)
    }

    @Test func `metadata whose endpoints fail are fetched again, less often if nobody asked`() async throws {
        let house = try await House()
        let directory = directory(house)
        for (passed, isRequested, count) in [
            (0, true, 1), (5, true, 2), (59, true, 2), (1, true, 3), (0, true, 3), (1_799, false, 3), (1, false, 4),
        ] {
            house.clock.advance(by: passed)
            await directory.doubt(House.account(), issuer: house.provider.origin, isRequested: isRequested)
            _ = try await directory.metadata(of: House.account(), issuer: house.provider.origin)
            #expect(house.provider.count(.metadata) == count)
        }
    }

    @Test func `a failed look-up is not remembered`() async throws {
        let house = try await House()
        let directory = directory(house)
        house.provider.script(.metadata, .status(503))
        let failure = await thrown(by: try await directory.metadata(of: House.account(), issuer: house.provider.origin))
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

    @Test func `OIDF-18, FAPI-03: metadata that name another issuer are refused`() async throws {
        let house = try await House()
        house.provider.behave { $0.metadata["issuer"] = "https://evil.example" }
        #expect(
            await thrown(by: try await house.broker.signIn(House.name, SignInRequest()))?.kind
                == "provider.invalidResponse")
    }

    @Test func `a rotated key is fetched once, and unknown keys do not make us ask more often`() async throws {
        let house = try await House.signedIn()
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
            #expect(await house.refreshFailure(isForced: true)?.kind == "provider.invalidResponse")
        }
        // The fetch before found new keys: another rotation may follow at once, so one more is made.
        #expect(house.provider.count(.keys) == 3)
        house.clock.advance(by: 30)
        #expect(await house.refreshFailure(isForced: true) == nil)
        let published = try TokenMint(kid: "k3")
        house.provider.behave { $0.mint = published }
        #expect(await house.refreshFailure(isForced: true) == nil)
        #expect(house.provider.count(.keys) == 4)
    }

    @Test func `a key that is rotated right after the sign-in is found at once`() async throws {
        let house = try await House.signedIn()
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

    /// The document at the first place lacks these; then the second place answers.
    private func halves(_ house: House, _ second: FakeProvider.Turn?) {
        house.provider.script(
            .metadata, .change { $0.setting("revocation_endpoint", nil).setting("userinfo_endpoint", nil) })
        if let second { house.provider.script(.metadata, second) }
    }

    @Test func `what the first document lacks is taken from the second`() async throws {
        let house = try await House()
        halves(house, nil)
        let metadata = try await directory(house).metadata(of: House.account(), issuer: house.provider.origin)
        #expect(metadata.revocationEndpoint == "https://id.example/revoke")
        #expect(metadata.userinfoEndpoint == "https://id.example/userinfo")
        #expect(
            house.provider.requests.map(\.url) == [
                "https://id.example/.well-known/openid-configuration",
                "https://id.example/.well-known/oauth-authorization-server",
            ])
    }

    @Test(
        arguments: [
            .status(404), .status(500), .status(200, "<html>"), .fail(.timedOut(host: "id.example")),
            .setting("issuer", "https://evil.example"), .setting("token_endpoint", "https://id.example/elsewhere"),
        ] as [FakeProvider.Turn])
    func `a second document that cannot be fetched or has another issuer is ignored`(turn: FakeProvider.Turn)
        async throws
    {
        let house = try await House()
        halves(house, turn)
        let metadata = try await directory(house).metadata(of: House.account(), issuer: house.provider.origin)
        #expect(metadata.tokenEndpoint == "https://id.example/token")
        #expect(metadata.revocationEndpoint == nil && metadata.userinfoEndpoint == nil)
        #expect(house.provider.count(.metadata) == 2)
    }

    @Test func `members of the second document are used while it is away, not after its removal`() async throws {
        let house = try await House()
        let directory = directory(house)
        for (second, endpoint) in [
            (nil, "https://id.example/revoke"), (.status(503), "https://id.example/revoke"),
            (.fail(.timedOut(host: "id.example")), "https://id.example/revoke"), (.status(404), nil),
        ] as [(FakeProvider.Turn?, String?)] {
            halves(house, second)
            let metadata = try await directory.metadata(of: House.account(), issuer: house.provider.origin)
            #expect(metadata.revocationEndpoint == endpoint)
            house.clock.advance(by: 3_600)
        }
        #expect(house.provider.count(.metadata) == 8)
    }
}
