public import Secrets

/// Keeps sessions for the life of the process, and writes nothing anywhere.
public actor MemoryVault: Vault {
    private var texts: [VaultSlot: Secret] = [:]

    public init() {}

    public func load(_ slot: VaultSlot) -> Secret? { texts[slot] }
    public func store(_ text: Secret, in slot: VaultSlot) { texts[slot] = text }
    public func remove(_ slot: VaultSlot) { texts[slot] = nil }

    public nonisolated var status: VaultStatus {
        VaultStatus(
            kind: "memory", isLocked: false, keySource: "memory",
            protects: "nothing is written to disk; sessions end with the daemon")
    }
}
