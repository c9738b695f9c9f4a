internal import OAuth
internal import SessionVault
internal import StrictJSON

/// What opens and closes a session, each in its turn.
extension SessionBook {
    /// Takes a signed-in session over. While the account holds one, another subject is refused (CONTRACT section 5).
    func open(
        _ session: Session, for account: Account, switchingSubject: Bool
    ) async -> Result<Void, BrokerError> {
        let name = account.name
        let opening = enqueue(name) { book -> Result<Void, BrokerError> in
            guard let lane = book.lanes[name], lane.account.binding == account.binding else {
                return .failure(.flowCancelled("The configuration of \(name) changed during the sign-in."))
            }
            if let held = lane.session, !Session.isSame(held.subject, session.subject), !switchingSubject {
                return .failure(
                    .conflict(
                        "\(name) is signed in as \(held.displayName), and this sign-in is by \(session.displayName). "
                            + "Nothing was changed. Sign out first, or ask to switch."))
            }
            let saved = await book.save(session, account)
            guard book.lanes[name]?.generation == lane.generation else {
                return .failure(.flowCancelled("The configuration of \(name) changed during the sign-in."))
            }
            book.hold(session, name)
            book.lanes[name]?.error = saved
            book.lanes[name]?.backoff = Backoff()
            book.lanes[name]?.lastRefresh = nil
            book.post(.signedIn, name, session: session)
            return .success(())
        }
        return await opening.wait() ?? .failure(.cancelled)
    }

    /// Ends the session here. Readers see none from this call on; the change itself takes its turn, so that what is
    /// returned for revocation holds the newest tokens.
    func close(_ name: AccountName) async throws(BrokerError) -> (session: Session, account: Account)? {
        guard lanes[name] != nil else { throw .accountNotFound(name.rawValue) }
        lanes[name]?.closings += 1
        lanes[name]?.error = nil
        board.publish(nil, for: name)
        let generation = lanes[name]?.generation
        let closing = enqueue(name) { book -> Result<(session: Session, account: Account)?, BrokerError> in
            // A lane that took this one's place has a session of another binding, which nobody asked to close.
            guard book.lanes[name]?.generation == generation else { return .success(nil) }
            defer {
                if book.lanes[name]?.generation == generation { book.lanes[name]?.closings -= 1 }
                book.publish(name)
            }
            guard let lane = book.lanes[name], let session = lane.session else { return .success(nil) }
            do throws(VaultError) {
                try await book.vault.remove(lane.account.slot)
            } catch {
                return .failure(BrokerError(error))
            }
            guard book.lanes[name]?.generation == generation else { return .success((session, lane.account)) }
            book.lanes[name]?.session = nil
            book.lanes[name]?.backoff = Backoff()
            book.lanes[name]?.lastRefresh = nil
            book.post(.signedOut, name, session: session, state: .unauthenticated)
            return .success((session, lane.account))
        }
        guard let result = await closing.wait() else { throw .cancelled }
        return try result.get()
    }

    /// Shows a failure that left the session as it was.
    func note(_ error: BrokerError, _ name: AccountName, as kind: BrokerEvent.Kind) {
        lanes[name]?.error = error
        post(kind, name, session: lanes[name]?.session, error: error)
    }

    /// A sign-in starts: the last failure is history.
    func clearError(_ name: AccountName) { lanes[name]?.error = nil }
}

extension Account {
    var slot: VaultSlot { VaultSlot(account: name.rawValue, binding: binding.text) }
}

extension Session {
    /// What people call this person.
    public var displayName: String { user?["email"]?.string ?? subject ?? "an unnamed person" }

    /// Compares bytes: `==` holds two spellings of an accented letter for one person.
    static func isSame(_ left: String?, _ right: String?) -> Bool {
        switch (left, right) {
        case (nil, nil): true
        case (let left?, let right?): left.utf8.elementsEqual(right.utf8)
        default: false
        }
    }
}

extension BrokerError {
    init(_ error: VaultError) {
        switch error {
        case .locked(let reason): self = .vaultLocked(reason)
        case .unwritable(let reason), .damaged(let reason): self = .vaultFailed(reason)
        }
    }
}
