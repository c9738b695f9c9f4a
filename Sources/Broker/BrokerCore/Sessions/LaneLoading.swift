internal import SessionVault

extension LaneState.Loaded {
    /// Reads the vault's entry of an account.
    init(_ found: Result<VaultEntry?, VaultError>, of name: AccountName, by clock: BrokerClock) {
        switch found {
        case .success(let entry?): self.init(entry, of: name, by: clock)
        case .success(nil): self = .absent(.signedOut)
        // The vault has set the damaged record aside. It is known that there is no session.
        case .failure(.damaged(let reason)):
            self = .absent(.unreadable(BrokerError(VaultError.damaged(reason))))
        case .failure(.newer(let reason)): self = .untouchable(BrokerError(VaultError.newer(reason)))
        case .failure(let error): self = .failed(BrokerError(error))
        }
    }

    private init(_ entry: VaultEntry, of name: AccountName, by clock: BrokerClock) {
        do throws(SessionRecord.Failure) {
            let session = try SessionRecord.decode(entry.text, by: clock, shift: entry.shift)
            let hasExpired = session.tokens[.own]?.remaining(at: clock.bootInstant) == .zero
            self = .session(HeldSession(session, isUrgent: entry.isInterrupted || hasExpired))
        } catch {
            switch error {
            case .ended(let code, let message): self = .absent(.ended(code: code, message: message))
            case .damaged:
                self = .absent(.unreadable(.vaultFailed(.session(.unreadable(name)))))
            case .newer:
                self = .untouchable(.vaultFailed(.session(.newer(name))))
            case .shared:
                self = .untouchable(.vaultFailed(.session(.shared(name))))
            }
        }
    }
}
