import RingbackBase
import Testing

@testable import SessionVault

/// Each source, at the first start and later: there, absent, locked, with another key.
@Suite struct `The key's source` {
    private let house = VaultHouse()
    static let kept: [KeySourceChoice] = [.secretService, .systemdCredential, .keyFile, .passphrase]

    struct Beginning: Sendable {
        var credential: Bool
        var keyring: Bool
        var expected: KeySourceChoice
    }

    @Test(arguments: [
        Beginning(credential: true, keyring: true, expected: .systemdCredential),
        Beginning(credential: true, keyring: false, expected: .systemdCredential),
        Beginning(credential: false, keyring: true, expected: .secretService),
        Beginning(credential: false, keyring: false, expected: .keyFile),
    ])
    func `is decided by auto from what is there, once`(beginning: Beginning) async throws {
        let credential = FakeSource(.systemdCredential, beginning.credential ? .ready : .absent)
        let keyring = FakeSource(.secretService, beginning.keyring ? .ready : .absent)
        let sources: [any KeySource] = [credential, keyring, house.keySource]
        let vault = try await house.opened(.auto, sources)
        #expect(vault.status.keySource == beginning.expected)
        try await vault.store(Secret("text"), in: slot)
        // Everything is there later: what was decided stays.
        credential.become(.ready)
        keyring.become(.ready)
        let next = try await house.opened(.auto, sources)
        #expect(next.status.keySource == beginning.expected)
        #expect(try await next.load(slot)?.text == Secret("text"))
    }

    @Test(arguments: kept) func `is the named one where one is named`(choice: KeySourceChoice) async throws {
        let sources = Self.kept.map { FakeSource($0) }
        let vault = try await house.opened(choice, sources)
        #expect(
            vault.status
                == VaultStatus(
                    kind: .sealedFile, isLocked: false, keySource: choice, protection: FakeSource.protection))
        #expect(sources.filter { !$0.keys.isEmpty }.map(\.choice) == [choice])
    }

    @Test(arguments: kept, [FakeSource.Mood.absent, .locked])
    func `SK-31: named and not usable at the first start locks the vault, and nothing is decided`(
        choice: KeySourceChoice, mood: FakeSource.Mood
    ) async throws {
        let sources = Self.kept.map { FakeSource($0, $0 == choice ? mood : .ready) }
        let vault = house.vault(choice, sources)
        let error = await failure { try await vault.open(passphrase: nil) }
        #expect(error == .locked(.notTaken(choice, mood == .absent ? FakeSource.absence : .keyringLocked)))
        #expect(vault.status.isLocked)
        #expect(vault.status.reason == error?.reason)
        #expect(!house.exists(house.keyFile))
        #expect(sources.allSatisfy { $0.keys.isEmpty })
        sources.first { $0.choice == choice }?.become(.ready)
        try await vault.open(passphrase: nil)
        #expect(vault.status.keySource == choice)
    }

    @Test func `not among the sources locks the vault`() async throws {
        let error = await failure { _ = try await house.opened(.secretService) }
        #expect(error == .locked(.noSuchKeeper(.secretService)))
        _ = try await house.opened()
        let later = await failure { _ = try await house.opened(.auto, []) }
        #expect(later == .locked(.keySourceMissing(.keyFile)))
    }

    @Test(arguments: kept, [FakeSource.Mood.absent, .locked])
    func `SK-31: absent or locked later locks the vault until it is back`(
        choice: KeySourceChoice, mood: FakeSource.Mood
    ) async throws {
        let sources = Self.kept.map { FakeSource($0) }
        try await house.opened(choice, sources).store(Secret("text"), in: slot)
        let before = house.content(house.keyFile)
        sources.first { $0.choice == choice }?.become(mood)
        for named in [choice, .auto] {
            let vault = house.vault(named, sources)
            let error = await failure { try await vault.open(passphrase: nil) }
            #expect(error == .locked(.keptBy(choice, mood == .absent ? FakeSource.absence : .keyringLocked)))
            #expect(vault.status.isLocked)
            #expect(vault.status.keySource == choice)
            #expect(house.content(house.keyFile) == before)
            #expect(sources.filter { !$0.keys.isEmpty }.map(\.choice) == [choice])
            sources.first { $0.choice == choice }?.become(.ready)
            try await vault.open(passphrase: nil)
            #expect(try await vault.load(slot)?.text == Secret("text"))
            sources.first { $0.choice == choice }?.become(mood)
        }
    }

    @Test(arguments: kept) func `with another key later locks the vault, and nothing is called damaged`(
        choice: KeySourceChoice
    ) async throws {
        let sources = Self.kept.map { FakeSource($0) }
        try await house.opened(choice, sources).store(Secret("text"), in: slot)
        let before = (house.content(house.keyFile), house.names(house.folder))
        sources.first { $0.choice == choice }?.become(.different)
        let error = await failure { _ = try await house.opened(.auto, sources) }
        if choice == .passphrase {
            #expect(error == .wrongPassphrase)
        } else {
            #expect(error == .locked(.otherKey(choice, path: house.keyFile, folder: house.folder)))
        }
        #expect(house.content(house.keyFile) == before.0)
        #expect(house.names(house.folder) == before.1)
    }

    @Test(arguments: kept) func `that forgot its key locks the vault`(choice: KeySourceChoice) async throws {
        let sources = Self.kept.map { FakeSource($0) }
        try await house.opened(choice, sources).store(Secret("text"), in: slot)
        for source in sources { source.forget() }
        #expect(await failure { _ = try await house.opened(.auto, sources) }?.isLocked == true)
        #expect(sources.allSatisfy { $0.keys.isEmpty })
    }

    @Test(arguments: kept, kept) func `is not changed by the configuration's word`(
        recorded: KeySourceChoice, named: KeySourceChoice
    ) async throws {
        guard recorded != named else { return }
        let sources = Self.kept.map { FakeSource($0) }
        try await house.opened(recorded, sources).store(Secret("text"), in: slot)
        let before = house.content(house.keyFile)
        let error = await failure { _ = try await house.opened(named, sources) }
        #expect(
            error
                == .locked(
                    .keySourceDiffers(recorded: recorded, configured: named),
                    obstacle: .keySourceDiffers(recorded: recorded, configured: named)))
        #expect(house.content(house.keyFile) == before)
        #expect(try await house.opened(recorded, sources).load(slot)?.text == Secret("text"))
    }

    @Test(arguments: [true, false]) func `is not decided anew beside sealed sessions`(isRetired: Bool) async throws {
        let first = try await house.opened(holding: "text")
        if isRetired { _ = try await first.retire(slot) }
        let files = house.names(house.folder)
        house.move(house.keyFile, house.path + "/backup")
        for choice in [KeySourceChoice.auto, .keyFile] {
            let vault = house.vault(choice)
            let error = await failure { try await vault.open(passphrase: nil) }
            #expect(error == .locked(.keyFileMissing(path: house.keyFile, count: 1, folder: house.folder)))
            #expect(!house.exists(house.keyFile))
            #expect(house.names(house.folder) == files)
        }
        house.move(house.path + "/backup", house.keyFile)
        let vault = try await house.opened()
        let texts = try await isRetired ? vault.retired().map(\.text) : [vault.load(slot)?.text]
        #expect(texts == [Secret("text")])
    }

    @Test func `is decided anew where all sealed sessions are gone`() async throws {
        let first = try await house.opened(holding: "text")
        house.write([0], house.sealed)
        _ = await failure { _ = try await first.load(slot) }
        house.remove(house.keyFile)
        // A damaged session is none.
        #expect(try await house.opened().status.isLocked == false)
    }

    @Test func `is not asked to open other sessions than its own`() async throws {
        let stranger = VaultHouse()
        try await stranger.opened().store(Secret("theirs"), in: slot)
        try await house.opened().store(Secret("mine"), in: slot)
        let mine = house.content(house.keyFile)
        house.write(stranger.content(stranger.keyFile), house.keyFile)
        let sources: [any KeySource] = [stranger.keySource]
        let error = await failure { _ = try await house.opened(.auto, sources) }
        #expect(error == .locked(.foreignSessions(path: house.keyFile, count: 1, folder: house.folder)))
        house.write(mine, house.keyFile)
        #expect(try await house.opened().load(slot)?.text == Secret("mine"))
    }

    @Test func `a flipped check value of the only session is forgiven`() async throws {
        try await house.opened().store(Secret("mine"), in: slot)
        var content = house.content(house.sealed)
        content[12] ^= 4
        house.write(content, house.sealed)
        #expect(try await house.opened().load(slot)?.text == Secret("mine"))
    }

    @Test func `a changed vault-key opens or locks, and is never replaced`() async throws {
        try await house.opened().store(Secret("text"), in: slot)
        let good = house.content(house.keyFile)
        for bit in 0..<(good.count * 8) {
            var changed = good
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            house.write(changed, house.keyFile)
            do {
                #expect(try await house.opened().load(slot)?.text == Secret("text"))
            } catch let error as VaultError {
                #expect(error.isLocked || (error.isNewer && bit / 8 == 9), "\(bit): \(error)")
            }
            #expect(house.content(house.keyFile) == changed)
        }
        print("figure: bits flipped in vault.key = \(good.count * 8)")
        for count in 0..<good.count {
            house.write(Array(good[..<count]), house.keyFile)
            #expect(await failure { _ = try await house.opened() }?.isLocked == true)
            #expect(house.content(house.keyFile).count == count)
        }
        house.write(good, house.keyFile)
        #expect(try await house.opened().load(slot)?.text == Secret("text"))
    }

    @Test func `a newer vault-key is left as it is`() async throws {
        _ = try await house.opened()
        var newer = house.content(house.keyFile)
        newer[9] = 2
        house.write(newer, house.keyFile)
        let error = await failure { _ = try await house.opened() }
        #expect(error?.isNewer == true)
        #expect(house.content(house.keyFile) == newer)
    }

    @Test func `memory writes nothing`() async throws {
        let vault = try await house.opened(.memory, Self.kept.map { FakeSource($0) })
        try await vault.store(Secret("text"), in: slot)
        #expect(try await vault.load(slot)?.text == Secret("text"))
        #expect(house.names(house.state) == [])
        #expect(vault.status.kind == .memory)
        #expect(await failure { try await vault.close() }?.isRefused == true)
        #expect(await failure { try await vault.rekey(to: .keyFile, passphrase: nil) }?.isRefused == true)
        #expect(try await vault.load(slot)?.text == Secret("text"))
    }

    @Test func `where no file can be made auto keeps sessions in memory and says so`() async throws {
        // Nobody makes a directory there, whatever his rights.
        let keys = KeyFileSource(directory: "/proc/self/keys", outside: house.state)
        let vault = try await house.opened(.auto, [keys])
        #expect(vault.status.kind == .memory)
        #expect(vault.status.keySource == .memory)
        guard case .memory(.key(.file(let failure))) = vault.status.protection
        else { throw Unexpected(vault.status.protection) }
        #expect(failure.action == .make && failure.path == "/proc/self/keys")
        try await vault.store(Secret("text"), in: slot)
        #expect(!house.exists(house.keyFile))
        // A later start decides again.
        #expect(try await house.opened().status.keySource == .keyFile)

        let nowhere = SealedFileVault(directory: "/proc", sources: [house.keySource])
        try await nowhere.open(passphrase: nil)
        #expect(nowhere.status.kind == .memory)
    }

    @Test func `where there is no source at all auto keeps sessions in memory`() async throws {
        let vault = try await house.opened(.auto, [])
        #expect(vault.status.kind == .memory)
        #expect(vault.status.protection == .memory(reason: .noKeyDirectory))
        #expect(house.names(house.state) == [])
        #expect(await failure { _ = try await house.opened(.keyFile, []) }?.isLocked == true)
        #expect(!house.exists(house.keyFile))
    }

    @Test func `where no file can be made a named source is not replaced by memory`() async throws {
        let keys = KeyFileSource(directory: "/proc/self/keys", outside: house.state)
        #expect(await failure { _ = try await house.opened(.keyFile, [keys]) }?.isUnwritable == true)
    }
}
