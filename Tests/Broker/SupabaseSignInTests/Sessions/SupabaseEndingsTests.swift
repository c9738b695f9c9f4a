import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A session of a project that no account has` {
    let name = SupabaseHouse.name

    @Test func `is ended at the server where the sign-in was refused because of its user`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { _ = $0.addUser(email: "bob@example.org", password: SupabaseHouse.secret.revealed()) }
        try await house.signIn()
        let (mine, before) = (house.session, try await house.held)
        guard case .conflict = await error({ try await house.signIn(email: "bob@example.org") })
        else { throw Unexpected() }
        #expect(try await house.held == before)
        #expect(await eventually { house.project.sessions == [mine] })
        guard case .failed(_, .conflict) = try await house.walk(as: "bob@example.org") else { throw Unexpected() }
        #expect(await eventually { house.project.sessions == [mine] })
        #expect(house.project.count("POST /logout local") == 2)
        #expect(await house.refresh() == nil)
    }

    @Test func `is ended where another sign-in has taken its place, by its own token`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { _ = $0.addUser(email: "bob@example.org", password: SupabaseHouse.secret.revealed()) }
        try await house.signIn()
        let first = house.session
        try await house.signIn()
        #expect(await eventually { house.project.sessions.count == 1 && !house.project.sessions.contains(first) })
        let second = house.session
        try await house.signIn(email: "bob@example.org", switching: true)
        #expect(try await house.view.user?["email"] == "bob@example.org")
        #expect(await eventually { house.project.sessions.count == 1 && !house.project.sessions.contains(second) })
        #expect(house.project.count("POST /logout local") == 2)
        #expect(await house.refresh() == nil)
        #expect(await eventually { ((try? await house.vault.retired()) ?? []).isEmpty })
    }

    @Test(arguments: [false, true])
    func `is ended later where the project is away when it is replaced, and after a restart`(isKept: Bool) async throws
    {
        let house = try await SupabaseHouse.signedIn()
        let first = house.session
        let logout = "POST /logout local"
        house.project.script(logout, .fail(.unreachable(host: "h", reason: "gone")))
        try await house.signIn(isPersistent: isKept)
        #expect(await eventually { await house.broker.revocations.entries.values.contains { $0.failures == 1 } })
        #expect(house.project.sessions.count == 2 && house.project.count(logout) == 1)
        #expect(house.project.count(FakeSupabase.refresh) == 0)
        #expect(await house.broker.pendingRevocations()[name] == 1)
        #expect(await house.vault.leavingCount == 1)
        let later = try await house.rebirth()
        house.clock.advance(by: 60)
        #expect(await ends(later) { !house.project.sessions.contains(first) })
        #expect(house.project.sessions.count == 1)
        #expect(await eventually { await house.vault.leavingCount == 0 })
        #expect(try await later.account(name).state == (isKept ? .authenticated : .unauthenticated))
    }

    /// Signs in once, then again so often while the vault cannot be written. Gives the first session. The vault cannot
    /// be written afterwards either: any later change of the session would write it.
    private func signInUnsaved(_ house: SupabaseHouse, times: Int = 1) async throws -> String {
        try await house.signIn()
        let first = house.session
        // The vault's list of sessions to be ended is read once, and here before there is one.
        _ = await house.broker.revocations.runDue()
        await house.vault.fail(with: .unwritable(.diskFull))
        for _ in 0..<times { try await house.signIn() }
        // A restart would find the former one.
        #expect(house.project.sessions.contains(first) && house.project.count("POST /logout local") == 0)
        #expect(await house.vault.leavingCount == 0)
        #expect(try await house.held?.project?.sessionID != first)
        return first
    }

    private func ends(_ broker: Broker, _ condition: () async -> Bool) async -> Bool {
        await eventually {
            _ = await broker.revocations.runDue()
            return await condition()
        }
    }

    private func saveAgain(_ house: SupabaseHouse) async {
        await house.vault.fail(with: nil)
        house.clock.advance(by: 10)
        _ = await house.broker.sessionManager.runDueTasks()
        #expect(await eventually { await !house.broker.sessionManager.lanes.values.contains { $0.state.isUnsaved } })
        _ = await house.broker.revocations.runDue()
    }

    @Test(arguments: [1, 3])
    func `is ended only once the vault has taken the one that replaces it`(times: Int) async throws {
        let house = try await SupabaseHouse()
        _ = try await signInUnsaved(house, times: times)
        await saveAgain(house)
        let held = try #require(try await house.held?.project?.sessionID)
        #expect(await eventually { house.project.sessions == [held] })
        #expect(house.project.count("POST /logout local") == times)
        #expect(await eventually { await house.vault.leavingCount == 0 })
        #expect(try await house.rebirth().account(name).state == .authenticated)
    }

    @Test func `is ended after a restart, if the vault has taken the one that replaces it`() async throws {
        let house = try await SupabaseHouse()
        let first = try await signInUnsaved(house)
        let logout = "POST /logout local"
        house.project.script(logout, .fail(.unreachable(host: "h", reason: "gone")))
        await saveAgain(house)
        #expect(await eventually { await house.broker.pendingRevocations()[name] == 1 })
        #expect(await house.vault.leavingCount == 1)
        let later = try await house.rebirth()
        house.clock.advance(by: 60)
        #expect(await ends(later) { !house.project.sessions.contains(first) })
        #expect(house.project.sessions.count == 1)
    }

    @Test func `is ended after a restart, if the vault had room for one of both only`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let first = house.session
        await house.vault.failOnceReplacing()
        house.project.script("POST /logout local", .fail(.unreachable(host: "h", reason: "gone")))
        try await house.signIn()
        #expect(await eventually { await house.vault.leavingCount == 1 })
        #expect(await eventually { await house.broker.revocations.entries.values.contains { $0.failures == 1 } })
        #expect(await house.broker.pendingRevocations()[name] == 1)
        let later = try await house.rebirth()
        house.clock.advance(by: 60)
        #expect(await ends(later) { !house.project.sessions.contains(first) })
        #expect(house.project.sessions.count == 1)
        #expect(await eventually { await house.vault.leavingCount == 0 })
        #expect(try await later.account(name).state == .authenticated)
    }

    @Test func `is ended, and not the one in use, if the write that failed had taken effect`() async throws {
        let house = try await SupabaseHouse.signedIn()
        await house.vault.failOnceAfterReplacing()
        house.project.script("POST /logout local", .fail(.unreachable(host: "h", reason: "gone")))
        try await house.signIn()
        let held = try #require(try await house.held?.project?.sessionID)
        await saveAgain(house)
        let later = try await house.rebirth()
        house.clock.advance(by: 60)
        #expect(await ends(later) { house.project.sessions == [held] })
        #expect(try await later.account(name).state == .authenticated)
    }

    /// A write that failed had taken effect. The repeated one retired the same session, and before that was discarded the
    /// daemon was killed.
    @Test func `is not ended if it is the one in use`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let first = house.session
        let account = try await house.broker.sessionManager.account(name)
        let session = try #require(try await house.held)
        let text = SessionRecord.encode(session, bootID: house.clock.clock.bootID)
        await house.vault.putRetired(RetiredEntry(id: "left", slot: account.slot, text: text))
        let later = try await house.rebirth()
        #expect(await ends(later) { await house.vault.leavingCount == 0 })
        #expect(house.project.count("POST /logout local") == 0 && house.project.sessions == [first])
        #expect(try await later.account(name).state == .authenticated)
    }

    @Test func `is ended by a sign-out too, with the one that could not be written`() async throws {
        let house = try await SupabaseHouse.signedIn()
        await house.vault.failStoring(with: .unwritable(.diskFull))
        try await house.signIn()
        #expect(house.project.sessions.count == 2)
        _ = try await house.broker.signOut(name)
        #expect(await ends(house.broker) { house.project.sessions.isEmpty })
        await house.vault.failStoring(with: nil)
        #expect(await eventually { await house.vault.leavingCount == 0 })
    }

    @Test func `is not ended if it is held again before the vault is written`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let first = try #require(try await house.held)
        let family = try #require(first.project?.sessionID)
        await house.vault.fail(with: .unwritable(.diskFull))
        try await house.signIn()
        let second = try await house.held?.project?.sessionID
        #expect(second != family)
        // The first one is handed in by the program that has it too.
        let account = try await house.broker.sessionManager.account(name)
        try await house.broker.open(first, for: account, SessionOpening())
        await house.vault.fail(with: nil)
        await saveAgain(house)
        #expect(await eventually { house.project.sessions == [family] })
        #expect(await house.vault.leavingCount == 0)
        #expect(house.project.count("POST /logout local") == 1)
        #expect(await house.refresh() == nil)
    }

    @Test func `that stays in the vault is not replaced by one that is to leave nothing behind`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let first = house.session
        await house.vault.fail(with: .unwritable(.readOnly))
        let failure = await error { try await house.signIn(isPersistent: false) }
        #expect(failure == .vaultFailed(.vault(.unwritable(.readOnly))))
        // The new one is ended at the project, and nothing else has changed.
        #expect(await eventually { house.project.sessions == [first] })
        #expect(try await house.held?.project?.sessionID == first)
        await house.vault.fail(with: nil)
        try await house.signIn(isPersistent: false)
        #expect(await eventually { house.project.sessions.count == 1 && !house.project.sessions.contains(first) })
        #expect(try await house.rebirth().account(name).state == .unauthenticated)
    }

    @Test func `is ended where the sign-in was cancelled while its code was exchanged`() async throws {
        let house = try await SupabaseHouse()
        let flow = try #require(try await house.begin("browser"))
        house.project.hold(FakeSupabase.exchange)
        let callback = try house.project.consent(flow.authorizationURL)
        async let verdict = house.broker.receive(callback)
        #expect(await house.project.arrived(FakeSupabase.exchange))
        _ = try await house.broker.cancel(flow.id, isForAll: true)
        house.project.release(FakeSupabase.exchange)
        guard case .failed = await verdict else { throw Unexpected() }
        #expect(await eventually { house.project.sessions.isEmpty && house.project.count("POST /logout local") == 1 })
    }
}
