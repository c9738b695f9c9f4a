import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A person's former identifier` {
    private let name = SupabaseHouse.name

    @Test func `is shown until it is acknowledged, across restarts and refreshes`() async throws {
        let house = try await SupabaseHouse.signedIn()
        #expect(try await house.view.migratesFrom == nil)
        #expect(try await house.broker.supabase.migrate(name, from: "user 7").migratesFrom == "user 7")
        #expect(await house.refresh() == nil)
        let reborn = try await house.rebirth()
        #expect(try await reborn.account(name).migratesFrom == "user 7")
        #expect(try await reborn.supabase.acknowledgeMigration(name).migratesFrom == nil)
        let third = try await house.rebirth()
        #expect(try await third.account(name).migratesFrom == nil)
    }

    @Test func `is noted once, however often it is told, and another has to wait`() async throws {
        let house = try await SupabaseHouse.signedIn()
        _ = try await house.broker.supabase.migrate(name, from: "7")
        let stores = await house.vault.stores.count
        _ = try await house.broker.supabase.migrate(name, from: "7")
        let other = await error { try await house.broker.supabase.migrate(name, from: "8") }
        guard case .conflict = other else { throw Unexpected() }
        #expect(try await house.view.migratesFrom == "7")
        _ = try await house.broker.supabase.acknowledgeMigration(name)
        _ = try await house.broker.supabase.acknowledgeMigration(name)
        #expect(await house.vault.stores.count == stores + 1)
        #expect(try await house.broker.supabase.migrate(name, from: "8").migratesFrom == "8")
    }

    @Test(arguments: ["", "a\nb", "\u{7F}", String(repeating: "x", count: 256)])
    func `is refused where it is none`(identifier: String) async throws {
        let house = try await SupabaseHouse.signedIn()
        let failure = await error {
            try await house.broker.supabase.migrate(name, from: identifier)
        }
        guard case .invalid(field: "from", _) = failure else { throw Unexpected() }
    }

    @Test func `needs a signed-in user at a project`() async throws {
        let house = try await SupabaseHouse()
        #expect(
            await error { try await house.broker.supabase.migrate(name, from: "7") }
                == .signInRequired(name))
        let other = try await House()
        let failure = await error {
            try await other.broker.supabase.migrate(House.named("work"), from: "7")
        }
        guard case .methodUnsupported = failure else { throw Unexpected() }
    }

    @Test func `does not follow the next person`() async throws {
        let house = try await SupabaseHouse.signedIn()
        _ = try await house.broker.supabase.migrate(name, from: "7")
        house.project.behave { _ = $0.addUser(email: "bob@example.org", password: SupabaseHouse.secret.revealed()) }
        try await house.signIn(email: "bob@example.org", switching: true)
        #expect(try await house.view.migratesFrom == nil)
    }
}
