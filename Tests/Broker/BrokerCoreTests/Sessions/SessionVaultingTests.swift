import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `A vault that is locked and unlocked` {
    private static let absent = VaultError.locked(.keyringLocked)

    private func refusals(_ broker: Broker) async -> [BrokerError?] {
        [
            await error { try await broker.session(House.name, SessionQuery()) },
            await error { try await broker.refresh(House.name, isForced: true) },
            await error { try await broker.signOut(House.name) },
            await error { try await broker.signIn(House.name, SignInRequest()) },
            await error { try await broker.sessionAfterSignIn(House.name, SessionQuery()) },
            await error { try await broker.rekeyVault(to: .keyFile, passphrase: nil) },
        ]
    }

    private func isLocked(_ error: BrokerError?) -> Bool { if case .vaultLocked? = error { true } else { false } }

    private func kinds(_ next: EventSubscription.Next) -> [BrokerEvent.Kind] {
        if case .events(let events) = next { events.map(\.event.kind) } else { [] }
    }

    @Test func `locked at start, it refuses everything, and goes on when it is unlocked`() async throws {
        let house = try await House.signedIn()
        let token = try await house.token()
        await house.vault.failOpening(with: Self.absent)
        let facts = Facts()
        let broker = house.rebirth(facts: facts)
        await broker.configure([House.account()])
        for refusal in await refusals(broker) { #expect(isLocked(refusal)) }
        let view = try await broker.account(House.name)
        #expect(view.state == .loading)
        #expect(isLocked(view.error))
        #expect(view.subject == nil)
        let streams = [
            try await broker.events(of: House.name, after: nil), try await broker.events(of: nil, after: nil),
        ]
        #expect(streams.allSatisfy { $0.initial.isEmpty })
        #expect(isLocked(await error { try await broker.unlockVault(passphrase: nil) }))

        await house.vault.failOpening(with: nil)
        try await broker.unlockVault(passphrase: nil)
        #expect(try await broker.session(House.name, SessionQuery()).token.value.revealed() == token)
        for stream in streams {
            #expect(kinds(await stream.live.next(within: .seconds(5))) == [.initialSession])
        }
        // Exactly once: neither another opening nor another lock and unlock says it again.
        try await broker.unlockVault(passphrase: nil)
        try await broker.lockVault()
        try await broker.unlockVault(passphrase: nil)
        _ = try await broker.session(House.name, SessionQuery())
        for stream in streams { #expect(kinds(await stream.live.next(within: .milliseconds(1))) == []) }
        #expect(try await broker.account(House.name).error == nil)
        #expect(facts.names == ["vaultRefused", "vaultOpened", "vaultLocked", "vaultOpened"])
        #expect(house.refreshCount == 0)
    }

    @Test(arguments: [true, false])
    func `a source that comes back by itself opens it`(isTold: Bool) async throws {
        let house = try await House.signedIn()
        await house.vault.failOpening(with: Self.absent)
        let broker = house.rebirth()
        await broker.configure([House.account()])
        _ = await broker.sessionManager.firstOpening.wait()
        await house.vault.failOpening(with: nil)
        if isTold { await broker.keySourceChanged() } else { house.clock.advance(by: 16) }
        await house.runDueTasks(of: broker)
        #expect(await eventually { (try? await broker.account(House.name).state) == .authenticated })
    }

    @Test func `a source that comes back while an attempt fails opens it at once`() async throws {
        let house = try await House.signedIn()
        let before = await house.vault.openingCount
        await house.vault.failOpening(with: Self.absent)
        await house.vault.holdOpening()
        let broker = house.rebirth()
        await broker.configure([House.account()])
        #expect(await eventually { await house.vault.openingCount == before + 1 })
        await broker.keySourceChanged()
        await house.vault.failOpening(with: nil)
        await house.vault.releaseOpening()
        _ = await broker.sessionManager.firstOpening.wait()
        await house.runDueTasks(of: broker)
        #expect(await eventually { (try? await broker.account(House.name).state) == .authenticated })
    }

    @Test func `a source that stays away is asked four times a minute`() async throws {
        let house = try await House()
        await house.vault.failOpening(with: Self.absent)
        let broker = house.rebirth()
        await broker.configure([House.account()])
        _ = await broker.sessionManager.firstOpening.wait()
        let before = await house.vault.openingCount
        await house.live(600, as: broker)
        let count = await house.vault.openingCount - before
        #expect((36...41).contains(count))
    }

    @Test func `after lock returns nothing is served, and unlock brings everything back`() async throws {
        let house = try await House.signedIn()
        let token = try await house.token()
        #expect(house.broker.snapshot.current("work") != nil)
        try await house.broker.lockVault()
        #expect(house.broker.snapshot.current("work") == nil)
        for refusal in await refusals(house.broker) { #expect(isLocked(refusal)) }
        #expect(try await house.view.state == .loading)
        #expect(await house.broker.sessionManager.lanes.values.allSatisfy { $0.state.session == nil })
        // Nothing that happens by itself undoes what a person did.
        await house.broker.keySourceChanged()
        await house.broker.networkReturned()
        await house.broker.configure([House.account()])
        await house.live(120)
        #expect(isLocked(await house.failure()))
        try await house.broker.unlockVault(passphrase: nil)
        #expect(try await house.token() == token)
        #expect(house.broker.snapshot.current("work") != nil)
    }

    @Test func `a refresh in flight is kept before the vault is closed, and served to nobody`() async throws {
        let house = try await House.expired()
        let reading = await house.heldRefresh()
        let locking = Task { try await house.broker.lockVault() }
        #expect(await eventually { await house.broker.sessionManager.lockError != nil })
        #expect(isLocked(await house.failure()))
        house.provider.release(.token)
        try await locking.value
        #expect(isLocked(await reading.value))
        #expect(house.broker.snapshot.current("work") == nil)
        #expect(await house.broker.sessionManager.lanes[House.name]?.state.session == nil)
        #expect(await house.vault.sessions.first?.refreshToken == Secret("refresh-3"))
        try await house.broker.unlockVault(passphrase: nil)
        #expect(try await house.token() == "access-3")
        #expect(house.refreshCount == 1)
    }

    @Test func `a sign-in whose exchange is under way is told, and changes nothing`() async throws {
        let house = try await House()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        let callback = try house.provider.consent(flow.authorizationURL)
        house.provider.hold(.token)
        let signingIn = Task { await house.broker.receive(callback) }
        #expect(await house.provider.arrived(.token, 1))
        try await house.broker.lockVault()
        house.provider.release(.token)
        guard case .failed(_, .vaultLocked) = await signingIn.value else { throw Unexpected() }
        try await house.broker.unlockVault(passphrase: nil)
        #expect(await house.failure() == .signInRequired(House.name))
        #expect(await house.vault.sessions.isEmpty)
    }

    @Test func `what the vault would not take outlives lock and unlock`() async throws {
        let house = try await House.unsaved()
        try await house.broker.lockVault()
        #expect(house.broker.snapshot.current("work") == nil)
        #expect(isLocked(await house.failure()))
        await house.vault.fail(with: nil)
        try await house.broker.unlockVault(passphrase: nil)
        #expect(try await house.token() == "access-3")
        await house.live(10)
        #expect(await house.vault.sessions.first?.refreshToken == Secret("refresh-3"))
        #expect(try await house.view.error == nil)
    }

    @Test func `locking twice, and locking and unlocking at once, end in one of the two`() async throws {
        let house = try await House.signedIn()
        let token = try await house.token()
        for _ in 0..<50 {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<2 { group.addTask { try? await house.broker.lockVault() } }
                for _ in 0..<2 { group.addTask { try? await house.broker.unlockVault(passphrase: nil) } }
                group.addTask { _ = await house.failure() }
            }
            if await house.broker.sessionManager.isOpen {
                #expect(try await house.token() == token)
            } else {
                #expect(isLocked(await house.failure()))
                #expect(house.broker.snapshot.current("work") == nil)
            }
        }
        try await house.broker.lockVault()
        try await house.broker.lockVault()
        try await house.broker.unlockVault(passphrase: nil)
        #expect(try await house.token() == token)
        #expect(house.refreshCount == 0)
    }

    @Test func `a sign-out that a lock overtakes is refused, or done, and nothing between`() async throws {
        for isSignOutFirst in [true, false] {
            let house = try await House.expired()
            let reading = await house.heldRefresh()
            let closing = Task { await error { try await house.broker.signOut(House.name) } }
            if isSignOutFirst { #expect(await eventually { (try? await house.view.subject) == nil }) }
            let locking = Task { try await house.broker.lockVault() }
            #expect(await eventually { await house.broker.sessionManager.lockError != nil })
            house.provider.release(.token)
            try await locking.value
            _ = await reading.value
            let isDone = await closing.value == nil
            try await house.broker.unlockVault(passphrase: nil)
            #expect(await house.failure() == (isDone ? .signInRequired(House.name) : nil))
            #expect(await house.vault.sessions.count == (isDone ? 0 : 1))
            #expect(await house.broker.sessionManager.lanes[House.name]?.state.signOutsInProgress == 0)
        }
    }

    @Test func `sessions in memory only are not locked away`() async throws {
        let house = try await House()
        let broker = Broker(
            vault: MemoryVault(), http: house.network, callbackReceiver: house.doors.callbackReceiver,
            clock: house.clock.clock)
        await broker.configure([House.account()])
        let flow = try await broker.signIn(House.name, SignInRequest()).flow
        _ = await broker.receive(try house.provider.consent(flow.authorizationURL))
        let refusal = await error { try await broker.lockVault() }
        guard case .conflict? = refusal else { throw Unexpected() }
        _ = try await broker.session(House.name, SessionQuery())
    }
}

extension `A vault that is locked and unlocked` {
    @Test func `five wrong passphrases a minute, and not one more`() async throws {
        let house = try await House.signedIn()
        try await house.broker.lockVault()
        await house.vault.failOpening(with: .wrongPassphrase)
        let before = await house.vault.openingCount
        func attempt() async -> BrokerError? {
            await error { try await house.broker.unlockVault(passphrase: Secret("guess")) }
        }
        let answers = await withTaskGroup(of: BrokerError?.self) { group in
            for _ in 0..<12 { group.addTask { await attempt() } }
            return await group.reduce(into: [BrokerError?]()) { $0.append($1) }
        }
        #expect(answers.count { $0 == .wrongPassphrase } == 5)
        #expect(answers.count { $0 == .tooManyAttempts(retryAfter: 60) } == 7)
        #expect(await house.vault.openingCount - before == 5)
        await house.vault.failOpening(with: nil)
        house.clock.advance(by: 59)
        #expect(await attempt() == .tooManyAttempts(retryAfter: 1))
        house.clock.advance(by: 1)
        #expect(await attempt() == nil)
        #expect(await house.failure() == nil)
    }

    @Test func `an attempt waits for those of programs that were wrong less often, and one runs at a time`() async {
        var attempts = UnlockAttempts()
        let now = BootInstant(milliseconds: 0)
        let wrong = UnlockCaller(process: 7, groups: ["session 1"])
        #expect(attempts.enter(wrong) == nil)
        let second = attempts.enter(UnlockCaller(process: 8, groups: ["session 1"]))
        let left = attempts.enter(UnlockCaller(process: 10, groups: ["session 3"]))
        let other = attempts.enter(UnlockCaller(process: 9, groups: ["session 2"]))
        #expect(left.map { attempts.giveUp($0) } == true)
        attempts.failed(wrong, at: now)
        attempts.ended(at: now)
        #expect(other?.value != nil && second?.value == nil && left?.value == nil)
        attempts.ended(at: now)
        #expect(second?.value != nil)
        #expect(second.map { attempts.giveUp($0) } == false)
        attempts.ended(at: now)
        #expect(attempts.enter(wrong) == nil)
    }

    @Test func `attempts of sessions that were never wrong take turns by the age of the session`() {
        var attempts = UnlockAttempts()
        let now = BootInstant(milliseconds: 0)
        func caller(_ session: UInt64?) -> UnlockCaller {
            UnlockCaller(process: Int32(session ?? 1), groups: ["session \(session ?? 0)"], sessionStart: session)
        }
        let guess = caller(900)
        #expect(attempts.enter(guess) == nil)
        let ended = attempts.enter(caller(nil))
        let guesses = (901...960).map { attempts.enter(caller($0)) }
        let user = attempts.enter(caller(50))
        attempts.failed(guess, at: now)
        attempts.ended(at: now)
        #expect(user?.value != nil && guesses.allSatisfy { $0?.value == nil } && ended?.value == nil)
    }
}
