import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

extension `A session of a project that no account has` {
    @Test func `is ended when the vault is locked, if it was to leave nothing behind`() async throws {
        for isPersistent in [true, false] {
            let house = try await SupabaseHouse()
            try await house.signIn(isPersistent: isPersistent)
            try await house.broker.lockVault()
            if isPersistent {
                #expect(house.project.count("POST /logout local") == 0)
            } else {
                #expect(await eventually { house.project.sessions.isEmpty })
            }
            try await house.broker.unlockVault(passphrase: nil)
            #expect(
                await eventually { (try? await house.view.state) == (isPersistent ? .authenticated : .unauthenticated) }
            )
        }
    }

    @Test func `is ended by a lock and with the daemon, even if its account was removed meanwhile`() async throws {
        for isLocked in [true, false] {
            let house = try await SupabaseHouse()
            let account = try await house.broker.sessionManager.account(name)
            try await house.signIn(isPersistent: false)
            await house.broker.configure([])
            // As long as it may come back, nobody is told anything.
            #expect(house.project.count("POST /logout local") == 0)
            if isLocked { try await house.broker.lockVault() } else { await house.broker.drain(atMost: .seconds(5)) }
            #expect(await eventually { house.project.sessions.isEmpty })
            #expect(await house.broker.sessionManager.detached.isEmpty)
            guard isLocked else { continue }
            try await house.broker.unlockVault(passphrase: nil)
            try await house.configure(account)
            #expect(await eventually { (try? await house.view.state) == .unauthenticated })
        }
    }

    @Test func `is ended with the daemon, if it was to leave nothing behind`() async throws {
        let house = try await SupabaseHouse()
        try await house.signIn(isPersistent: false)
        await house.broker.drain(atMost: .seconds(5))
        #expect(house.project.sessions.isEmpty)
        #expect(try await house.view.state == .unauthenticated)
    }

    @Test func `is told of once, where nothing is to be left of it here`() async throws {
        let house = try await SupabaseHouse()
        try await house.signIn(isPersistent: false)
        house.project.script("POST /logout local", .status(503), .status(503))
        try await house.broker.lockVault()
        #expect(await eventually { house.facts.names.contains("revocationAbandoned") })
        #expect(await house.broker.pendingRevocations().isEmpty)
    }

    @Test func `ends here at once where the server knows its person no more`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.script(
            "GET /user",
            .answer(403, #"{"code":"user_not_found","message":"No."}"#, [("X-Supabase-Api-Version", "2024-01-01")]))
        let failure = await error { try await house.broker.supabase.user(name) }
        #expect(failure == .sessionExpired(name, word: "user_not_found"))
        #expect(try await house.view.state == .unauthenticated)
        #expect(house.project.presented.isEmpty)
    }
}
