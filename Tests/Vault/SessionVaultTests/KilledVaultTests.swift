import Glibc
import RingbackBase
import Testing

@testable import SessionVault

/// What is found after a kill at each call, made by hand: what the calls before it leave behind.
@Suite struct `After a kill` {
    private let house = VaultHouse()
    private let old = Secret("old")

    private func prepared(announced: Bool) async throws -> (place: String, new: [UInt8]) {
        let vault = try await house.opened(holding: "new and longer")
        let new = house.content(house.sealed)
        try await vault.store(old, in: slot)
        if announced { try await vault.announce(slot) }
        return (house.sealed, new)
    }

    @Test func `DU-01: in a store without announcement the old session is there, and no half file`() async throws {
        let (place, new) = try await prepared(announced: false)
        for count in [0, 1, new.count / 2, new.count] {
            house.write(Array(new[..<count]), place + ".tmp")
            let vault = try await house.opened()
            #expect(try await vault.load(slot) == VaultEntry(text: old))
            #expect(!house.exists(place + ".tmp"))
        }
        house.write(new, place + ".tmp")
        let vault = try await house.opened()
        house.write(new, place + ".tmp")
        try await vault.store(Secret("later"), in: slot)
        #expect(try await house.opened().load(slot) == VaultEntry(text: Secret("later")))
    }

    @Test func `in an announced store the old session is there, marked, until the new one is whole`() async throws {
        let (place, new) = try await prepared(announced: true)
        #expect(house.content(place + ".next").count == 65_536)
        // What is not written yet is zero. The last bytes may be zero themselves: then they are there before they are written.
        let last = try #require(new.lastIndex { $0 != 0 })
        for count in 0...last {
            // Not yet shortened, then shortened and not yet all there.
            for end in [65_536, new.count] {
                let rest = [UInt8](repeating: 0, count: end - count)
                house.write(new[..<count] + rest, place + ".next")
                let entry = try await house.opened().load(slot)
                #expect(entry == VaultEntry(text: old, isInterrupted: true), "\(count) of \(new.count)")
            }
        }
        house.write(new, place + ".next")
        #expect(try await house.opened().load(slot) == VaultEntry(text: Secret("new and longer")))
        #expect(!house.exists(place + ".next"))
        #expect(house.content(place) == new)
    }

    @Test func `a first session that was whole is there`() async throws {
        let (place, new) = try await prepared(announced: true)
        house.remove(place)
        house.write(new, place + ".next")
        #expect(try await house.opened().load(slot) == VaultEntry(text: Secret("new and longer")))
    }

    @Test func `in a store of one session no other is touched by its mark`() async throws {
        let (place, new) = try await prepared(announced: true)
        let vault = try await house.opened()
        try await vault.store(Secret("other"), in: otherSlot)
        try await vault.announce(otherSlot)
        let other = try #require(house.names(house.folder).first { $0.hasPrefix("mail") && $0.hasSuffix(".next") })
        // Authentic, and in the wrong place.
        house.write(new, "\(house.folder)/\(other)")
        let next = try await house.opened()
        #expect(try await next.load(otherSlot) == VaultEntry(text: Secret("other"), isInterrupted: true))
        #expect(try await next.load(slot) == VaultEntry(text: old, isInterrupted: true))
        #expect(house.exists(place))
    }

    @Test func `in an announcement there is a mark or none`() async throws {
        let (place, _) = try await prepared(announced: false)
        for size in [0, 4_096, 65_536] {
            house.write([UInt8](repeating: 0, count: size), place + ".next")
            let vault = try await house.opened()
            #expect(try await vault.load(slot) == VaultEntry(text: old, isInterrupted: true))
            // It has its room again.
            try await vault.announce(slot)
            #expect(house.content(place + ".next").count == 65_536)
        }
    }

    @Test func `between the two steps of removing, the session is gone`() async throws {
        let (place, _) = try await prepared(announced: true)
        house.remove(place)
        #expect(try await house.opened().load(slot) == nil)
    }

    @Test func `between the steps of retiring, the session is retired`() async throws {
        let (place, _) = try await prepared(announced: true)
        let name = try #require(place.split(separator: "/").last)
        house.move(place, "\(house.folder)/retired-0000000000007+\(name)")
        let vault = try await house.opened()
        #expect(try await vault.load(slot) == nil)
        #expect(try await vault.retired().map(\.text) == [old])
        try await vault.store(Secret("next"), in: slot)
        #expect(try await vault.retire(slot)?.id == "retired-0000000000008+\(name)")
    }

    /// A copy of the old session, as the first step of a replacement leaves it.
    private func copied(_ place: String) throws -> String {
        let name = try #require(place.split(separator: "/").last)
        let copy = "\(house.folder)/retired-0000000000007+\(name)"
        house.write(house.content(place), copy)
        return copy
    }

    @Test func `between the steps of replacing, the old session is there and is not over`() async throws {
        let (place, new) = try await prepared(announced: false)
        let copy = try copied(place)
        house.write(Array(new.prefix(9)), place + ".tmp")
        var vault = try await house.opened()
        #expect(try await vault.load(slot) == VaultEntry(text: old))
        #expect(try await vault.retired() == [])
        #expect(!house.exists(copy))
        // After the last step, it is.
        _ = try copied(place)
        house.write(new, place)
        vault = try await house.opened()
        #expect(try await vault.load(slot) == VaultEntry(text: Secret("new and longer")))
        #expect(try await vault.retired().map(\.text) == [old])
    }

    @Test func `a replacement that failed leaves the old session, which is not over`() async throws {
        let (place, _) = try await prepared(announced: false)
        unsafe mkdir(place + ".tmp", 0o700)
        house.write([], place + ".tmp/in-the-way")
        let vault = try await house.opened()
        #expect(await failure { _ = try await vault.replace(Secret("new"), in: slot) }?.isUnwritable == true)
        #expect(try await vault.load(slot) == VaultEntry(text: old))
        #expect(try await vault.retired() == [])
        #expect(house.names(house.folder).filter { $0.hasPrefix("retired") } == [])
    }

    @Test func `a copy that could not be removed is not told, and gone before the session changes`() async throws {
        let (place, _) = try await prepared(announced: false)
        let copy = try copied(place)
        // The slot's file cannot be read when the vault is opened: nobody knows what the copy is.
        let held = house.content(place)
        house.remove(place)
        unsafe mkdir(place, 0o700)
        let vault = try await house.opened()
        #expect(try await vault.retired() == [])
        #expect(await failure { try await vault.store(Secret("next"), in: slot) }?.isUnwritable == true)
        house.remove(place)
        house.write(held, place)
        #expect(try await vault.retired() == [])
        try await vault.store(Secret("next"), in: slot)
        #expect(try await vault.retired() == [])
        #expect(!house.exists(copy))
        #expect(try await vault.load(slot) == VaultEntry(text: Secret("next")))
    }

    @Test func `in making vault-key nothing is decided yet`() async throws {
        house.write([1, 2, 3], house.keyFile + ".tmp")
        let vault = try await house.opened()
        try await vault.store(old, in: slot)
        #expect(house.names(house.state) == ["vault", "vault.key"])
        house.write(Array(house.content(house.keyFile).prefix(40)), house.keyFile + ".tmp")
        #expect(try await house.opened().load(slot)?.text == old)
        #expect(house.names(house.state) == ["vault", "vault.key"])
    }

    @Test func `a refused store leaves the old session and no trace`() async throws {
        let (place, _) = try await prepared(announced: false)
        unsafe mkdir(place + ".tmp", 0o700)
        house.write([], place + ".tmp/in-the-way")
        let vault = try await house.opened()
        let error = await failure { try await vault.store(Secret("new"), in: slot) }
        guard case .unwritable(.file(let failure))? = error else { throw Unexpected(error) }
        #expect(failure.action == .write && failure.path == place)
        #expect(try await vault.load(slot) == VaultEntry(text: old))
    }

    /// Writes all bytes of "new" for an announced store; the rename meets a directory.
    private func failToStore(at place: String, _ vault: SealedFileVault) async throws {
        house.move(place, place + ".away")
        unsafe mkdir(place, 0o700)
        #expect(await failure { try await vault.store(Secret("new"), in: slot) }?.isUnwritable == true)
        house.remove(place)
        house.move(place + ".away", place)
        #expect(try await vault.load(slot) == VaultEntry(text: old, isInterrupted: true))
    }

    @Test func `a store that cannot be finished keeps session and mark`() async throws {
        let (place, _) = try await prepared(announced: true)
        let vault = try await house.opened()
        try await failToStore(at: place, vault)
        try await vault.store(Secret("again, and longer than before"), in: slot)
        #expect(try await vault.load(slot) == VaultEntry(text: Secret("again, and longer than before")))
    }

    @Test func `a store that failed with all its bytes written is finished before the next change`() async throws {
        let (place, _) = try await prepared(announced: true)
        let vault = try await house.opened()
        try await failToStore(at: place, vault)
        try await vault.announce(slot)
        #expect(try await vault.load(slot) == VaultEntry(text: Secret("new"), isInterrupted: true))
        #expect(try await house.opened().load(slot) == VaultEntry(text: Secret("new"), isInterrupted: true))
    }

    @Test func `a refused announcement leaves no mark`() async throws {
        let (place, _) = try await prepared(announced: false)
        unsafe mkdir(place + ".next", 0o700)
        let vault = try await house.opened()
        #expect(await failure { try await vault.announce(slot) }?.isUnwritable == true)
        house.remove(place + ".next")
        #expect(try await vault.load(slot) == VaultEntry(text: old))
    }

    @Test func `DU-09: a file that cannot be read is not called damaged`() async throws {
        let (place, _) = try await prepared(announced: false)
        house.remove(place)
        unsafe mkdir(place, 0o700)
        let vault = try await house.opened()
        #expect(await failure { _ = try await vault.load(slot) }?.isUnwritable == true)
        #expect(house.exists(place))
    }
}
