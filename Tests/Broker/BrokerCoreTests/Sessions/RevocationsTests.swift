import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(2))) struct `Telling a provider of a sign-out` {
    private func cut(_ house: House, _ count: Int = 2_000) {
        for endpoint in [FakeProvider.Endpoint.revocation, .metadata] {
            for _ in 0..<count { house.provider.script(endpoint, .fail(.unreachable(host: "h", reason: "r"))) }
        }
    }

    private func mend(_ house: House) {
        for endpoint in FakeProvider.Endpoint.allCases { house.provider.unscript(endpoint) }
    }

    private func pending(_ broker: Broker) async -> Int { await broker.pendingRevocations().values.reduce(0, +) }

    private func deliver(_ house: House, _ broker: Broker, for seconds: Int, step: Int = 30) async {
        for _ in 0..<(seconds / step) {
            house.clock.advance(by: step)
            _ = await broker.revocations.runDue()
            _ = await eventually { await broker.revocations.isIdle }
        }
    }

    private func signedOut() async throws -> House {
        let house = try await House.signedIn()
        cut(house)
        _ = try await house.broker.signOut(House.name)
        #expect(await eventually { await house.broker.revocations.isIdle })
        return house
    }

    @Test func `REV-02: the session leaves its slot before the provider is asked`() async throws {
        let house = try await House.signedIn()
        house.provider.hold(.revocation)
        let closing = Task { try await house.broker.signOut(House.name) }
        #expect(await house.provider.arrived(.revocation, 1))
        #expect(await house.vault.sessions.isEmpty)
        #expect(await house.vault.leavingCount == 1)
        #expect(await house.failure() == .signInRequired(House.name))
        // The provider has yet to hear of it.
        #expect(await pending(house.broker) == 1)
        house.provider.release(.revocation)
        _ = try await closing.value
        #expect(await eventually { await house.vault.leavingCount == 0 })
        #expect(house.provider.revoked == ["refresh-2", "access-2"])
    }

    @Test func `REV-04: a provider that is away is told later, once`() async throws {
        let house = try await signedOut()
        #expect(await pending(house.broker) == 1)
        #expect(await house.vault.leavingCount == 1)
        let early = house.provider.count(.revocation)
        await deliver(house, house.broker, for: 7_200)
        let attempts = (house.provider.count(.revocation) - early) / 2
        #expect((5...14).contains(attempts))
        mend(house)
        await deliver(house, house.broker, for: 3_600)
        #expect(await pending(house.broker) == 0)
        #expect(await house.vault.leavingCount == 0)
        #expect(house.facts.names.count { $0 == "revocationDelivered" } == 1)
        let delivered = house.provider.count(.revocation)
        await house.broker.configure([House.account()])
        await deliver(house, house.broker, for: 7_200)
        #expect(house.provider.count(.revocation) == delivered)
    }

    @Test func `nor is it forgotten in a week without a network`() async throws {
        let house = try await signedOut()
        await deliver(house, house.broker, for: 7 * 86_400, step: 1_800)
        #expect(await pending(house.broker) == 1)
        #expect(await house.vault.leavingCount == 1)
        mend(house)
        await deliver(house, house.broker, for: 3_600)
        #expect(await pending(house.broker) == 0)
    }

    @Test func `a sign-out says what the provider did with the revocation, and what stays valid there`() async throws {
        let house = try await House.signedIn()
        let revoked = try await house.broker.signOut(House.name)
        #expect(revoked.revocation == .revoked && revoked.leftover == nil)
        #expect(try await house.broker.signOut(House.name).revocation == nil)

        try await house.signIn()
        for _ in 0..<4 { house.provider.script(.revocation, .status(400, #"{"error":"invalid_client"}"#)) }
        let refused = try await house.broker.signOut(House.name)
        let error = BrokerError.provider(.refused(code: "invalid_client", message: nil))
        #expect(refused.revocation == .refused(error) && refused.account.revocation == .refused(error))
        #expect(refused.leftover?.hasRefreshToken == true && refused.leftover?.refreshTokenExpiry == nil)
        #expect(refused.leftover?.accessTokenExpiry?.seconds == house.clock.now + 3_600)

        mend(house)
        await deliver(house, house.broker, for: 60)
        #expect(try await house.view.revocation == nil)
        try await house.signIn()
        cut(house, 4)
        let pending = try await house.broker.signOut(House.name)
        #expect(pending.revocation == .pending && pending.account.revocation == .pending)
    }

    @Test(arguments: [true, false])
    func `a sign-out at a provider without revocation says so once, and leaves nothing to do`(hasEndpoint: Bool)
        async throws
    {
        let house = try await House()
        if hasEndpoint {
            house.provider.script(.revocation, .status(400, #"{"error":"unsupported_token_type"}"#))
        } else {
            house.provider.behave { $0.metadata["revocation_endpoint"] = .some(nil) }
        }
        try await house.signIn()
        let ended = try await house.broker.signOut(House.name)
        #expect(ended.revocation == .notOffered && ended.leftover?.hasAccessToken == true)
        #expect(!ended.isRevocationPending && ended.account.revocation == nil)
        #expect(house.facts.names.contains("revocationNotOffered"))
    }

    @Test func `a provider that says no again and again is left alone at last`() async throws {
        let house = try await House.signedIn()
        for _ in 0..<2_000 { house.provider.script(.revocation, .status(400, #"{"error":"invalid_client"}"#)) }
        _ = try await house.broker.signOut(House.name)
        #expect(await eventually { await house.broker.revocations.isIdle })
        await deliver(house, house.broker, for: 7 * 86_400, step: 1_800)
        #expect(await pending(house.broker) == 0)
        #expect(await house.vault.leavingCount == 0)
        #expect(house.provider.count(.revocation) <= 2 * 51)
        guard case .refused? = try await house.view.revocation else { throw Unexpected() }
    }

    @Test func `REV-04: a restart does not forget it`() async throws {
        let house = try await signedOut()
        let broker = house.rebirth()
        await broker.configure([House.account()])
        #expect(await eventually { await broker.sessionManager.isOpenAndIdle })
        mend(house)
        await deliver(house, broker, for: 60)
        #expect(Set(house.provider.revoked) == ["refresh-2", "access-2"])
        #expect(await house.vault.leavingCount == 0)
        #expect(await pending(broker) == 0)
        #expect(try await broker.account(House.name).state == .unauthenticated)
    }

    @Test(arguments: [[], [House.account(clientID: "another")]])
    func `a removed account's waits until the account is back`(accounts: [Account]) async throws {
        let house = try await signedOut()
        await house.broker.configure(accounts)
        mend(house)
        let before = house.provider.count(.revocation)
        await deliver(house, house.broker, for: 7_200)
        #expect(house.provider.count(.revocation) == before)
        #expect(await house.vault.leavingCount == 1)
        await house.broker.configure([House.account()])
        await deliver(house, house.broker, for: 3_600)
        #expect(house.provider.count(.revocation) == before + 2)
        #expect(await house.vault.leavingCount == 0)
    }

    @Test func `a lock does not forget it`() async throws {
        let house = try await signedOut()
        try await house.broker.lockVault()
        mend(house)
        await deliver(house, house.broker, for: 7_200)
        try await house.broker.unlockVault(passphrase: nil)
        await deliver(house, house.broker, for: 120)
        #expect(await house.vault.leavingCount == 0)
        #expect(await pending(house.broker) == 0)
    }

    @Test func `a session that the vault never held is revoked all the same, and later if need be`() async throws {
        let house = try await House()
        await house.vault.fail(with: .unwritable(.diskFull))
        try await house.signIn()
        #expect(try await house.view.error == .vaultFailed(.vault(.unwritable(.diskFull))))
        await house.vault.fail(with: nil)
        cut(house)
        _ = try await house.broker.signOut(House.name)
        #expect(await eventually { await house.broker.revocations.isIdle })
        #expect(await pending(house.broker) == 1)
        mend(house)
        await deliver(house, house.broker, for: 3_600)
        #expect(Set(house.provider.revoked) == ["refresh-2", "access-2"])
        #expect(await pending(house.broker) == 0)
        #expect(await house.vault.leavingCount == 0)
    }

    @Test func `on a full disk the session stays, and goes when there is room`() async throws {
        let house = try await House.signedIn()
        await house.vault.fail(with: .unwritable(.diskFull))
        for _ in 0..<3 {
            let failure = await error { try await house.broker.signOut(House.name) }
            #expect(failure == .vaultFailed(.vault(.unwritable(.diskFull))))
            #expect(await house.failure() == nil)
        }
        #expect(house.provider.revoked.isEmpty)
        await house.vault.fail(with: nil)
        #expect(try await house.broker.signOut(House.name).account.state == .unauthenticated)
        #expect(house.provider.revoked == ["refresh-2", "access-2"])
    }

    @Test func `sign-outs and sign-ins in a row each end their own session`() async throws {
        let house = try await House()
        for _ in 0..<5 {
            try await house.signIn()
            _ = try await house.broker.signOut(House.name)
        }
        #expect(await eventually { await house.vault.leavingCount == 0 })
        #expect(Set(house.provider.revoked).count == 10)
        #expect(house.provider.revoked.count == 10)
        #expect(house.facts.names.count { $0 == "revocationDelivered" } == 5)
    }

    @Test func `two who look for what is due at the same time deliver it once`() async throws {
        let house = try await signedOut()
        mend(house)
        let before = house.provider.count(.revocation)
        house.clock.advance(by: 60)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { _ = await house.broker.revocations.runDue() } }
            for _ in 0..<4 { group.addTask { await house.broker.configure([House.account()]) } }
        }
        await deliver(house, house.broker, for: 600)
        #expect(house.provider.count(.revocation) == before + 2)
        #expect(house.facts.names.count { $0 == "revocationDelivered" } == 1)
    }
}
