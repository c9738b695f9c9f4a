import Glibc
import RingbackBase
import Testing

@testable import SessionVault

/// The sources that need nobody else: real files, a real credential, a real passphrase.
@Suite struct `A vault and its real source` {
    enum Trouble: CaseIterable, Sendable {
        case keyFileGone, keyFileReplaced, keyFileOpen, credentialGone, credentialReplaced, credentialShort
    }

    private let house = VaultHouse()
    private var credential: String { house.path + "/ringback-vault-key" }
    private var sources: [any KeySource] {
        [house.keySource, SystemdCredentialSource(directory: house.path), PassphraseSource(cost: cheapScrypt)]
    }

    private func keyFile() throws -> String { try "\(house.keys)/" + #require(house.names(house.keys).first) }

    private func cause(_ trouble: Trouble) throws {
        switch trouble {
        case .keyFileGone: house.move(try keyFile(), house.path + "/away")
        case .keyFileReplaced:
            house.move(try keyFile(), house.path + "/away")
            house.write(Array("\(String(repeating: "A", count: 43))\n".utf8), try replaced())
        case .keyFileOpen: unsafe chmod(try keyFile(), 0o644)
        case .credentialGone: house.move(credential, house.path + "/away")
        case .credentialReplaced: house.write([UInt8](repeating: 8, count: 40), credential)
        case .credentialShort: house.write([UInt8](repeating: 7, count: 31), credential)
        }
    }

    private func reason(_ trouble: Trouble, file: String) -> VaultReason {
        switch trouble {
        case .keyFileGone: .keptBy(.keyFile, .missing(path: file))
        case .keyFileReplaced: .otherKey(.keyFile, path: house.keyFile, folder: house.folder)
        case .keyFileOpen: .keptBy(.keyFile, .file(FileFailure(action: .use, path: file, code: EPERM)))
        case .credentialGone: .keptBy(.systemdCredential, .noCredential)
        case .credentialReplaced: .keptBy(.systemdCredential, .otherCredential)
        case .credentialShort: .keptBy(.systemdCredential, .credentialTooShort)
        }
    }

    private func replaced() throws -> String {
        let id = try VaultKeyFile(parsing: house.content(house.keyFile)).keyID
        return "\(house.keys)/\(id).key"
    }

    private func end(_ trouble: Trouble) throws {
        switch trouble {
        case .keyFileGone, .keyFileReplaced: house.move(house.path + "/away", try replaced())
        case .keyFileOpen: unsafe chmod(try keyFile(), 0o600)
        case .credentialGone: house.move(house.path + "/away", credential)
        case .credentialReplaced, .credentialShort: house.write([UInt8](repeating: 7, count: 40), credential)
        }
    }

    @Test(arguments: Trouble.allCases) func `is locked in trouble and open after it, with nothing changed`(
        trouble: Trouble
    ) async throws {
        let isFile = [.keyFileGone, .keyFileReplaced, .keyFileOpen].contains(trouble)
        if !isFile { house.write([UInt8](repeating: 7, count: 40), credential) }
        let first = try await house.opened(.auto, sources)
        #expect(first.status.keySource == (isFile ? .keyFile : .systemdCredential))
        try await first.store(Secret("text"), in: slot)
        let before = (house.content(house.keyFile), house.names(house.folder))
        try cause(trouble)
        let vault = house.vault(.auto, sources)
        let error = await failure { try await vault.open(passphrase: nil) }
        guard case .locked(let reason, nil)? = error else { throw Unexpected(error) }
        let expected = self.reason(trouble, file: try replaced())
        #expect(reason == expected)
        #expect(vault.status.reason == error?.reason)
        #expect(await failure { _ = try await vault.load(slot) }?.reason == error?.reason)
        #expect(house.content(house.keyFile) == before.0)
        #expect(house.names(house.folder) == before.1)
        try end(trouble)
        try await vault.open(passphrase: nil)
        #expect(try await vault.load(slot)?.text == Secret("text"))
        #expect(vault.status.reason == nil)
    }

    @Test(arguments: [KeySourceChoice.auto, .keyFile])
    func `that would be unsafe is not used, nor passed over`(choice: KeySourceChoice) async throws {
        unsafe mkdir(house.path + "/open", 0o700)
        unsafe chmod(house.path + "/open", 0o755)
        let (inside, open) = (house.state + "/keys", house.path + "/open")
        for (place, expected) in [
            (inside, VaultError.locked(.notTaken(.keyFile, .insideState(path: inside)))),
            (open, .locked(.notTaken(.keyFile, .openToOthers(path: open)), obstacle: .openToOthers(path: open))),
        ] {
            let unsafeSource: [any KeySource] = [KeyFileSource(directory: place, outside: house.state)]
            let error = await failure { _ = try await house.opened(choice, unsafeSource) }
            #expect(error == expected)
            #expect(!house.exists(house.keyFile))
        }
    }
}
