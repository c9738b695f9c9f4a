import Glibc
import RingbackBase
import Testing

@testable import SessionVault

private let registration = VaultSlot(account: slot.account, binding: slot.binding, kind: .registration)

@Suite struct `A client registration in the vault` {
    private let house = VaultHouse()

    private var sealed: [String] { house.names(house.folder).filter { $0.hasSuffix(".registration") } }

    @Test func `rests beside the session of the same account and binding, and is another thing`() async throws {
        let vault = try await house.opened(holding: "session")
        try await vault.store(Secret("registered"), in: registration)
        #expect(try await vault.load(slot)?.text == Secret("session"))
        #expect(try await vault.load(registration)?.text == Secret("registered"))
        #expect(sealed.count == 1 && house.names(house.folder).count == 2)
        #expect(house.mode("\(house.folder)/\(sealed[0])") == 0o600)
        let retired = try await vault.retire(slot)
        #expect(try await vault.load(registration)?.text == Secret("registered"))
        #expect(try await vault.retired().map(\.text) == [Secret("session")])
        try await vault.discard(try #require(retired).id)
        try await vault.remove(registration)
        #expect(sealed.isEmpty)
    }

    @Test func `cannot pass for a session under its name, nor a session for it`() async throws {
        let vault = try await house.opened(holding: "session")
        let session = house.sealed
        try await vault.store(Secret("registered"), in: registration)
        let path = "\(house.folder)/\(sealed[0])"
        let (first, second) = (house.content(session), house.content(path))
        house.write(second, session)
        house.write(first, path)
        for (place, file) in [(slot, session), (registration, path)] {
            let error = await failure { _ = try await vault.load(place) }
            #expect(
                error
                    == .damaged(.damaged(path: file, .otherKind, kind: place.kind, place: "\(file).damaged-1")))
        }
    }

    @Test func `keeps a vault-key that cannot open it from being taken for the right one`() async throws {
        let vault = try await house.opened()
        try await vault.store(Secret("registered"), in: registration)
        unsafe unlink(house.keyFile)
        let error = await failure { try await house.vault().open(passphrase: nil) }
        #expect(error == .locked(.keyFileMissing(path: house.keyFile, count: 1, folder: house.folder)))
        #expect(sealed.count == 1)
    }

    @Test func `is not retired`() async throws {
        let vault = try await house.opened()
        try await vault.store(Secret("registered"), in: registration)
        #expect(await failure { _ = try await vault.retire(registration) }?.isRefused == true)
        #expect(try await vault.load(registration)?.text == Secret("registered"))
    }

    @Test func `is left alone by what a killed write left behind`() async throws {
        let vault = try await house.opened()
        try await vault.store(Secret("registered"), in: registration)
        let path = "\(house.folder)/\(sealed[0])"
        house.write([1, 2, 3], path + ".tmp")
        let next = try await house.opened()
        #expect(try await next.load(registration)?.text == Secret("registered"))
        #expect(house.names(house.folder) == sealed)
    }
}
