import Glibc
import RingbackBase
import Testing

@testable import SessionVault

private let people = VaultSlot(account: slot.account, binding: slot.binding, kind: .people)

@Suite struct `What is known of people in the vault` {
    private let house = VaultHouse()

    private var sealed: [String] { house.names(house.folder).filter { $0.hasSuffix(".people") } }

    @Test func `rests beside the session, and stays when that goes`() async throws {
        let vault = try await house.opened(holding: "session")
        try await vault.store(Secret("known"), in: people)
        #expect(sealed.count == 1 && house.mode("\(house.folder)/\(sealed[0])") == 0o600)
        let retired = try #require(try await vault.retire(slot))
        try await vault.discard(retired.id)
        let next = try await house.opened()
        #expect(try await next.load(people)?.text == Secret("known"))
        #expect(try await next.load(slot) == nil)
        let error = await failure { _ = try await next.retire(people) }
        guard case .refused = error else { throw Unexpected(error) }
    }

    @Test func `is no reason to keep a vault shut whose key is lost`() async throws {
        let vault = try await house.opened()
        try await vault.store(Secret("known"), in: people)
        unsafe unlink(house.keyFile)
        let fresh = try await house.opened()
        let error = await failure { _ = try await fresh.load(people) }
        guard case .locked = error else { throw Unexpected(error) }
        try await fresh.store(Secret("known anew"), in: people)
        #expect(try await fresh.load(people)?.text == Secret("known anew"))
        #expect(sealed.count == 1)
    }

    @Test func `that is damaged is set aside, and written again`() async throws {
        let vault = try await house.opened()
        try await vault.store(Secret("known"), in: people)
        let live = sealed[0]
        house.write(Array("garbage".utf8), "\(house.folder)/\(live)")
        let error = await failure { _ = try await vault.load(people) }
        let path = "\(house.folder)/\(live)"
        #expect(error == .damaged(.damaged(path: path, .tooShort, kind: .people, place: "\(path).damaged-1")))
        #expect(try await vault.load(people) == nil)
    }
}
