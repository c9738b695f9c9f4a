import RingbackBase
import SessionVault
import SupabaseAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

/// Everything at once, at random, over a project that ends a session when a refresh token is presented after the next
/// ones were used: whatever is lost on the way shows as a session that the project has ended. Beside the account whose
/// session is stored there is one whose session is not.
@Suite(.timeLimit(.minutes(3))) struct `Whatever happens to accounts of a project in whatever order` {
    private static let name = SupabaseHouse.name
    private static let ephemeral = House.named("passing")
    private static let bob = "bob@example.org"
    private static let full = VaultError.unwritable(.diskFull)

    private static func accounts() throws -> [Account] {
        let other = try SupabaseHouse.account { account, _ in
            account.name = ephemeral
            account.redirectURI = "http://127.0.0.1:{port}/callback/passing"
        }
        return [try SupabaseHouse.account(), other]
    }

    private func signIn(_ house: SupabaseHouse, _ name: AccountName) async throws(BrokerError) {
        let request = house.request("password") { fields in
            fields.email = name == Self.ephemeral ? Self.bob : SupabaseHouse.alice
            fields.password = SupabaseHouse.secret
            fields.isPersistent = name != Self.ephemeral
        }
        _ = try await house.broker.begin(name, request)
    }

    private func handIn(_ house: SupabaseHouse) async throws {
        let now = house.clock.now
        let body = house.project.behave { server in
            server.open(server.user(email: SupabaseHouse.alice)?.id ?? "", "password", at: now).body
        }
        let tokens = ["access_token", "refresh_token"].map { Secret(body[$0]?.string ?? "") }
        try await house.begin("session") { fields in
            fields.accessToken = tokens[0]
            fields.refreshToken = tokens[1]
        }
    }

    private func happen(_ what: Int, _ house: SupabaseHouse, _ name: AccountName, signingOut: Bool) async {
        let broker = house.broker
        switch what {
        case 0..<5: _ = try? await broker.session(name, SessionQuery())
        case 5, 6: _ = try? await broker.refresh(name, isForced: true)
        case 7, 8: _ = try? await broker.supabase.user(name)
        case 9:
            var changes = UserChanges()
            changes.data = JSONObject([.init("color", "blue")])
            _ = try? await broker.supabase.update(name, changes)
        case 10: if name == Self.name { _ = try? await house.addFactor() }
        case 11: _ = try? await handIn(house)
        case 12: try? await broker.lockVault()
        case 13, 14, 15: try? await broker.unlockVault(passphrase: nil)
        case 16: await house.vault.fail(with: Self.full)
        case 17, 18: await house.vault.fail(with: nil)
        case 19: await house.vault.failAnnouncing(with: Self.full)
        case 20, 21: await house.vault.failAnnouncing(with: nil)
        case 22: house.project.script(FakeSupabase.refresh, .status(503))
        case 23: house.project.script(FakeSupabase.refresh, .fail(.unreachable(host: "h", reason: "r")))
        case 24: house.project.script(FakeSupabase.refresh, .setting("access_token", nil))
        case 25: house.project.script("GET /user", .status(500))
        case 26: await broker.networkReturned()
        case 27: if signingOut { _ = try? await broker.signOut(name) }
        case 28: if signingOut || name == Self.ephemeral { try? await signIn(house, name) }
        default: _ = await broker.sessionManager.runDueTasks()
        }
    }

    private func live(_ seed: UInt64, signingOut: Bool) async throws -> SupabaseHouse {
        let house = try await SupabaseHouse()
        house.project.behave { server in
            server.hasCounters = seed.isMultiple(of: 2)
            _ = server.addUser(email: Self.bob, password: SupabaseHouse.secret.revealed())
        }
        let accounts = try Self.accounts()
        await house.broker.configure(accounts)
        for account in accounts { try await signIn(house, account.name) }
        let chaos = Chaos(seed: seed, rounds: 100, names: accounts.map(\.name))
        #expect(
            await chaos.run(house.broker, house.clock) { await happen($0, house, $1, signingOut: signingOut) })
        return house
    }

    private func mend(_ house: SupabaseHouse) async throws {
        house.project.unscript()
        await house.vault.fail(with: nil)
        await house.vault.failAnnouncing(with: nil)
        try await house.broker.unlockVault(passphrase: nil)
        for _ in 0..<140 {
            house.clock.advance(milliseconds: 5_000)
            _ = await house.broker.sessionManager.runDueTasks()
            #expect(await eventually { await house.broker.sessionManager.isIdle })
        }
    }

    /// Nothing of the account whose sessions are not stored is in the vault, whatever it holds in memory.
    private func expectNothingStored(_ house: SupabaseHouse) async throws {
        for account in try Self.accounts() where account.name == Self.ephemeral {
            #expect(try await house.vault.load(account.slot) == nil)
        }
        let held = await house.broker.sessionManager.lanes[Self.ephemeral]?.state.session
        let view = try await house.broker.account(Self.ephemeral)
        #expect(view.state == (held == nil ? .unauthenticated : .authenticated), "\(view)")
        if held != nil { #expect(try await house.broker.refresh(Self.ephemeral, isForced: true).error == nil) }
    }

    @Test(arguments: 1...12)
    func `no session is lost, and none is ended for a refresh token that was presented again`(seed: Int) async throws {
        let house = try await live(UInt64(seed), signingOut: false)
        try await mend(house)
        let view = try await house.broker.account(Self.name)
        #expect(view.state == .authenticated && !view.isStale, "\(view)")
        #expect(try await house.broker.refresh(Self.name, isForced: true).error == nil)
        let ended = house.facts.all.filter { if case .sessionEnded = $0 { true } else { false } }
        #expect(ended.isEmpty, "\(ended) \(house.project.requests.map { "\($0.kind) \($0.body.text)" })")
        try await expectNothingStored(house)
        // The vault holds what memory holds: a restart finds it.
        let broker = try await house.rebirth()
        #expect(try await broker.refresh(Self.name, isForced: true).error == nil)
    }

    @Test(arguments: 101...112)
    func `sign-outs and sign-ins between leave nothing behind that should not be there`(seed: Int) async throws {
        let house = try await live(UInt64(seed), signingOut: true)
        try await mend(house)
        let view = try await house.broker.account(Self.name)
        let held = await house.broker.sessionManager.lanes[Self.name]?.state.session
        #expect(view.state == (held == nil ? .unauthenticated : .authenticated), "\(view)")
        #expect((house.broker.snapshot.current(Self.name.rawValue) == nil) == (held == nil))
        #expect((try await house.vault.load(try SupabaseHouse.account().slot) == nil) == (held == nil))
        if held != nil { #expect(try await house.broker.refresh(Self.name, isForced: true).error == nil) }
        try await expectNothingStored(house)
        #expect(await house.broker.sessionManager.detached.unwritten.isEmpty)
    }
}
