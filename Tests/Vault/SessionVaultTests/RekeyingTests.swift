import RingbackBase
import Synchronization
import Testing

@testable import SessionVault

@Suite struct `Moving the vault's key` {
    private let house = VaultHouse()
    private let keyring = FakeSource(.secretService)
    private let credential = FakeSource(.systemdCredential)

    private var sources: [any KeySource] {
        [keyring, credential, house.keySource, PassphraseSource(cost: cheapScrypt)]
    }

    @Test func `changes vault-key alone, and the old source lets its key go`() async throws {
        let vault = try await house.opened(.secretService, sources)
        try await vault.store(Secret("text"), in: slot)
        let sealed = house.content(house.sealed)
        try await vault.rekey(to: .keyFile, passphrase: nil)
        #expect(vault.status.keySource == .keyFile)
        #expect(keyring.keys.isEmpty)
        #expect(house.content(house.sealed) == sealed)
        #expect(house.names(house.state) == ["vault", "vault.key"])
        #expect(try await vault.load(slot)?.text == Secret("text"))
        try await vault.store(Secret("more"), in: slot)
        #expect(try await house.opened(.auto, sources).load(slot)?.text == Secret("more"))
        try await vault.rekey(to: .systemdCredential, passphrase: nil)
        #expect(house.names(house.keys).isEmpty)
        #expect(try await house.opened(.auto, sources).load(slot)?.text == Secret("more"))
    }

    @Test func `to the same source gives it a new key`() async throws {
        let vault = try await house.opened(.secretService, sources)
        let before = keyring.keys
        try await vault.rekey(to: .secretService, passphrase: nil)
        #expect(keyring.keys.count == 1)
        #expect(keyring.keys != before)
        _ = try await house.opened(.auto, sources)
    }

    @Test func `to auto takes what the first start would`() async throws {
        let vault = try await house.opened(.keyFile, sources)
        credential.become(.absent)
        try await vault.rekey(to: .auto, passphrase: nil)
        #expect(vault.status.keySource == .secretService)
    }

    @Test func `to a passphrase asks for it from then on`() async throws {
        let vault = try await house.opened(.secretService, sources)
        try await vault.store(Secret("text"), in: slot)
        #expect(await failure { try await vault.rekey(to: .passphrase, passphrase: nil) }?.isRefused == true)
        #expect(await failure { try await vault.rekey(to: .passphrase, passphrase: Secret("")) }?.isRefused == true)
        #expect(keyring.keys.count == 1)
        try await vault.rekey(to: .passphrase, passphrase: Secret("correct horse"))
        #expect(keyring.keys.isEmpty)
        let next = house.vault(.auto, sources)
        let error = await failure { try await next.open(passphrase: nil) }
        #expect(error == .locked(.needsPassphrase))
        #expect(await failure { try await next.open(passphrase: Secret("wrong")) } == .wrongPassphrase)
        // Why it is locked is what it was.
        #expect(next.status.isLocked && next.status.reason == error?.reason)
        try await next.open(passphrase: Secret("correct horse"))
        #expect(try await next.load(slot)?.text == Secret("text"))
        // Another passphrase is a rekey as well.
        try await next.rekey(to: .passphrase, passphrase: Secret("battery staple"))
        let last = house.vault(.auto, sources)
        #expect(await failure { try await last.open(passphrase: Secret("correct horse")) } == .wrongPassphrase)
        try await last.open(passphrase: Secret("battery staple"))
        #expect(try await last.load(slot)?.text == Secret("text"))
    }

    @Test(arguments: [FakeSource.Mood.absent, .locked])
    func `to a source that takes no key changes nothing`(mood: FakeSource.Mood) async throws {
        let vault = try await house.opened(.secretService, sources)
        try await vault.store(Secret("text"), in: slot)
        let before = house.content(house.keyFile)
        credential.become(mood)
        let error = await failure { try await vault.rekey(to: .systemdCredential, passphrase: nil) }
        let cause = mood == .absent ? FakeSource.absence : .keyringLocked
        #expect(error == .refused(.keyStays(.notTaken(.systemdCredential, cause))))
        #expect(await failure { try await vault.rekey(to: .memory, passphrase: nil) }?.isRefused == true)
        #expect(house.content(house.keyFile) == before)
        #expect(keyring.keys.count == 1)
        #expect(!vault.status.isLocked)
        #expect(try await vault.load(slot)?.text == Secret("text"))
        #expect(try await house.opened(.auto, sources).load(slot)?.text == Secret("text"))
    }

    @Test func `that cannot write leaves both keys as they were`() async throws {
        let vault = try await house.opened(.secretService, sources)
        let before = house.content(house.keyFile)
        // The temporary file meets a directory that is not empty.
        house.block(house.keyFile + ".tmp")
        #expect(await failure { try await vault.rekey(to: .keyFile, passphrase: nil) }?.isUnwritable == true)
        #expect(house.content(house.keyFile) == before)
        #expect(keyring.keys.count == 1)
        #expect(house.names(house.keys).isEmpty)
    }

    @Test func `needs an open vault`() async throws {
        _ = try await house.opened(.secretService, sources)
        let vault = house.vault(.auto, sources)
        #expect(await failure { try await vault.rekey(to: .keyFile, passphrase: nil) }?.isLocked == true)
        keyring.become(.locked)
        _ = await failure { try await vault.open(passphrase: nil) }
        #expect(await failure { try await vault.rekey(to: .keyFile, passphrase: nil) }?.isLocked == true)
        #expect(keyring.keys.count == 1)
    }

    @Test func `follows a configuration that has changed already`() async throws {
        try await house.opened(.secretService, sources).store(Secret("text"), in: slot)
        let vault = house.vault(.keyFile, sources)
        #expect(await failure { try await vault.open(passphrase: nil) }?.isLocked == true)
        try await vault.rekey(to: .keyFile, passphrase: nil)
        #expect(!vault.status.isLocked)
        #expect(try await vault.load(slot)?.text == Secret("text"))
        #expect(try await house.opened(.keyFile, sources).load(slot)?.text == Secret("text"))
    }

    @Test func `is not needed where a passphrase is named, but the passphrase is`() async throws {
        let vault = house.vault(.passphrase, sources)
        let error = await failure { try await vault.open(passphrase: nil) }
        #expect(error == .locked(.noPassphraseYet))
        // Whoever asks the person for it knows that it is a new one, and to ask twice.
        #expect(vault.status.needsNewPassphrase)
        #expect(await failure { try await vault.open(passphrase: Secret("")) }?.isRefused == true)
        #expect(!house.exists(house.keyFile))
        try await vault.open(passphrase: Secret("correct horse"))
        try await vault.store(Secret("text"), in: slot)
        try await vault.close()
        #expect(!vault.status.needsNewPassphrase)
        #expect(await failure { try await vault.open(passphrase: Secret("")) }?.isLocked == true)
        #expect(await failure { try await vault.open(passphrase: Secret("wrong")) } == .wrongPassphrase)
        try await vault.open(passphrase: Secret("correct horse"))
        #expect(try await vault.load(slot)?.text == Secret("text"))
    }
}
