import OAuth
import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

/// Everything at once, at random, over a provider that rotates and knows each refresh token once: whatever is lost on
/// the way shows as a token that the provider does not know.
@Suite(.timeLimit(.minutes(3))) struct `Whatever happens in whatever order` {
    private static let names = [House.name, House.named("second")]
    private static let service = House.named("build")
    private static let accounts = names.map { House.account($0) } + [serviceAccount]

    /// Nobody signs in to it, and nothing of it is in the vault.
    private static var serviceAccount: Account {
        var account = House.account(service, scopes: ["deploy"])
        account.oauth.clientSecret = Account.SecretSource { () throws(BrokerError) in Secret("hush-secret") }
        account.oauth.grant = ServiceGrant(.clientCredentials)
        return account
    }

    private func happen(_ what: Int, _ house: House, _ name: AccountName, signingOut: Bool) async {
        let full = VaultError.unwritable(.diskFull)
        switch what {
        case 0..<6: _ = try? await house.token(name)
        case 6, 7: _ = try? await house.broker.refresh(name, isForced: true)
        case 8: try? await house.broker.lockVault()
        case 9, 10, 11: try? await house.broker.unlockVault(passphrase: nil)
        case 12: await house.broker.configure([Self.accounts[0]])
        case 13: await house.broker.configure([Self.accounts[0], House.account(Self.names[1], clientID: "another")])
        case 14, 15, 16: await house.broker.configure(Self.accounts)
        case 17: await house.vault.fail(with: full)
        case 18, 19: await house.vault.fail(with: nil)
        case 20: house.provider.script(.token, .status(503))
        case 21: house.provider.script(.token, .setting("access_token", nil))
        case 22: house.provider.script(.token, .fail(.unreachable(host: "h", reason: "r")))
        case 23: await house.broker.networkReturned()
        case 24: if signingOut { _ = try? await house.broker.signOut(name) }
        case 25: if signingOut { _ = try? await house.signIn(name) }
        case 26: await house.vault.failAnnouncing(with: full)
        case 27, 28: await house.vault.failAnnouncing(with: nil)
        default: _ = await house.broker.sessionManager.runDueTasks()
        }
    }

    private func live(_ seed: UInt64, signingOut: Bool) async throws -> House {
        let house = try await House()
        await house.broker.configure(Self.accounts)
        try await house.signIn(all: Self.names)
        let chaos = Chaos(seed: seed, rounds: 150, names: Self.accounts.map(\.name))
        #expect(
            await chaos.run(house.broker, house.clock) { await happen($0, house, $1, signingOut: signingOut) })
        return house
    }

    private func mend(_ house: House) async throws {
        for endpoint in FakeProvider.Endpoint.allCases { house.provider.unscript(endpoint) }
        await house.vault.fail(with: nil)
        await house.vault.failAnnouncing(with: nil)
        try await house.broker.unlockVault(passphrase: nil)
        await house.broker.configure(Self.accounts)
        await house.live(700, step: 5_000)
    }

    private func expectService(_ house: House) async throws {
        // Nothing of a service is done unasked: what failed last is told until something succeeds.
        let view = try await house.broker.refresh(Self.service, isForced: true)
        #expect(view.state == .authenticated && view.error == nil, "\(view)")
        #expect(try await house.vault.load(Self.serviceAccount.slot) == nil)
        #expect(try await !house.token(Self.service).isEmpty)
    }

    @Test(arguments: 1...20)
    func `no session is lost, and no refresh token presented that the provider has replaced`(seed: Int) async throws {
        let house = try await live(UInt64(seed), signingOut: false)
        try await mend(house)
        #expect(house.provider.strangerCount == 0)
        for name in Self.names {
            let view = try await house.broker.account(name)
            #expect(view.state == .authenticated && !view.isStale, "\(view)")
            #expect(try await house.broker.refresh(name, isForced: true).error == nil)
        }
        try await expectService(house)
        #expect(house.provider.strangerCount == 0)
        #expect(!house.facts.names.contains("sessionEnded"))
        // The vault holds what memory holds: a restart finds it.
        let broker = house.rebirth()
        await broker.configure(Self.accounts)
        for name in Self.names { _ = try await broker.refresh(name, isForced: true) }
        #expect(house.provider.strangerCount == 0)
    }

    @Test(arguments: 101...120)
    func `sign-outs and sign-ins between leave nothing behind that should not be there`(seed: Int) async throws {
        let house = try await live(UInt64(seed), signingOut: true)
        try await mend(house)
        #expect(house.provider.strangerCount == 0)
        for name in Self.names {
            let view = try await house.broker.account(name)
            let held = await house.broker.sessionManager.lanes[name]?.state.session
            #expect(view.state == (held == nil ? .unauthenticated : .authenticated), "\(view)")
            #expect((house.broker.snapshot.current(name.rawValue) == nil) == (held == nil))
            #expect(await house.broker.sessionManager.lanes[name]?.state.signOutsInProgress == 0)
            let kept = try await house.vault.load(House.account(name).slot)
            #expect((kept == nil) == (held == nil))
            if held != nil { _ = try await house.broker.refresh(name, isForced: true) }
        }
        try await expectService(house)
        #expect(house.provider.strangerCount == 0)
        #expect(await house.broker.sessionManager.detached.unwritten.isEmpty)
    }
}
