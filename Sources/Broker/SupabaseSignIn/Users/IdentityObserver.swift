internal import BrokerCore
internal import SessionVault
internal import SupabaseAuth

/// Records every link and unlink of an identity. The server reports some of them only by a changed list of identities,
/// so the list is compared with the former session's or, at a sign-in, with the one of the user's last session here. If
/// a change was recorded but could not be stored (the disk was full, the daemon was killed), it is recorded again.
struct IdentityObserver: Sendable {
    let vault: any Vault
    let record: @Sendable (BrokerFact) -> Void

    /// A session was opened; it replaces `former` if there was one. `isAsked`: the user requested to link an identity,
    /// and the session is the result.
    func opened(_ session: Session, over former: Session?, of account: Account, isAsked: Bool) async {
        guard session.project != nil, let user = session.owner, let identities = user.knownIdentities else { return }
        let people = await knownPeople(account)
        let held = former.flatMap { $0.isSameUser(as: session) ? $0.owner?.knownIdentities : nil }
        if let known = held ?? people.identities(of: user.id) {
            tell(IdentityChange(from: known, to: user), account.name, isAsked: isAsked)
        } else {
            for identity in IdentityChange(onFirstSightOf: user).linked {
                let sight = IdentityObserver.firstSight(of: identity, user)
                record(.identityLinked(account.name, provider: identity.provider, sight))
            }
        }
        await remember(identities, of: user, session, among: people, account)
    }

    /// The user object of a session has changed.
    func changed(_ former: Session, to session: Session, of account: Account, isAsked: Bool) async {
        guard session.project != nil, let before = former.owner, let after = session.owner else { return }
        let change = IdentityChange(from: before, to: after)
        guard !change.isEmpty else { return }
        tell(change, account.name, isAsked: isAsked)
        await leaving(session, of: account)
    }

    /// The session is removed. The user's identities are stored for the comparison at the next sign-in.
    func leaving(_ session: Session, of account: Account) async {
        guard session.project != nil, let user = session.owner, let identities = user.knownIdentities else { return }
        await remember(identities, of: user, session, among: await knownPeople(account), account)
    }

    private func tell(_ change: IdentityChange, _ name: AccountName, isAsked: Bool) {
        for identity in change.linked {
            record(.identityLinked(name, provider: identity.provider, isAsked ? .asked : .inferred))
        }
        for identity in change.unlinked {
            record(.identityUnlinked(name, provider: identity.provider, isInferred: !isAsked))
        }
    }

    /// Whether the server created the identity during this sign-in or earlier, by the server's clock.
    private static func firstSight(of identity: Identity, _ user: SupabaseUser) -> BrokerFact.IdentitySight {
        guard let made = identity.createdAtSeconds, let last = user.lastSignInAt, last - made > signInSpan else {
            return .inferred
        }
        return .former(at: WallInstant(seconds: made))
    }

    // MARK: Stored identities

    /// If the stored record cannot be read, it is treated as empty, so that the sign-in does not fail.
    private func knownPeople(_ account: Account) async -> KnownUsers {
        let entry = (try? await vault.load(account.knownUsersSlot)) ?? nil
        return entry.flatMap { KnownUsers(decoding: $0.text) } ?? KnownUsers()
    }

    private func remember(
        _ identities: [KnownIdentity], of user: SupabaseUser, _ session: Session, among people: KnownUsers,
        _ account: Account
    ) async {
        // Nothing is stored about users of ephemeral sessions.
        guard !session.isEphemeral else { return }
        var updated = people
        updated.remember(identities, of: user.id)
        // The order is stored too: the user who was seen longest ago is removed first.
        guard updated != people else { return }
        try? await vault.store(updated.text, in: account.knownUsersSlot)
    }

    /// The longest duration of a sign-in in seconds. An identity that is older than this was not made by it.
    private static let signInSpan = 600
}

extension Account {
    fileprivate var knownUsersSlot: VaultSlot { VaultSlot(account: name.rawValue, binding: bindingID, kind: .people) }
}

extension Session {
    fileprivate var owner: SupabaseUser? { user.flatMap(SupabaseUser.init(reading:)) }
}
