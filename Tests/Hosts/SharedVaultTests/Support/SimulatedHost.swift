import RingbackBase
import SessionVault
import SharedVault
import Synchronization

/// A host with its local vault, which outlives it.
final class SimulatedHost {
    enum Phase {
        case idle
        /// It may present these refresh tokens, one after another.
        case announced([Token])
        /// It was stopped right before it presents the first of these.
        case sending([Token])
        /// It has a response that is not stored.
        case received(Token)
        /// It has stored a response that the database may not have.
        case tending
    }

    let name: String
    let memory = MemoryVault()
    let wire = Wire()
    var life = Life()
    var vault: SharedVault?
    var phase = Phase.idle
    var session: String?
    var retryAt: Duration = .zero
    var stoppedUntil: Duration = .zero
    /// It was stopped since it took the row.
    var wasStopped = false

    init(_ name: String) { self.name = name }

    var isBusy: Bool { if case .idle = phase { false } else { true } }

    func reload() async {
        guard let vault, let entry = try? await vault.load(Hosts.slot) else {
            if !life.isDead, let vault, (try? await vault.load(Hosts.slot)) == .some(nil) { session = nil }
            return
        }
        session = entry.text.revealed()
    }

    func attempt(_ body: () async throws(VaultError) -> Void) async -> Bool {
        do throws(VaultError) {
            try await body()
            return true
        } catch {
            return false
        }
    }
}

/// A process that is killed after so many calls.
final class Life: Sendable {
    private let state = Mutex(Int?.none)
    private let dead = Mutex(false)

    var isDead: Bool { dead.withLock { $0 } }
    var killAfter: Int? {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }

    func passes() -> Bool {
        if isDead { return false }
        let isKilled = state.withLock { left in
            guard let count = left else { return false }
            left = count - 1
            return count == 0
        }
        if isKilled { dead.withLock { $0 = true } }
        return !isKilled
    }
}

/// The local vault of a host that may be killed at any call.
final class Spool: Vault {
    private let memory: MemoryVault
    private let life: Life

    init(_ memory: MemoryVault, _ life: Life) {
        self.memory = memory
        self.life = life
    }

    private func enter() throws(VaultError) { if !life.passes() { throw .unwritable(.locked) } }
    func open(passphrase: Secret?) async throws(VaultError) {}
    func close() async throws(VaultError) {}
    func rekey(to choice: KeySourceChoice, passphrase: Secret?) async throws(VaultError) {}
    func load(_ slot: VaultSlot) async throws(VaultError) -> VaultEntry? {
        try enter()
        return await memory.load(slot)
    }
    func announce(_ slot: VaultSlot) async throws(VaultError) {
        try enter()
        await memory.announce(slot)
    }
    func store(_ text: Secret, in slot: VaultSlot) async throws(VaultError) {
        try enter()
        await memory.store(text, in: slot)
    }
    func settle(_ slot: VaultSlot) async throws(VaultError) {
        try enter()
        await memory.settle(slot)
    }
    func remove(_ slot: VaultSlot) async throws(VaultError) {
        try enter()
        await memory.remove(slot)
    }
    func retire(_ slot: VaultSlot) async throws(VaultError) -> RetiredEntry? {
        try enter()
        return await memory.retire(slot)
    }
    func replace(_ text: Secret, in slot: VaultSlot) async throws(VaultError) -> RetiredEntry? {
        try enter()
        return await memory.replace(text, in: slot)
    }
    func keep(_ text: Secret, retiredFrom slot: VaultSlot) async throws(VaultError) -> RetiredEntry {
        try enter()
        return await memory.keep(text, retiredFrom: slot)
    }
    func retired() async throws(VaultError) -> [RetiredEntry] { await memory.retired() }
    func slots(of kind: VaultSlot.Kind, besides known: Set<VaultSlot>) async throws(VaultError) -> [VaultSlot] {
        await memory.slots(of: kind, besides: known)
    }
    func discard(_ id: String) async throws(VaultError) { await memory.discard(id) }
    var status: VaultStatus { memory.status }
}
