import Secrets
import SessionVault

@testable import BrokerCore

/// Keeps texts and remembers what was asked of it; fails or holds as told.
actor RecordingVault: Vault {
    /// What happened, in words: `store R`, `store R > S` (with a successor), `remove`.
    private(set) var log: [String] = []
    private var texts: [VaultSlot: Secret] = [:]
    private var failure: VaultError?
    private var gate: Promise<Void>?

    func fail(with error: VaultError?) { failure = error }
    func hold() { gate = Promise() }
    func release() {
        gate?.fulfil(())
        gate = nil
    }

    func load(_ slot: VaultSlot) async throws(VaultError) -> Secret? {
        _ = await gate?.wait()
        if let failure { throw failure }
        return texts[slot]
    }

    func store(_ text: Secret, in slot: VaultSlot) async throws(VaultError) {
        let session = SessionRecord.decode(text)
        let tokens = [session?.refreshToken, session?.successor].compactMap { $0?.revealed() }
        log.append("store \(tokens.joined(separator: " > "))")
        _ = await gate?.wait()
        if let failure { throw failure }
        texts[slot] = text
    }

    func remove(_ slot: VaultSlot) async throws(VaultError) {
        log.append("remove")
        _ = await gate?.wait()
        if let failure { throw failure }
        texts[slot] = nil
    }

    func put(_ text: Secret, in slot: VaultSlot) { texts[slot] = text }
    var sessions: [Session] { texts.values.compactMap { SessionRecord.decode($0) } }

    nonisolated var status: VaultStatus {
        VaultStatus(kind: "recording", isLocked: false, keySource: "none", protects: "nothing")
    }
}
