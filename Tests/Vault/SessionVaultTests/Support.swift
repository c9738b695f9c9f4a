import Cryptography
import Glibc
import RingbackBase
import Synchronization

@testable import SessionVault

/// A state directory, and a place for keys beside it, that go with their test.
final class VaultHouse: Sendable {
    let path: String

    /// In memory, where there is such a place: what fsync costs is not what these tests ask.
    init() {
        let base = unsafe access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
        path = "\(base)/ringback-vault-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        unsafe mkdir(path, 0o700)
        unsafe mkdir(state, 0o700)
    }

    deinit { remove(path) }

    var state: String { path + "/state" }
    var folder: String { state + "/vault" }
    var keys: String { path + "/data/keys" }
    var keyFile: String { state + "/vault.key" }

    func names(_ directory: String) -> [String] {
        Directory.names(in: directory).sorted()
    }

    func remove(_ path: String) {
        for name in names(path) { remove(path + "/" + name) }
        if unsafe rmdir(path) != 0 { unsafe unlink(path) }
    }

    func write(_ bytes: [UInt8], _ path: String, mode: mode_t = 0o600) {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, mode)
        _ = FileBytes.write(bytes, to: file)
        fchmod(file, mode)
        close(file)
    }

    func content(_ path: String) -> [UInt8] {
        let file = unsafe open(path, O_RDONLY)
        guard file >= 0 else { return [] }
        defer { close(file) }
        return FileBytes.read(file, atMost: 4 << 20)
    }

    func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

    func mode(_ path: String) -> UInt32 {
        var status = stat()
        return unsafe lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    /// A directory that is not empty stands where a file is to be made.
    func block(_ path: String) {
        unsafe mkdir(path, 0o700)
        unsafe mkdir(path + "/in-the-way", 0o700)
    }

    func move(_ from: String, _ to: String) { unsafe rename(from, to) }

    /// The one sealed session.
    var sealed: String { folder + "/" + (names(folder).first { SlotFiles.isLive($0) } ?? "none") }
    var keySource: KeyFileSource { KeyFileSource(directory: keys, outside: state) }

    func vault(_ choice: KeySourceChoice = .auto, _ sources: [any KeySource]? = nil) -> SealedFileVault {
        SealedFileVault(directory: state, sources: sources ?? [keySource], choice: choice)
    }

    func opened(_ choice: KeySourceChoice = .auto, _ sources: [any KeySource]? = nil) async throws -> SealedFileVault {
        let vault = vault(choice, sources)
        try await vault.open(passphrase: nil)
        return vault
    }

    /// The same, with a text in ``slot``.
    func opened(holding text: String) async throws -> SealedFileVault {
        let vault = try await opened()
        try await vault.store(Secret(text), in: slot)
        return vault
    }
}

let slot = VaultSlot(account: "work", binding: "https://id.example.org client")
let otherSlot = VaultSlot(account: "mail", binding: "https://mail.example.org client")

/// For tests, which cannot wait.
let cheapScrypt = Scrypt.Cost(validN: 16, r: 1, p: 1) ?? .standard

/// A source that does as it is told, and keeps its keys as a keyring would.
final class FakeSource: KeySource {
    enum Mood: Sendable {
        case ready, absent, locked
        /// Gives keys, but not the ones it was given.
        case different
    }

    struct State {
        var keys: [String: Secret] = [:]
        var mood = Mood.ready
        var canHold = true
    }

    let choice: KeySourceChoice
    let state = Mutex(State())

    init(_ choice: KeySourceChoice, _ mood: Mood = .ready) {
        self.choice = choice
        state.withLock { $0.mood = mood }
    }

    /// No real source's, whatever the choice.
    var protection: VaultProtection { FakeSource.protection }
    static let protection = VaultProtection.keyFile(directory: "/fake")
    var keys: [String] { state.withLock { Array($0.keys.keys) } }
    func forget() { state.withLock { $0.keys = [:] } }
    func become(_ mood: Mood) { state.withLock { $0.mood = mood } }
    func canHoldNewKey() async -> Bool { state.withLock { $0.canHold && $0.mood == .ready } }

    func create(
        _ id: String, passphrase: Secret?
    ) async throws(KeySourceError) -> (key: Secret, parameters: JSONObject) {
        try refuse()
        let key = Secret(bytes: RandomToken.bytes(32))
        state.withLock { $0.keys[id] = key }
        return (key, JSONObject([JSONObject.Member("made", "by a fake")]))
    }

    func fetch(_ id: String, parameters: JSONObject, passphrase: Secret?) async throws(KeySourceError) -> Secret {
        try refuse()
        let (mood, key) = state.withLock { ($0.mood, $0.keys[id]) }
        if mood == .different { return Secret(bytes: RandomToken.bytes(32)) }
        guard let key else { throw .absent(.notInKeyring) }
        return key
    }

    func remove(_ id: String, parameters: JSONObject) async -> Bool {
        state.withLock { state in
            guard state.mood == .ready else { return false }
            state.keys[id] = nil
            return true
        }
    }

    static let absence = KeyReason.noKeyring(cause: "it is a fake")

    private func refuse() throws(KeySourceError) {
        switch state.withLock({ $0.mood }) {
        case .absent: throw .absent(FakeSource.absence)
        case .locked: throw .locked(.keyringLocked)
        case .ready, .different: break
        }
    }
}

func failure(_ body: () async throws -> Void) async -> VaultError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? VaultError
    }
}

extension VaultError {
    var reason: VaultReason? {
        switch self {
        case .locked(let reason, _), .refused(let reason, _): reason
        case .unwritable(let reason), .damaged(let reason), .newer(let reason), .unreachable(let reason): reason
        case .wrongPassphrase: nil
        }
    }
    var isLocked: Bool { if case .locked = self { true } else { false } }
    var isDamaged: Bool { if case .damaged = self { true } else { false } }
    var isUnwritable: Bool { if case .unwritable = self { true } else { false } }
    var isNewer: Bool { if case .newer = self { true } else { false } }
    var isRefused: Bool { if case .refused = self { true } else { false } }
}

struct Unexpected: Error {
    let what: String
    init<Value>(_ what: Value) { self.what = "\(what)" }
}
