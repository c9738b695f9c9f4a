internal import BrokerCore
internal import Secrets
internal import SessionVault

/// Records of registrations in a vault that several hosts may share: another host that is at one is waited for, and what
/// it has changed is read again. A vault of one host lets everything happen at once.
struct SharedRecords: Sendable {
    /// How often another host is waited for, a second each time, and how often it may change the record meanwhile.
    private static let mostTurns = 30

    let vault: any Vault
    let clock: BrokerClock

    /// Announces a request whose response may change the record: reserves room, and takes the record's turn among the
    /// hosts. To be ended by `store` or `settle`.
    ///
    /// - Returns: true if another host has changed the record since it was read.
    func announce(_ slot: VaultSlot) async throws(BrokerError) -> Bool {
        var isChanged = false
        for _ in 0..<SharedRecords.mostTurns {
            let announcement = try await BrokerError.mapping { () throws(VaultError) in
                try await vault.announce(slot, presenting: nil, accessTokenLeft: nil)
            }
            switch announcement {
            case .granted: return isChanged
            case .changed: isChanged = true
            case .wait(let wait): try await pause(wait)
            }
        }
        throw BrokerError(.unreachable(.heldElsewhere))
    }

    /// Changes the record without a request, whatever other hosts do meanwhile.
    ///
    /// - Parameter change: makes the new text of the present one. It may be called several times.
    func change(
        _ slot: VaultSlot, _ change: @Sendable (Secret?) -> Secret
    ) async throws(BrokerError) {
        for turn in 1...SharedRecords.mostTurns {
            do throws(VaultError) {
                return try await vault.store(change(try await vault.load(slot)?.text), in: slot)
            } catch {
                let isPassing =
                    error == .unreachable(.changedElsewhere) || error == .unreachable(.heldElsewhere)
                guard isPassing, turn < SharedRecords.mostTurns else { throw BrokerError(error) }
                if error == .unreachable(.heldElsewhere) { try await pause(.seconds(1)) }
            }
        }
    }

    private func pause(_ wait: Duration) async throws(BrokerError) {
        do { try await clock.sleep(min(wait, .seconds(1))) } catch { throw .cancelled }
    }
}
