import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

extension `A vault that is locked and unlocked` {
    // MARK: Passphrases

    @Test func `five wrong passphrases a minute, and not one more`() async throws {
        let house = try await House()
        try await house.signIn()
        try await house.broker.lockVault()
        await house.vault.failOpening(with: .wrongPassphrase)
        let before = await house.vault.openingCount
        func attempt() async -> BrokerError? {
            await error { () throws(BrokerError) in try await house.broker.unlockVault(passphrase: Secret("guess")) }
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
        #expect(left.map { attempts.giveUp($0.number) } == true)
        attempts.failed(wrong, at: now)
        attempts.ended(at: now)
        #expect(other?.turn.value != nil && second?.turn.value == nil && left?.turn.value == nil)
        attempts.ended(at: now)
        #expect(second?.turn.value != nil)
        #expect(second.map { attempts.giveUp($0.number) } == false)
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
        #expect(user?.turn.value != nil && guesses.allSatisfy { $0?.turn.value == nil } && ended?.turn.value == nil)
    }

    @Test func `wrong passphrases of one process keep no other process out`() async throws {
        let house = try await House()
        try await house.signIn()
        try await house.broker.lockVault()
        await house.vault.failOpening(with: .wrongPassphrase)
        func attempt(_ pid: Int32) async -> BrokerError? {
            await error { () throws(BrokerError) in
                try await house.broker.unlockVault(passphrase: Secret("guess"), by: UnlockCaller(process: pid))
            }
        }
        for _ in 0..<5 { #expect(await attempt(7) == .wrongPassphrase) }
        #expect(await attempt(7) == .tooManyAttempts(retryAfter: 60))
        #expect(await attempt(8) == .wrongPassphrase)
        await house.vault.failOpening(with: nil)
        #expect(await attempt(7) == .tooManyAttempts(retryAfter: 60))
        #expect(await attempt(8) == nil)
        #expect(await house.failure() == nil)
    }
}
