internal import SessionVault

/// The sessions in the vault, each as the record in its account's slot. This is a value that holds nothing: which session
/// is written when is decided in the lanes of ``SessionManager``.
struct SessionStore: Sendable {
    let vault: any Vault
    let clock: BrokerClock

    /// What the vault holds of an account.
    func load(_ slot: VaultSlot, of name: AccountName) async -> LaneState.Loaded {
        let found: Result<VaultEntry?, VaultError>
        do throws(VaultError) {
            found = .success(try await vault.load(slot))
        } catch {
            found = .failure(error)
        }
        return LaneState.Loaded(found, of: name, by: clock)
    }

    /// Writes a session.
    ///
    /// - Parameter isReplacing: the vault keeps the session that was in the slot until its provider has been told that
    ///   it is over. Then the vault's entry of that session is returned.
    @discardableResult
    func write(
        _ session: Session, in slot: VaultSlot, isReplacing: Bool = false
    ) async throws(BrokerError) -> RetiredEntry? {
        let text = SessionRecord.encode(session, bootID: clock.bootID)
        do throws(VaultError) {
            if isReplacing { return try await vault.replace(text, in: slot) }
            try await vault.store(text, in: slot)
            return nil
        } catch {
            guard case .refused = error, session.tokens.count > 1 else { throw BrokerError(error) }
        }
        // The record is too large. It is stored without downscoped tokens: they can be requested again, the refresh token
        // cannot.
        var bare = session
        bare.tokens = session.tokens.filter { $0.key == .own }
        return try await write(bare, in: slot, isReplacing: isReplacing)
    }

    /// Marks that the provider is about to be asked, and reserves room for its response: a rotated refresh token must not
    /// be lost for lack of space.
    ///
    /// - Parameter isNeeded: false where the provider is known not to rotate. Then a failure is ignored.
    func announce(_ slot: VaultSlot, isNeeded: Bool) async throws(BrokerError) {
        do throws(VaultError) {
            try await vault.announce(slot)
        } catch {
            guard case .unwritable(let reason) = error else { throw BrokerError(error) }
            guard isNeeded else { return }
            throw .vaultFailed(
                "The session was not refreshed, since a new refresh token could not be kept safe: \(reason)")
        }
    }

    /// Writes that the provider has ended the session. Where that cannot be written, the slot is emptied.
    ///
    /// - Parameter code: the provider's own code for the cause, where it has more than one.
    func recordEnd(_ code: String?, in slot: VaultSlot) async {
        do throws(VaultError) {
            try await vault.store(SessionRecord.ended(code), in: slot)
        } catch {
            try? await vault.remove(slot)
        }
    }

    /// Empties a slot. A damaged record has been set aside by the vault, so that its slot counts as empty.
    ///
    /// - Parameter isKept: the vault keeps the session until its provider has been told. Then the vault's identifier of
    ///   it is returned.
    func empty(_ slot: VaultSlot, isKept: Bool) async throws(BrokerError) -> String? {
        do throws(VaultError) {
            if isKept { return try await vault.retire(slot)?.id }
            try await vault.remove(slot)
        } catch {
            guard case .damaged = error else { throw BrokerError(error) }
        }
        return nil
    }
}
