public import Secrets

/// Where sessions rest. A vault keeps one secret text per slot and knows nothing of what it means.
public protocol Vault: Sendable {
    /// What the slot holds, or nil.
    func load(_ slot: VaultSlot) async throws(VaultError) -> Secret?
    /// Replaces what the slot holds. When this returns, the new text survives a crash if the vault is durable.
    func store(_ text: Secret, in slot: VaultSlot) async throws(VaultError)
    /// Empties the slot. An empty slot is not an error.
    func remove(_ slot: VaultSlot) async throws(VaultError)
    /// What `GET /v1/status` tells about this vault.
    var status: VaultStatus { get }
}

/// An account's place in the vault, for one binding: when the account's provider or client changes, its session stays
/// in its own slot, out of reach, and is there again when the configuration is.
public struct VaultSlot: Hashable, Sendable {
    public let account: String
    /// What the session is bound to, as bytes that differ whenever it does.
    public let binding: String

    public init(account: String, binding: String) {
        self.account = account
        self.binding = binding
    }
}

/// Why a vault did not do it.
public enum VaultError: Error, Sendable, Equatable {
    case locked(reason: String)
    case unwritable(reason: String)
    case damaged(reason: String)
}

/// What a vault protects against, in its own words.
public struct VaultStatus: Sendable, Equatable {
    public var kind: String
    public var isLocked: Bool
    public var keySource: String
    public var protects: String

    public init(kind: String, isLocked: Bool, keySource: String, protects: String) {
        self.kind = kind
        self.isLocked = isLocked
        self.keySource = keySource
        self.protects = protects
    }
}
