import Glibc
import RingbackBase
import Synchronization
import Testing

@testable import SessionVault

/// Tells a reader on another thread that it may stop.
private final class End: Sendable {
    let value = Atomic(false)
}

@Suite struct `The vault of sealed files` {
    private let house = VaultHouse()

    @Test func `DU-08, DU-10: a reader during a store gets the whole old text or the whole new one`() async throws {
        let vault = try await house.opened(holding: "of the beginning")
        let path = house.sealed
        // A file that is open is never written to again.
        let former = unsafe open(path, O_RDONLY | O_CLOEXEC)
        defer { close(former) }
        let before = house.content(path)
        let (house, end) = (house, End())
        let sizes = Task.detached {
            var seen: Set<Int> = []
            while !end.value.load(ordering: .relaxed) { seen.insert(house.content(path).count) }
            return seen
        }
        let texts = [String(repeating: "a", count: 100_000), String(repeating: "b", count: 300_000)]
        for round in 0..<100 { try await vault.store(Secret(texts[round % 2]), in: slot) }
        end.value.store(true, ordering: .relaxed)
        #expect(FileBytes.read(former, atMost: 4 << 20) == before)
        // All sizes but those of whole files would be of a file that is being written.
        let overhead = before.count - "of the beginning".utf8.count
        let whole = Set([before.count] + texts.map { $0.utf8.count + overhead })
        #expect(await sizes.value.isSubset(of: whole))
    }

    @Test func `keeps everything to its user`() async throws {
        let vault = try await house.opened(holding: "text")
        try await vault.announce(slot)
        #expect(house.mode(house.folder) == 0o700)
        #expect(house.mode(house.keyFile) == 0o600)
        #expect(house.names(house.folder).count == 2)
        for name in house.names(house.folder) { #expect(house.mode("\(house.folder)/\(name)") == 0o600) }
        #expect(house.mode(house.keys) == 0o700)
        for name in house.names(house.keys) { #expect(house.mode("\(house.keys)/\(name)") == 0o600) }
    }

    @Test func `shows nothing of a session but whose it is`() async throws {
        _ = try await house.opened(holding: "refresh-token-canary")
        // By bytes: what follows at random may be an accent on the last of them.
        let content = Array(house.content(house.sealed))
        #expect(!content.contains(Array("canary".utf8)))
        #expect(content.contains(Array(#"{"account":"work","binding":"https://id.example.org client"}"#.utf8)))
        let name = try #require(house.names(house.folder).first)
        #expect(name.hasPrefix("work+") && name.hasSuffix(".sealed") && name.utf8.count == 44)
        #expect(house.names(house.state) == ["vault", "vault.key"])
    }

    @Test(arguments: ["", "../work", "a/b", "Work", "-a", ".a", "a+b", "a\0", "ä", String(repeating: "a", count: 65)])
    func `takes no account whose name is none`(account: String) async throws {
        let vault = try await house.opened()
        let slot = VaultSlot(account: account, binding: "b")
        #expect(await failure { try await vault.store(Secret("x"), in: slot) }?.isRefused == true)
        #expect(await failure { _ = try await vault.load(slot) }?.isRefused == true)
        #expect(house.names(house.folder) == [])
    }

    @Test func `takes a session up to its bound`() async throws {
        let vault = try await house.opened()
        let largest = Secret(bytes: [UInt8](repeating: 0x61, count: 1 << 20))
        try await vault.store(largest, in: slot)
        let larger = Secret(bytes: [UInt8](repeating: 0x61, count: 1 << 20 | 1))
        #expect(await failure { try await vault.store(larger, in: slot) }?.isRefused == true)
        #expect(try await house.opened().load(slot)?.text == largest)
    }

    @Test(arguments: ["../vault.key", "work+00.sealed", "retired-1+a+b.sealed/../../../vault.key", "", "."])
    func `discards retired sessions and nothing else`(id: String) async throws {
        let vault = try await house.opened(holding: "x")
        try await vault.discard(id)
        #expect(house.exists(house.keyFile))
        #expect(try await vault.load(slot) != nil)
    }

    @Test func `gives and takes nothing while it is closed`() async throws {
        let vault = try await house.opened(holding: "text")
        try await vault.close()
        try await vault.close()
        #expect(vault.status.isLocked)
        #expect(vault.status.reason == .lockedByUser)
        #expect(vault.status.keySource == .keyFile)
        #expect(await failure { _ = try await vault.load(slot) }?.isLocked == true)
        #expect(await failure { try await vault.store(Secret("x"), in: slot) }?.isLocked == true)
        #expect(await failure { try await vault.announce(slot) }?.isLocked == true)
        #expect(await failure { try await vault.settle(slot) }?.isLocked == true)
        #expect(await failure { try await vault.remove(slot) }?.isLocked == true)
        #expect(await failure { _ = try await vault.retire(slot) }?.isLocked == true)
        #expect(await failure { _ = try await vault.retired() }?.isLocked == true)
        #expect(await failure { try await vault.discard("x") }?.isLocked == true)
        #expect(await failure { try await vault.rekey(to: .keyFile, passphrase: nil) }?.isLocked == true)
        try await vault.open(passphrase: nil)
        #expect(!vault.status.isLocked)
        #expect(try await vault.load(slot)?.text == Secret("text"))
    }

    @Test func `before it is opened it is undecided`() async throws {
        let vault = house.vault()
        #expect(vault.status.keySource == nil)
        #expect(vault.status.isLocked)
        #expect(await failure { _ = try await vault.load(slot) }?.isLocked == true)
        #expect(house.names(house.state) == [])
    }

    @Test func `DU-05: sets a damaged session aside and says where, and the others are as they were`() async throws {
        let vault = try await house.opened(holding: "text")
        let place = house.sealed
        var damaged = house.content(place)
        damaged[damaged.count - 1] ^= 1
        house.write(damaged, place)
        try await vault.store(Secret("other"), in: otherSlot)
        let error = await failure { _ = try await vault.load(slot) }
        #expect(error == .damaged(.damaged(path: place, .changed, kind: .session, place: "\(place).damaged-1")))
        #expect(house.content(place + ".damaged-1") == damaged)
        #expect(try await vault.load(slot) == nil)
        #expect(try await vault.load(otherSlot)?.text == Secret("other"))

        try await vault.store(Secret("next"), in: slot)
        house.write([], place)
        #expect(
            await failure { _ = try await vault.load(slot) }
                == .damaged(.damaged(path: place, .tooShort, kind: .session, place: "\(place).damaged-2")))
        #expect(house.content(place + ".damaged-1") == damaged)
        #expect(house.content(place + ".damaged-2") == [])
        #expect(try await house.opened().load(otherSlot)?.text == Secret("other"))
    }

    @Test func `retires no session that it cannot read`() async throws {
        let vault = try await house.opened(holding: "text")
        house.write([1, 2, 3], house.sealed)
        #expect(await failure { _ = try await vault.retire(slot) }?.isDamaged == true)
        #expect(try await vault.retired() == [])
    }

    @Test func `leaves out a retired session that cannot be read, and keeps it`() async throws {
        let vault = try await house.opened()
        for text in ["one", "two"] {
            try await vault.store(Secret(text), in: slot)
            _ = try await vault.retire(slot)
        }
        let first = try #require(house.names(house.folder).first)
        house.write([1], "\(house.folder)/\(first)")
        #expect(try await house.opened().retired().map(\.text) == [Secret("two")])
        #expect(house.names(house.folder).contains(first))
    }

    @Test func `a session in another's place is not served`() async throws {
        let vault = try await house.opened()
        try await vault.store(Secret("other"), in: otherSlot)
        let content = house.content(house.sealed)
        try await vault.store(Secret("mine"), in: slot)
        let mine = try #require(house.names(house.folder).first { $0.hasPrefix("work") })
        house.write(content, "\(house.folder)/\(mine)")
        let error = await failure { _ = try await vault.load(slot) }
        let path = "\(house.folder)/\(mine)"
        #expect(error == .damaged(.damaged(path: path, .otherAccount, kind: .session, place: "\(path).damaged-1")))
        #expect(try await vault.load(otherSlot)?.text == Secret("other"))
    }

    @Test func `DU-07: leaves a session of a newer version as it is`() async throws {
        let vault = try await house.opened(holding: "text")
        var newer = house.content(house.sealed)
        newer[9] = 9
        house.write(newer, house.sealed)
        #expect(await failure { _ = try await vault.load(slot) }?.isNewer == true)
        #expect(await failure { _ = try await vault.retire(slot) }?.isNewer == true)
        #expect(house.content(house.sealed) == newer)
        #expect(try await house.opened().status.isLocked == false)
    }

    @Test func `a session under another vault's key is left as it is`() async throws {
        let stranger = VaultHouse()
        let theirs = try await stranger.opened()
        try await theirs.store(Secret("theirs"), in: slot)
        let content = stranger.content(stranger.sealed)
        let vault = try await house.opened()
        try await vault.store(Secret("other"), in: otherSlot)
        try await vault.store(Secret("mine"), in: slot)
        let mine = try #require(house.names(house.folder).first { $0.hasPrefix("work") })
        house.write(content, "\(house.folder)/\(mine)")
        #expect(await failure { _ = try await vault.load(slot) }?.isLocked == true)
        #expect(house.content("\(house.folder)/\(mine)") == content)
        #expect(try await house.opened().load(otherSlot)?.text == Secret("other"))
    }

    @Test func `DU-05: a flipped bit never gives another text, whatever it hits`() async throws {
        let vault = try await house.opened(holding: "text")
        let place = house.sealed
        let good = house.content(place)
        var wrong = 0
        for bit in 0..<(good.count * 8) {
            var changed = good
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            house.write(changed, place)
            if let text = try? await vault.load(slot)?.text {
                #expect(text == Secret("text"))
                if text != Secret("text") { wrong += 1 }
            }
            house.remove(place + ".damaged-1")
        }
        print("figure: bits flipped under an open vault = \(good.count * 8)")
        print("figure: wrong sessions served for that = \(wrong)")
        house.write(good, place)
        #expect(try await vault.load(slot)?.text == Secret("text"))
    }
}
