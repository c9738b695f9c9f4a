import Glibc
import RingbackBase
import Testing

@testable import SessionVault

/// What is found after a kill at each call of a rekey, made by hand: what the calls before it leave behind.
@Suite struct `After a kill in changing the vault's key` {
    private let house = VaultHouse()
    /// Another vault's key, in the same directory: nobody touches it.
    private let foreign = String(repeating: "f", count: 32) + ".key"

    private struct Key {
        let file: VaultKeyFile
        let vaultKey: [UInt8]
        let name: String
        let content: [UInt8]
    }

    private func current() throws -> Key {
        let bytes = house.content(house.keyFile)
        let file = try VaultKeyFile(parsing: bytes)
        let name = file.keyID + ".key"
        return Key(file: file, vaultKey: bytes, name: name, content: house.content("\(house.keys)/\(name)"))
    }

    /// A vault with a session, before and after a rekey from key file to key file. It stands as after it.
    private func rekeyed() async throws -> (old: Key, new: Key) {
        let vault = try await house.opened(holding: "text")
        house.write([1], "\(house.keys)/\(foreign)")
        let old = try current()
        try await vault.rekey(to: .keyFile, passphrase: nil)
        #expect(house.names(house.state) == ["vault", "vault.key"])
        return (old, try current())
    }

    private func put(_ key: Key) { house.write(key.content, "\(house.keys)/\(key.name)") }

    @discardableResult private func note(_ made: Key, replacing replaced: Key?) throws -> String {
        try KeyChange(made: made.file, replaced: replaced?.file).write(in: SyncedDirectory(opening: house.state))
    }

    /// The next start: the session is there, and beside the other vault's these keys are.
    private func expectStart(_ keys: [Key], _ step: String) async throws {
        #expect(try await house.opened().load(slot)?.text == Secret("text"), "\(step)")
        #expect(house.names(house.state) == ["vault", "vault.key"], "\(step)")
        #expect(house.names(house.keys) == (keys.map(\.name) + [foreign]).sorted(), "\(step)")
    }

    @Test func `the one key is there that vault-key names, and no other vault's is touched`() async throws {
        let (old, new) = try await rekeyed()
        /// As before the rekey; then what the calls up to the kill have done.
        func killed(_ step: String, leaving key: Key, _ calls: () throws -> Void) async throws {
            house.write(old.vaultKey, house.keyFile)
            house.remove("\(house.keys)/\(new.name)")
            put(old)
            try calls()
            try await expectStart([key], step)
        }
        try await killed("while the note is written", leaving: old) {
            house.write([0x7B], house.keyFile + ".change.tmp")
        }
        try await killed("before the note has its number", leaving: old) {
            house.move("\(house.state)/\(try note(new, replacing: old))", house.keyFile + ".change")
        }
        try await killed("before the key is made", leaving: old) { try note(new, replacing: old) }
        try await killed("while the key is written", leaving: old) {
            try note(new, replacing: old)
            house.write(Array(new.content.prefix(20)), "\(house.keys)/\(new.name).tmp")
        }
        try await killed("once the key is made", leaving: old) {
            try note(new, replacing: old)
            put(new)
        }
        try await killed("while vault.key is written", leaving: old) {
            try note(new, replacing: old)
            put(new)
            house.write(Array(new.vaultKey.prefix(50)), house.keyFile + ".tmp")
        }
        try await killed("once vault.key is written", leaving: new) {
            try note(new, replacing: old)
            put(new)
            house.write(new.vaultKey, house.keyFile)
        }
        try await killed("once the old key is gone", leaving: new) {
            try note(new, replacing: old)
            put(new)
            house.write(new.vaultKey, house.keyFile)
            house.remove("\(house.keys)/\(old.name)")
        }
    }

    @Test func `a note that is a copy says nothing of what its keys are needed for now`() async throws {
        let (old, new) = try await rekeyed()
        put(old)
        let place = "\(house.state)/\(try note(new, replacing: old))"
        house.write(house.content(place), place + ".copy")
        house.move(place + ".copy", place)
        try await expectStart([old, new], "a copy")
    }

    @Test func `a vault-key that names neither keeps both`() async throws {
        let (old, new) = try await rekeyed()
        put(old)
        try await house.opened().rekey(to: .keyFile, passphrase: nil)
        let third = try current()
        put(new)
        try note(new, replacing: old)
        try await expectStart([old, new, third], "a third key")
    }

    @Test func `a note that was changed is worth nothing`() async throws {
        let (old, new) = try await rekeyed()
        for text in ["", "{}", "{\"made\":{\"source\":\"key-file\",\"id\":\"../../x\",\"parameters\":{}}}"] {
            let place = "\(house.state)/\(try note(new, replacing: old))"
            house.write(Array(text.utf8), place)
            try await expectStart([new], text)
        }
    }

    @Test func `of the first opening one key is left, the one that is named`() async throws {
        _ = try await house.opened()
        house.write([1], "\(house.keys)/\(foreign)")
        let first = try current()
        try note(first, replacing: nil)
        _ = try await house.opened()
        #expect(house.names(house.keys) == [first.name, foreign].sorted())
        // Before vault.key was written.
        try note(first, replacing: nil)
        house.remove(house.keyFile)
        _ = try await house.opened()
        #expect(house.names(house.keys) == [try current().name, foreign].sorted())
        #expect(try current().name != first.name)
        #expect(house.names(house.state) == ["vault", "vault.key"])
    }

    @Test func `another vault's vault-key after an unfinished first start costs no key`() async throws {
        try await house.opened().store(Secret("text"), in: slot)
        let first = try current()
        try note(first, replacing: nil)
        let other = VaultHouse()
        _ = try await other.opened()
        let foreign = try VaultKeyFile(parsing: other.content(other.keyFile)).keyID + ".key"
        house.write(other.content("\(other.keys)/\(foreign)"), "\(house.keys)/\(foreign)")
        house.write(other.content(other.keyFile), house.keyFile)
        // With the sealed session there it is refused, and without it taken for this directory's.
        #expect(await failure { _ = try await house.opened() } != nil)
        house.move("\(house.state)/vault", "\(house.state)/vault.away")
        _ = try await house.opened()
        #expect(house.names(house.keys) == [first.name, foreign].sorted())
        house.move("\(house.state)/vault", "\(house.state)/vault.other")
        house.move("\(house.state)/vault.away", "\(house.state)/vault")
        house.write(first.vaultKey, house.keyFile)
        #expect(try await house.opened().load(slot)?.text == Secret("text"))
    }

    @Test func `the note of the named key stays as long as the one of an earlier key`() async throws {
        let keyring = FakeSource(.secretService)
        _ = try await house.opened(.secretService, [keyring, house.keySource])
        let first = try current()
        try note(first, replacing: nil)
        house.remove(house.keyFile)
        keyring.become(.locked)
        _ = try await house.opened(.keyFile, [keyring, house.keySource])
        #expect(house.names(house.state).count == 4 && keyring.keys.count == 1)
        keyring.become(.ready)
        _ = try await house.opened(.keyFile, [keyring, house.keySource])
        #expect(house.names(house.state) == ["vault", "vault.key"] && keyring.keys.isEmpty)
    }

    @Test func `a source that is not there is asked again at the next start`() async throws {
        let keyring = FakeSource(.secretService)
        let sources: [any KeySource] = [keyring, house.keySource]
        let vault = try await house.opened(.secretService, sources)
        try await vault.store(Secret("text"), in: slot)
        keyring.become(.locked)
        try await vault.rekey(to: .keyFile, passphrase: nil)
        #expect(keyring.keys.count == 1)
        _ = try await house.opened(.auto, sources)
        #expect(keyring.keys.count == 1 && house.names(house.state).count == 3)
        keyring.become(.ready)
        _ = try await house.opened(.auto, sources)
        #expect(keyring.keys.isEmpty && house.names(house.state).count == 2)
    }
}
