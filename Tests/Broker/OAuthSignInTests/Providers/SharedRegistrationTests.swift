import OAuth
import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `A registration in a vault that hosts share` {
    private static let theirs = MCPClientRecord.Client(
        issuer: "https://id.example", clientID: "theirs", authentication: .none, hasSecret: false,
        redirectURI: "http://127.0.0.1:4711/callback/work", template: nil, scopes: [])

    private func record(_ client: MCPClientRecord.Client) -> Secret {
        var record = MCPClientRecord()
        record.add(client)
        return record.encoded()
    }

    @Test func `waits for another host, reads again what that one changed, and goes on`() async throws {
        let office = await Office()
        await office.vault.answer(.wait(.seconds(5)), .wait(.milliseconds(10)), .changed(nil), .granted(.unshared))
        let registering = Task { try await office.register() }
        for _ in 0..<2 {
            #expect(await eventually { !office.clock.wakes.isEmpty })
            #expect(office.server.registrations.isEmpty)
            office.clock.advance(by: 1)
        }
        #expect(try await registering.value.clientID == "c1")
        #expect(office.server.registrations.count == 1)
        #expect(await office.vault.isAnnounced == false)
    }

    @Test func `fails as one that ends by itself if the other host is at it for half a minute`() async throws {
        let office = await Office()
        for _ in 0..<40 { await office.vault.answer(.wait(.seconds(5))) }
        let registering = Task { await error { try await office.register() } }
        for _ in 0..<30 {
            #expect(await eventually { !office.clock.wakes.isEmpty })
            office.clock.advance(by: 1)
        }
        #expect(await registering.value == .vaultUnreachable(.vault(.unreachable(.heldElsewhere))))
        #expect(office.server.registrations.isEmpty)
    }

    @Test func `is not made if another host has registered a client meanwhile`() async throws {
        let house = try await MCPHouse()
        let slot = MCPClientRecord.slot(try await house.broker.sessionManager.account(House.name))
        await house.vault.answer(.wait(.seconds(5)), .changed(nil), .granted(.unshared))
        let beginning = Task { try await house.begin().query["client_id"] }
        #expect(await eventually { !house.clock.wakes.isEmpty })
        await house.vault.put(record(Self.theirs), in: slot)
        house.clock.advance(by: 1)
        #expect(try await beginning.value == "theirs")
        #expect(house.network.requests(to: "/register").isEmpty)
        #expect(await house.vault.isAnnounced == false)
    }

    @Test func `is added to what another host has stored meanwhile`() async throws {
        let (vault, clock) = (RecordingVault(), TestClock())
        try await vault.open(passphrase: nil)
        let slot = RegistrationRecord.slot(House.name, issuer: "https://id.example", clientID: nil)
        await vault.put(record(Self.theirs), in: slot)
        await vault.failOnceStoring(with: .unreachable(.changedElsewhere), .unreachable(.heldElsewhere))
        let records = SharedRecords(vault: vault, clock: clock.clock)
        let add: @Sendable (Secret?) -> Secret = { text in
            var record = text.flatMap { MCPClientRecord(decoding: $0) } ?? MCPClientRecord()
            record.replace("https://other.example")
            return record.encoded()
        }
        let changing = Task { try await records.change(slot, add) }
        #expect(await eventually { !clock.wakes.isEmpty })
        clock.advance(by: 1)
        try await changing.value
        #expect(await vault.stores.count == 3)
        let stored = try await vault.load(slot).flatMap { MCPClientRecord(decoding: $0.text) }
        #expect(stored?.clients == [Self.theirs])
        // What does not end by itself is told at once.
        await vault.failOnceStoring(with: .unwritable(.diskFull))
        let full = await thrown(by: try await records.change(slot, add))
        #expect(full == .vaultFailed(.vault(.unwritable(.diskFull))))
    }
}
