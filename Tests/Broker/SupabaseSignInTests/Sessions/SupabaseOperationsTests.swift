import RingbackBase
import SessionVault
import SupabaseAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A change at a project` {
    let name = SupabaseHouse.name
    let proof = "POST /factors/verify"

    func signedIn(
        hasCounters: Bool = true, reuseInterval: Int = 0
    ) async throws -> SupabaseHouse {
        let house = try await SupabaseHouse()
        house.project.behave { server in
            server.hasCounters = hasCounters
            server.reuseInterval = reuseInterval
        }
        try await house.signIn()
        return house
    }

    func user(_ house: SupabaseHouse) async -> BrokerError? {
        await error { try await house.broker.supabase.user(name) }
    }

    func no(_ status: Int, _ code: String) -> FakeProvider.Turn {
        .answer(status, #"{"code":"\#(code)","message":"x"}"#, [("X-Supabase-Api-Version", "2024-01-01")])
    }

    @Test func `by a second factor raises the session, and the account says what is missing before`() async throws {
        let house = try await signedIn()
        let id = house.session
        let factor = try await house.broker.supabase.enroll(name, NewFactor(.totp(issuer: "App"), name: "app"))
        #expect(factor.totp?.secret == Secret("ABC"))
        #expect(try await house.view.nextAssurance == "aal1")
        let wrong = await error { try await house.prove(factor.id, code: "000000") }
        #expect(wrong?.word == "mfa_verification_failed")
        // The server's own word that nothing was done: nothing is to be looked for after a crash.
        #expect(await !house.vault.isAnnounced)
        let events = try await house.events { try await house.prove(factor.id) }
        #expect(events == [.mfaChallengeVerified])
        #expect(try await house.view.assurance == "aal2")
        #expect(try await house.view.nextAssurance == "aal2")
        #expect(await house.vault.log.suffix(3) == ["announce", "store \(id)-0 > \(id)-2", "store \(id)-2"])

        // The next one who signs in with a password alone does not look complete.
        try await house.signIn()
        #expect(try await house.view.assurance == "aal1")
        #expect(try await house.view.nextAssurance == "aal2")
    }

    /// Who comes first to the lane, and who is held at the server while the other one waits.
    @Test(arguments: [true, false], [true, false])
    func `by a second factor and refreshes never present a token that counts as used`(
        hasCounters: Bool, isRefreshFirst: Bool
    ) async throws {
        let house = try await signedIn(hasCounters: hasCounters)
        let id = house.session
        let factor = try await house.addFactor()
        for _ in 0..<3 {
            let first = isRefreshFirst ? FakeSupabase.refresh : proof
            let count = house.project.count(first)
            let challenge = try await house.broker.supabase.challenge(name, factor: factor)
            house.project.hold(first)
            let proving = { @Sendable in
                _ = try await house.broker.supabase.verifyFactor(
                    name, factor: factor, challenge: challenge.id, code: Secret("123456"))
            }
            let refreshing = { @Sendable in _ = try await house.broker.refresh(name, isForced: true) }
            var tasks = [Task { isRefreshFirst ? try await refreshing() : try await proving() }]
            #expect(await house.project.arrived(first, count + 1))
            tasks += (0..<8).map { _ in Task { try await refreshing() } }
            if isRefreshFirst { tasks.append(Task { try await proving() }) }
            house.project.release(first)
            for task in tasks { try await task.value }
        }
        #expect(house.project.sessions == [id])
        #expect(try await house.view.assurance == "aal2")
        #expect(await house.refresh() == nil)
        let current = house.project.behave { $0.current(id) }
        #expect(try await house.refreshTokens == [current])
    }

    @Test func `by a second factor is kept though the rest of its answer is no good`() async throws {
        let house = try await signedIn()
        let id = house.session
        let factor = try await house.broker.supabase.enroll(name, NewFactor(.totp(issuer: nil))).id
        house.project.script(proof, .cut(after: "\"refresh_token\":\"\(id)-2\"", .timedOut(host: "h")))
        #expect(await error { try await house.prove(factor) } != nil)
        #expect(await house.vault.log.last == "store \(id)-0 > \(id)-2")
        let reborn = try await house.rebirth()
        _ = try await reborn.refresh(name, isForced: true)
        #expect(house.project.presented == ["\(id)-2"])
        #expect(try await reborn.account(name).assurance == "aal2")
    }

    @Test func `by a second factor whose answer is lost is followed by a refresh while that is allowed`() async throws {
        let house = try await signedIn(reuseInterval: 10)
        let factor = try await house.broker.supabase.enroll(name, NewFactor(.totp(issuer: nil))).id
        house.project.sendAndLose(proof)
        guard case .provider(.unreachable) = await error({ try await house.prove(factor) })
        else { throw Unexpected() }
        // A crash now would be noticed at the next start.
        #expect(await house.vault.isAnnounced)
        _ = await house.broker.sessionManager.runDueTasks()
        #expect(await house.project.arrived(FakeSupabase.refresh))
        #expect(await eventually { (try? await house.view.assurance) == "aal2" })
        #expect(await eventually { (try? await house.view.state) == .authenticated })
    }

    @Test func `by a second factor is not begun where its answer could not be kept`() async throws {
        let house = try await signedIn()
        let factor = try await house.broker.supabase.enroll(name, NewFactor(.totp(issuer: nil))).id
        await house.vault.failAnnouncing(with: .unwritable(.diskFull))
        guard case .vaultFailed = await error({ try await house.prove(factor) })
        else { throw Unexpected() }
        #expect(house.project.count(proof) == 0)
    }

    /// A second factor that the server has taken, whose answer is on its way while something else happens here.
    private func proving(
        _ house: SupabaseHouse, _ meanwhile: (_ release: () -> Void) async throws -> Void
    ) async throws {
        let factor = try await house.broker.supabase.enroll(name, NewFactor(.totp(issuer: nil))).id
        let challenge = try await house.broker.supabase.challenge(name, factor: factor).id
        house.project.hold(proof)
        let task = Task {
            try await house.broker.supabase.verifyFactor(
                name, factor: factor, challenge: challenge, code: Secret("123456"))
        }
        #expect(await house.project.arrived(proof))
        try await meanwhile { house.project.release(proof) }
        _ = try? await task.value
        #expect(await eventually { await house.broker.sessionManager.isIdle })
    }

    @Test func `by a second factor is not lost when its account goes to another project meanwhile`() async throws {
        let house = try await signedIn()
        let id = house.session
        try await proving(house) { release in
            await house.broker.configure([try SupabaseHouse.account(at: "https://other.supabase.co")])
            release()
        }
        #expect(try await house.view.state == .unauthenticated)
        try await house.configure(try SupabaseHouse.account())
        #expect(try await house.refreshTokens.first == "\(id)-2")
        #expect(await house.refresh() == nil)
    }

    @Test func `by a second factor is not lost when the vault is locked meanwhile`() async throws {
        let house = try await signedIn()
        let id = house.session
        try await proving(house) { release in
            let locking = Task { await house.broker.sessionManager.lockVault() }
            #expect(await eventually { await house.broker.sessionManager.lockError != nil })
            release()
            #expect(await locking.value == nil)
        }
        #expect(await house.broker.sessionManager.openVault(passphrase: nil, isAsked: true) == nil)
        #expect(try await house.broker.refresh(name, isForced: true).assurance == "aal2")
        #expect(house.project.presented == ["\(id)-2"])
    }

    @Test func `by a second factor that could not be saved is saved later`() async throws {
        let house = try await signedIn()
        let id = house.session
        try await proving(house) { release in
            await house.vault.fail(with: .unwritable(.diskFull))
            release()
        }
        #expect(try await house.view.error == .vaultFailed(.vault(.unwritable(.diskFull))))
        #expect(try await house.view.assurance == "aal2")
        await house.vault.fail(with: nil)
        house.clock.advance(by: 6)
        _ = await house.broker.sessionManager.runDueTasks()
        #expect(await eventually { await house.vault.sessions.first?.refreshToken == Secret("\(id)-2") })
    }

    @Test func `that waits while somebody signs out finds no session`() async throws {
        let house = try await signedIn()
        house.project.hold("GET /user")
        let changing = Task { await user(house) }
        #expect(await house.project.arrived("GET /user"))
        let closing = Task { try await house.broker.signOut(name) }
        #expect(await eventually { (try? await house.view.state) == .unauthenticated })
        #expect(await user(house) == .signInRequired(name))
        house.project.release("GET /user")
        _ = await changing.value
        _ = try await closing.value
        #expect(try await house.view.state == .unauthenticated)
        #expect(await eventually { house.project.sessions.isEmpty })
    }

    @Test func `is refused while the vault is locked`() async throws {
        let house = try await signedIn()
        #expect(await house.broker.sessionManager.lockVault() == nil)
        guard case .vaultLocked = await user(house) else { throw Unexpected() }
        #expect(house.project.count("GET /user") == 0)
    }
}
