import Glibc
import RingbackBase
import Synchronization
import Testing

@testable import SessionVault

private func refusal(_ body: () async throws -> Void) async -> KeySourceError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? KeySourceError
    }
}

extension KeySourceError {
    var isAbsent: Bool { if case .absent = self { true } else { false } }
    var isLocked: Bool { if case .locked = self { true } else { false } }
    var isFailed: Bool { if case .failed = self { true } else { false } }
}

private let keyID = String(repeating: "0a", count: 16)
private let none = JSONObject()

@Suite struct `A key in a file` {
    private let house = VaultHouse()
    private var source: KeyFileSource { house.keySource }
    private var file: String { "\(house.keys)/\(keyID).key" }

    @Test func `is made for its user alone, and given back`() async throws {
        let made = try await source.create(keyID, passphrase: nil)
        #expect(made.key.count == 32)
        #expect(made.parameters == none)
        #expect(try await source.fetch(keyID, parameters: none, passphrase: nil) == made.key)
        #expect(house.mode(file) == 0o600)
        #expect(house.mode(house.keys) == 0o700)
        #expect(house.mode(house.path + "/data") == 0o700)
        #expect(house.names(house.keys) == ["\(keyID).key"])
        #expect(await source.remove(keyID, parameters: none))
        #expect(house.names(house.keys).isEmpty)
        #expect(await source.remove(keyID, parameters: none))
        #expect(
            await refusal { _ = try await source.fetch(keyID, parameters: none, passphrase: nil) }?.isAbsent == true)
    }

    @Test func `is never written over`() async throws {
        let made = try await source.create(keyID, passphrase: nil)
        #expect(await refusal { _ = try await source.create(keyID, passphrase: nil) }?.isFailed == true)
        #expect(try await source.fetch(keyID, parameters: none, passphrase: nil) == made.key)
    }

    @Test(arguments: ["", "../vault", "0A", String(repeating: "0", count: 31), String(repeating: "g", count: 32)])
    func `has an identifier that is no path`(id: String) async throws {
        #expect(await refusal { _ = try await source.create(id, passphrase: nil) }?.isFailed == true)
        #expect(await refusal { _ = try await source.fetch(id, parameters: none, passphrase: nil) }?.isFailed == true)
        #expect(!house.exists(house.keys))
    }

    @Test(arguments: [0o640, 0o604, 0o620, 0o660, 0o644] as [mode_t])
    func `that others may touch is refused`(mode: mode_t) async throws {
        _ = try await source.create(keyID, passphrase: nil)
        unsafe chmod(file, mode)
        let error = await refusal { _ = try await source.fetch(keyID, parameters: none, passphrase: nil) }
        #expect(error?.isFailed == true)
    }

    @Test func `in a directory that others may enter is refused`() async throws {
        _ = try await source.create(keyID, passphrase: nil)
        unsafe chmod(house.keys, 0o755)
        #expect(
            await refusal { _ = try await source.fetch(keyID, parameters: none, passphrase: nil) }?.isLocked == true)
        let other = String(repeating: "0b", count: 16)
        #expect(await refusal { _ = try await source.create(other, passphrase: nil) }?.isLocked == true)
    }

    @Test func `behind a symbolic link is refused`() async throws {
        _ = try await source.create(keyID, passphrase: nil)
        house.move(file, file + ".away")
        unsafe symlink(file + ".away", file)
        #expect(
            await refusal { _ = try await source.fetch(keyID, parameters: none, passphrase: nil) }?.isFailed == true)
        house.remove(file)
        house.move(file + ".away", file)
        house.move(house.keys, house.keys + ".away")
        unsafe symlink(house.keys + ".away", house.keys)
        #expect(
            await refusal { _ = try await source.fetch(keyID, parameters: none, passphrase: nil) }?.isLocked == true)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
    func `of somebody else's is refused`() async throws {
        _ = try await source.create(keyID, passphrase: nil)
        unsafe chown(file, 65_534, 65_534)
        #expect(
            await refusal { _ = try await source.fetch(keyID, parameters: none, passphrase: nil) }?.isFailed == true)
    }

    @Test(arguments: ["", "x", String(repeating: "A", count: 43), String(repeating: "*", count: 43) + "\n"])
    func `that holds none is said to be so`(text: String) async throws {
        _ = try await source.create(keyID, passphrase: nil)
        house.write(Array(text.utf8), file)
        #expect(
            await refusal { _ = try await source.fetch(keyID, parameters: none, passphrase: nil) }?.isFailed == true)
    }

    @Test func `is not kept inside the state directory, by whatever name`() async throws {
        unsafe symlink(house.state, house.path + "/alias")
        unsafe mkdir(house.state + "/deep", 0o700)
        for place in [house.state, house.state + "/keys/more", house.path + "/alias/deep/keys"] {
            let inside = KeyFileSource(directory: place, outside: house.state)
            let error = await refusal { _ = try await inside.create(keyID, passphrase: nil) }
            #expect(error?.isLocked == true)
            #expect(await !inside.canHoldNewKey())
        }
        #expect(house.names(house.state) == ["deep"])
        #expect(await source.canHoldNewKey())
        // Beside it, under a name that begins the same, is outside.
        let beside = KeyFileSource(directory: house.state + "-keys", outside: house.state)
        _ = try await beside.create(keyID, passphrase: nil)
    }
}

@Suite struct `A key from a passphrase` {
    private let source = PassphraseSource(cost: cheapScrypt)

    @Test func `is the same for the same passphrase alone`() async throws {
        let made = try await source.create(keyID, passphrase: Secret("correct horse"))
        #expect(made.key.count == 32)
        let again = try await source.fetch(keyID, parameters: made.parameters, passphrase: Secret("correct horse"))
        #expect(again == made.key)
        let wrong = try await source.fetch(keyID, parameters: made.parameters, passphrase: Secret("correct Horse"))
        #expect(wrong != made.key)
        let other = try await source.create(keyID, passphrase: Secret("correct horse"))
        #expect(other.key != made.key)
    }

    @Test func `needs one that is not empty`() async throws {
        let made = try await source.create(keyID, passphrase: Secret("x"))
        for passphrase in [nil, Secret("")] {
            #expect(await refusal { _ = try await source.create(keyID, passphrase: passphrase) } == .needsPassphrase)
            let error = await refusal {
                _ = try await source.fetch(keyID, parameters: made.parameters, passphrase: passphrase)
            }
            #expect(error == .needsPassphrase)
        }
        #expect(await !source.canHoldNewKey())
    }

    @Test(
        arguments: [
            ("n", .integer(1 << 30)), ("n", .integer(-1)), ("n", .integer(3)), ("n", "16"), ("r", .integer(1 << 40)),
            ("p", .integer(1 << 40)), ("p", .integer(0)), ("kdf", "argon2id"), ("salt", ""), ("salt", "A*"),
            ("salt", .null),
        ] as [(String, JSON)])
    func `is not derived at any cost`(name: String, value: JSON) async throws {
        var parameters = try await source.create(keyID, passphrase: Secret("x")).parameters
        parameters[name] = value
        let error = await refusal {
            _ = try await source.fetch(keyID, parameters: parameters, passphrase: Secret("x"))
        }
        #expect(error?.isFailed == true)
    }

    @Test func `costs 128 MiB where it is real`() async throws {
        let made = try await PassphraseSource().create(keyID, passphrase: Secret("x"))
        #expect(made.parameters["n"] == .integer(1 << 17))
        #expect(made.parameters["r"] == .integer(8))
        #expect(made.parameters["p"] == .integer(1))
        let again = try await source.fetch(keyID, parameters: made.parameters, passphrase: Secret("x"))
        #expect(again == made.key)
    }
}

@Suite struct `A key from a systemd credential` {
    private let house = VaultHouse()
    private var source: SystemdCredentialSource { SystemdCredentialSource(directory: house.path) }

    private func give(_ bytes: [UInt8]) { house.write(bytes, house.path + "/ringback-vault-key") }

    @Test func `is the same for the same credential and identifier`() async throws {
        give([UInt8](repeating: 7, count: 32))
        #expect(await source.canHoldNewKey())
        let made = try await source.create(keyID, passphrase: nil)
        #expect(made.key.count == 32)
        #expect(made.key != Secret(bytes: [UInt8](repeating: 7, count: 32)))
        #expect(try await source.fetch(keyID, parameters: made.parameters, passphrase: nil) == made.key)
        let other = try await source.create(String(repeating: "0b", count: 16), passphrase: nil)
        #expect(other.key != made.key)
        #expect(other.parameters == made.parameters)
    }

    @Test func `of another credential is told apart`() async throws {
        give([UInt8](repeating: 7, count: 32))
        let made = try await source.create(keyID, passphrase: nil)
        give([UInt8](repeating: 8, count: 32))
        let error = await refusal { _ = try await source.fetch(keyID, parameters: made.parameters, passphrase: nil) }
        #expect(error?.isLocked == true)
    }

    @Test func `is absent where there is no credential`() async throws {
        for directory in [nil, "", house.path, house.path + "/none"] {
            let source = SystemdCredentialSource(directory: directory)
            #expect(await !source.canHoldNewKey())
            #expect(await refusal { _ = try await source.create(keyID, passphrase: nil) }?.isAbsent == true)
            let error = await refusal { _ = try await source.fetch(keyID, parameters: none, passphrase: nil) }
            #expect(error?.isAbsent == true)
        }
    }

    @Test(arguments: [0, 31, 1 << 20 | 1]) func `needs a credential of a fitting size`(count: Int) async throws {
        give([UInt8](repeating: 7, count: count))
        #expect(await !source.canHoldNewKey())
        #expect(await refusal { _ = try await source.create(keyID, passphrase: nil) }?.isFailed == true)
    }
}

@Suite struct `A key in the keyring` {
    private final class Keyring: Sendable {
        let items = Mutex<[String: Secret]>([:])
        let isThere = Mutex(true)
        /// What it makes of an item.
        let mangle: @Sendable (Secret) -> Secret

        init(_ mangle: @escaping @Sendable (Secret) -> Secret = { $0 }) { self.mangle = mangle }

        var source: SecretServiceSource {
            SecretServiceSource(
                available: { self.isThere.withLock { $0 } },
                create: { id, secret throws(KeySourceError) in
                    guard self.isThere.withLock({ $0 }) else { throw .absent(.noKeyring(cause: "none")) }
                    self.items.withLock { $0[id] = self.mangle(secret) }
                },
                read: { id throws(KeySourceError) in
                    guard let item = self.items.withLock({ $0[id] }) else { throw .absent(.notInKeyring) }
                    return item
                },
                delete: { id in
                    self.items.withLock { $0[id] = nil }
                    return true
                })
        }
    }

    @Test func `is made, given back and let go`() async throws {
        let keyring = Keyring()
        #expect(await keyring.source.canHoldNewKey())
        let made = try await keyring.source.create(keyID, passphrase: nil)
        #expect(made.key.count == 32)
        #expect(keyring.items.withLock { $0[keyID]?.count } == 43)
        #expect(try await keyring.source.fetch(keyID, parameters: none, passphrase: nil) == made.key)
        #expect(await keyring.source.remove(keyID, parameters: none))
        #expect(keyring.items.withLock { $0.isEmpty })
        let error = await refusal { _ = try await keyring.source.fetch(keyID, parameters: none, passphrase: nil) }
        #expect(error == .absent(.notInKeyring))
    }

    @Test func `is not trusted to a keyring that changes it`() async throws {
        for mangled in ["", "text", String(repeating: "A", count: 43)] {
            let keyring = Keyring { _ in Secret(mangled) }
            #expect(await refusal { _ = try await keyring.source.create(keyID, passphrase: nil) }?.isFailed == true)
            #expect(keyring.items.withLock { $0.isEmpty })
        }
    }

    @Test func `is refused where there is no keyring`() async throws {
        let keyring = Keyring()
        keyring.isThere.withLock { $0 = false }
        #expect(await !keyring.source.canHoldNewKey())
        let error = await refusal { _ = try await keyring.source.create(keyID, passphrase: nil) }
        #expect(error == .absent(.noKeyring(cause: "none")))
    }

    @Test func `serves a vault over restarts`() async throws {
        let keyring = Keyring()
        let house = VaultHouse()
        let sources: [any KeySource] = [keyring.source, house.keySource]
        let vault = try await house.opened(.auto, sources)
        #expect(vault.status.keySource == .secretService)
        try await vault.store(Secret("text"), in: slot)
        #expect(try await house.opened(.auto, sources).load(slot)?.text == Secret("text"))
    }
}
