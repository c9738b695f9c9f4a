import RingbackBase
import SessionVault
import Synchronization

/// A vault in memory that a passphrase opens.
final class LockingVault: Vault {
    private struct State {
        var passphrase = Secret("canary-passphrase")
        var isLocked = false
        var source = KeySourceChoice.passphrase
        var isNew = false
        var openings: [Bool] = []
    }
    private let state = Mutex(State())
    private let memory = MemoryVault()

    private var isLocked: Bool { state.withLock { $0.isLocked } }

    func open(passphrase: Secret?) async throws(VaultError) {
        let isInteractive = KeyRequest.isInteractive
        let error: VaultError? = state.withLock { state in
            state.openings.append(isInteractive)
            guard state.isLocked else { return nil }
            guard let passphrase else { return .locked(.needsPassphrase) }
            guard passphrase == state.passphrase else { return .wrongPassphrase }
            state.isLocked = false
            return nil
        }
        if let error { throw error }
    }

    /// For each attempt to open it, whether a person asked for it.
    var openings: [Bool] { state.withLock { $0.openings } }

    /// As if nobody had chosen a passphrase yet.
    func becomeNew() { state.withLock { $0.isNew = true } }

    func close() async throws(VaultError) { state.withLock { $0.isLocked = true } }

    func rekey(to choice: KeySourceChoice, passphrase: Secret?) async throws(VaultError) {
        guard choice != .memory else { throw .refused(.notIntoMemory) }
        _ = try opened()
        state.withLock { state in
            state.source = choice
            if let passphrase { state.passphrase = passphrase }
        }
    }

    /// The records, while the vault is not locked.
    private func opened() throws(VaultError) -> MemoryVault {
        if isLocked { throw .locked(.locked) }
        return memory
    }

    func load(_ slot: VaultSlot) async throws(VaultError) -> VaultEntry? { try await opened().load(slot) }
    func announce(_ slot: VaultSlot) async throws(VaultError) { try await opened().announce(slot) }
    func store(_ text: Secret, in slot: VaultSlot) async throws(VaultError) { try await opened().store(text, in: slot) }
    func settle(_ slot: VaultSlot) async throws(VaultError) { try await opened().settle(slot) }
    func remove(_ slot: VaultSlot) async throws(VaultError) { try await opened().remove(slot) }
    func retire(_ slot: VaultSlot) async throws(VaultError) -> RetiredEntry? { try await opened().retire(slot) }
    func replace(_ text: Secret, in slot: VaultSlot) async throws(VaultError) -> RetiredEntry? {
        try await opened().replace(text, in: slot)
    }
    func keep(_ text: Secret, retiredFrom slot: VaultSlot) async throws(VaultError) -> RetiredEntry {
        try await opened().keep(text, retiredFrom: slot)
    }
    func retired() async throws(VaultError) -> [RetiredEntry] { try await opened().retired() }
    func slots(of kind: VaultSlot.Kind, besides known: Set<VaultSlot>) async throws(VaultError) -> [VaultSlot] {
        try await opened().slots(of: kind, besides: known)
    }
    func discard(_ id: String) async throws(VaultError) { try await opened().discard(id) }

    var status: VaultStatus {
        state.withLock { state in
            var status = VaultStatus(
                kind: .sealedFile, isLocked: state.isLocked, reason: state.isLocked ? .locked : nil,
                keySource: state.source, protection: .passphrase)
            // As if that were in the configuration.
            status.otherKeySource = state.source == .passphrase ? nil : .passphrase
            status.needsNewPassphrase = state.isLocked && state.isNew
            return status
        }
    }
}
