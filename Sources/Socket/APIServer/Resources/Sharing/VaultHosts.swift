public import Secrets
public import SessionVault
public import SharedVault

/// What hosts that share the vault do for each other. The daemon's main provides it, if the vault is shared.
public protocol VaultHosts: Sendable {
    /// Accepts an invitation, once; the same call again changes nothing. Without a name the host keeps the one of an
    /// earlier call, or gets the machine's.
    func join(as name: String?, invitation: Secret?) async throws(SharingFailure) -> JoinedHost
    func invite(lasting: Duration) async throws(SharingFailure) -> HostInvitation
    /// Gives the hosts' key to the host with this code. Returns its name.
    func share(with code: HostCode) async throws(SharingFailure) -> String
    func list() async throws(SharingFailure) -> [Host]
    /// Removes another host, by name or role. Returns what it was called.
    func remove(host: String) async throws(SharingFailure) -> String
    /// True if a removed host may have read the session in the slot, which was not refreshed since.
    func isStale(_ slot: VaultSlot) async -> Bool
    /// What is stale is refreshed from now on, again and again until nothing is left.
    func refreshStale()
}

/// An invitation, and what the invited host's configuration is to have.
public struct HostInvitation: Sendable, Equatable {
    public let role: String
    public let password: Secret
    /// The value of `store` in `[vault]`: it has no password.
    public let store: String

    public init(role: String, password: Secret, store: String) {
        self.role = role
        self.password = password
        self.store = store
    }
}
