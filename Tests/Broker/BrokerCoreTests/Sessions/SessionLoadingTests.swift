import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `Loading from the vault` {
    private func reborn(
        _ house: House, failing failure: VaultError? = nil, facts: Facts = Facts()
    ) async throws -> Broker {
        await house.vault.fail(with: failure)
        let broker = house.rebirth(facts: facts)
        await broker.configure([House.account()])
        #expect(await eventually { await broker.sessionManager.isOpenAndIdle })
        return broker
    }

    @Test(arguments: [true, false])
    func `what a newer version sealed is not written over by a sign-in`(isVaultsWord: Bool) async throws {
        let house = try await House()
        let newer = Secret(#"{"version":2,"issuer":"https://id.example"}"#)
        await house.vault.put(newer, in: House.account().slot)
        let broker = try await reborn(house, failing: isVaultsWord ? .newer(.ofNewerVersion) : nil)
        await house.vault.fail(with: nil)
        for _ in 0..<3 {
            let refusal = await error { try await broker.signIn(House.name, SignInRequest()) }
            guard case .vaultFailed? = refusal else { throw Unexpected() }
            // Trying, and signing out, take nothing of it away.
            _ = try? await broker.signOut(House.name)
            guard case .vaultFailed? = try await broker.account(House.name).error else { throw Unexpected() }
        }
        #expect(try await house.vault.load(House.account().slot)?.text == newer)
        #expect(await house.vault.leavingCount == 0)
    }

    @Test(arguments: [true, false])
    func `a sign-out right after a start tells whether there was a session`(isSignedIn: Bool) async throws {
        let house = try await House()
        if isSignedIn { try await house.signIn() }
        let broker = house.rebirth(facts: Facts())
        await broker.configure([House.account()])
        // The record may not have been read yet.
        #expect(try await broker.signOut(House.name).hadSession == isSignedIn)
        #expect(try await broker.signOut(House.name).hadSession == false)
    }

    @Test func `hundreds of sessions are there after a start, each for its own account`() async throws {
        let house = try await House.signedIn()
        let record = try #require(try await house.vault.load(House.account().slot)?.text.revealed())
        let accounts = (0..<300).map { House.account(House.named("user\($0)")) }
        for (index, account) in accounts.enumerated() where index % 10 != 0 {
            let own = record.split(separator: "alice", omittingEmptySubsequences: false).joined(
                separator: "user\(index)")
            await house.vault.put(Secret(own), in: account.slot)
        }
        let broker = house.rebirth(facts: Facts())
        await broker.configure(accounts)
        await broker.accountsSettled(atMost: .seconds(30))
        for (index, account) in accounts.enumerated() {
            let view = try await broker.account(account.name)
            #expect(view.state == (index % 10 == 0 ? .unauthenticated : .authenticated))
            #expect(view.subject == (index % 10 == 0 ? nil : "user\(index)"))
        }
    }

    @Test func `a sign-out that begins while hundreds are read ends the session that is read`() async throws {
        let house = try await House.signedIn()
        let broker = house.rebirth(facts: Facts())
        await house.vault.hold()
        await broker.configure([House.account(), House.account(House.named("other"))])
        #expect(await eventually { await broker.sessionManager.isOpen })
        let closing = Task { try await broker.signOut(House.name).hadSession }
        #expect(await eventually { await broker.sessionManager.lanes[House.name]?.loaded.waiterCount == 1 })
        await house.vault.release()
        #expect(try await closing.value)
        #expect(try await broker.account(House.name).state == .unauthenticated)
    }

    @Test func `a damaged record gives way to a sign-in`() async throws {
        let house = try await House.signedIn()
        let broker = try await reborn(house, failing: .damaged(.setAside))
        await house.vault.fail(with: nil)
        #expect(
            try await broker.account(House.name).error == .vaultFailed(.vault(.damaged(.setAside))))
        #expect(try await broker.account(House.name).state == .unauthenticated)
        let flow = try await broker.signIn(House.name, SignInRequest()).flow
        guard case .completed = await broker.receive(try house.provider.consent(flow.authorizationURL))
        else { throw Unexpected() }
        #expect(try await broker.account(House.name).error == nil)
    }

    @Test(arguments: [false, true])
    func `DU-09: a disk that cannot be read is asked again until it can`(isReloaded: Bool) async throws {
        let house = try await House.signedIn()
        let token = try await house.token()
        let broker = try await reborn(house, failing: .unwritable(.diskBroken))
        let stream = try await broker.events(of: nil, after: nil)
        #expect(stream.initial.isEmpty)
        #expect(try await broker.account(House.name).state == .loading)
        let failures = [
            await error { try await broker.session(House.name, SessionQuery()) },
            await error { try await broker.signIn(House.name, SignInRequest()) },
            await error { try await broker.signOut(House.name) },
        ]
        #expect(failures.allSatisfy { $0 == .vaultFailed(.vault(.unwritable(.diskBroken))) })
        if isReloaded { await broker.configure([House.account()]) }
        await house.live(30, as: broker)
        #expect(try await broker.account(House.name).state == .loading)
        await house.vault.fail(with: nil)
        await house.live(6, as: broker)
        #expect(try await broker.account(House.name).state == .authenticated)
        #expect(try await broker.account(House.name).error == nil)
        #expect(try await broker.session(House.name, SessionQuery()).token.value.revealed() == token)
        guard case .events(let events) = await stream.live.next(within: .seconds(5)) else { throw Unexpected() }
        #expect(events.map(\.event.kind) == [.initialSession])
    }

    @Test func `a sign-in that ends before its account is loaded writes over nobody's session`() async throws {
        let house = try await House.signedIn()
        let session = try #require(await house.vault.sessions.first)
        var foreign = session
        foreign.subject = "mallory"
        // As if the change had got its turn between an unlock and the load that follows it.
        await house.broker.sessionManager.unload(House.name)
        let refused = await error {
            try await house.broker.sessionManager.open(foreign, for: House.account(), SessionOpening())
        }
        guard case .conflict? = refused else { throw Unexpected() }
        #expect(await house.vault.sessions.first?.subject == "alice")
    }

    @Test(arguments: ["restart", "lock"])
    func `PR-17: an interrupted session is refreshed at once, newest token first`(by way: String) async throws {
        let house = try await House.signedIn()
        // The provider rotated, the answer was kept beside its predecessor, and the daemon died.
        house.provider.script(.token, .setting("access_token", nil))
        _ = await house.refreshFailure(isForced: true)
        let slot = House.account().slot
        let text = try #require(try await house.vault.load(slot)?.text)
        await house.vault.put(text, in: slot, isInterrupted: true)
        var broker = house.broker
        if way == "restart" {
            broker = try await reborn(house)
        } else {
            try await broker.lockVault()
            try await broker.unlockVault(passphrase: nil)
            #expect(await eventually { await broker.sessionManager.isIdle })
            // The failure of a moment ago is waited off first.
            house.clock.advance(by: 2)
        }
        await house.runDueTasks(of: broker)
        #expect(house.provider.presented == ["refresh-2", "refresh-3"])
        #expect(try await broker.session(House.name, SessionQuery()).token.value.revealed() == "access-4")
        await house.live(120, as: broker)
        #expect(house.refreshCount == 2)
        #expect(await !house.vault.isAnnounced)
    }

    @Test func `DU-06: a rotation that was never heard ends in session_expired, and in no loop`() async throws {
        let house = try await House.signedIn()
        let slot = House.account().slot
        let text = try #require(try await house.vault.load(slot)?.text)
        _ = await house.refreshFailure(isForced: true)
        await house.vault.put(text, in: slot, isInterrupted: true)
        let facts = Facts()
        let broker = try await reborn(house, facts: facts)
        await house.live(3_600, step: 10_000, as: broker)
        #expect(house.provider.presented == ["refresh-2", "refresh-2"])
        let failure = await error { try await broker.session(House.name, SessionQuery()) }
        #expect(failure == .sessionExpired(House.name))
        #expect(facts.names == ["vaultOpened", "refreshStarted", "sessionEnded"])
        #expect(await house.vault.sessions.isEmpty)
    }

    @Test func `a reader who waits while the account is bound anew waits for the new one`() async throws {
        let house = try await House.signedIn()
        let token = try await house.token()
        let broker = house.rebirth()
        await house.vault.hold()
        await broker.configure([House.account()])
        let reading = Task { try await broker.session(House.name, SessionQuery()).token.value.revealed() }
        #expect(await eventually { await broker.sessionManager.isOpen })
        #expect(await eventually { await broker.sessionManager.lanes[House.name]?.loaded.waiterCount == 1 })
        // In one turn each: an account that is gone for a moment is nobody's to wait for.
        var other = House.account()
        other.clientID = "another"
        await broker.configure([other])
        await broker.configure([House.account()])
        // Woken by the end of the first lane, it waits at the last.
        #expect(await eventually { await broker.sessionManager.lanes[House.name]?.loaded.waiterCount == 1 })
        await house.vault.release()
        #expect(try await reading.value == token)
    }

    @Test func `what is signed out during a reload does not come back, though the vault never held it`() async throws {
        let house = try await House.unsaved()
        await house.vault.fail(with: nil)
        await house.vault.hold()
        let stores = await house.vault.stores.count
        let closing = Task { try? await house.broker.signOut(House.name) }
        #expect(await eventually { await house.vault.stores.count > stores })
        await house.broker.configure([])
        await house.vault.release()
        _ = await closing.value
        await house.live(30)
        #expect(await house.vault.sessions.isEmpty)
        #expect(house.provider.revoked.first == "refresh-3")
    }

    @Test(arguments: ["removed", "rebound"])
    func `what the vault would not take outlives a reload`(change: String) async throws {
        let house = try await House.unsaved()
        await house.broker.configure(change == "removed" ? [] : [House.account(clientID: "another")])
        await house.vault.fail(with: nil)
        await house.live(12)
        #expect(await house.vault.sessions.map(\.refreshToken) == [Secret("refresh-3")])
        await house.broker.configure([House.account()])
        #expect(try await house.token() == "access-3")
    }
}

extension SessionManager {
    fileprivate func unload(_ name: AccountName) {
        guard let id = lanes[name]?.id else { return }
        take(.locked, id)
        expectLoading(name)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A session that its provider ended` {
    @Test func `is told of after a restart too, until somebody signs in or out`() async throws {
        let house = try await House.expired()
        house.provider.script(.token, .invalidGrant)
        #expect(await house.failure() == .sessionExpired(House.name))
        for _ in 0..<2 {
            let again = house.rebirth()
            await again.configure([House.account()])
            let failure = await error { try await again.session(House.name, SessionQuery()) }
            #expect(failure == .sessionExpired(House.name))
            #expect(try await again.account(House.name).state == .unauthenticated)
        }
        #expect(await house.vault.sessions.isEmpty)
        _ = try await house.broker.signOut(House.name)
        let last = house.rebirth()
        await last.configure([House.account()])
        let failure = await error { try await last.session(House.name, SessionQuery()) }
        #expect(failure == .signInRequired(House.name))
    }

    @Test func `is told as one that a copy of the vault may have refreshed, once the vault was on another machine`()
        async throws
    {
        let house = try await House.expired()
        func broker(on machine: String) async throws -> Broker {
            let broker = house.rebirth(machineID: machine)
            await broker.configure([House.account()])
            return broker
        }
        // The machine is written with each refresh; a vault of an older version has none.
        for machine in ["first", "first", "second"] {
            _ = try await broker(on: machine).session(House.name, SessionQuery())
            house.clock.advance(by: 3_600)
        }
        house.provider.script(.token, .invalidGrant)
        let moved = BrokerError.sessionExpired(House.name, hasMoved: true)
        for _ in 0..<2 {
            let second = try await broker(on: "second")
            #expect(await error { try await second.session(House.name, SessionQuery()) } == moved)
            #expect(try await second.account(House.name).error == moved)
        }
    }

    @Test func `ends on the same machine without a word of copies`() async throws {
        let house = try await House.expired()
        for isLast in [false, true] {
            if isLast { house.provider.script(.token, .invalidGrant) }
            let broker = house.rebirth(machineID: "first")
            await broker.configure([House.account()])
            let failure = await error { try await broker.session(House.name, SessionQuery()) }
            #expect(failure == (isLast ? .sessionExpired(House.name) : nil))
            house.clock.advance(by: 3_600)
        }
    }
}
