internal import SessionVault

/// What a sign-out has done.
public struct SignedOut: Sendable {
    /// The account afterwards.
    public let account: AccountView
    /// False if there was nothing to sign out of.
    public let hadSession: Bool
    /// The provider has not been told of this sign-out or of an earlier one. It is told later, as long as the account
    /// is configured.
    public let isRevocationPending: Bool
}

extension VaultSlot {
    /// Where the users who have signed in under the same binding are remembered.
    var ofUsers: VaultSlot { VaultSlot(account: account, binding: binding, kind: .people) }
}
