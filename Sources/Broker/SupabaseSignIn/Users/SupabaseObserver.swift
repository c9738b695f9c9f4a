public import BrokerCore
internal import RingbackBase
internal import SessionVault
internal import SupabaseAuth

/// Records every link and unlink of an identity, and caches the apps' rows. The server reports some links only by a
/// changed list of identities, so it is compared with the former session's or, at a sign-in, with that of the user's
/// last session here. A change that was recorded but could not be stored is recorded again.
struct SupabaseObserver: SessionObserver {
    let vault: any Vault
    let record: @Sendable (BrokerFact) -> Void
    let profiles: SupabaseProfiles

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
                let sight = SupabaseObserver.firstSight(of: identity, user)
                record(.identityLinked(account.name, provider: identity.provider, sight))
            }
        }
        await remember(identities, of: user, session, among: people, account)
    }

    func changed(_ former: Session, to session: Session, of account: Account, isAsked: Bool) async {
        guard session.project != nil, let before = former.owner, let after = session.owner else { return }
        let change = IdentityChange(from: before, to: after)
        guard !change.isEmpty else { return }
        tell(change, account.name, isAsked: isAsked)
        await leaving(session, of: account)
    }

    func leaving(_ session: Session, of account: Account) async {
        guard session.project != nil, let user = session.owner, let identities = user.knownIdentities else { return }
        await remember(identities, of: user, session, among: await knownPeople(account), account)
    }

    func willPost(
        _ kind: BrokerEvent.Kind, of account: Account, _ session: Session?, in sessions: SessionManager
    ) {
        switch kind {
        case .signedOut: profiles.forget(account.name)
        case .signedIn, .userUpdated, .passwordRecovery: profiles.renew(account, in: sessions)
        case .initialSession where session != nil && !profiles.isAwaited(account.name):
            profiles.renew(account, in: sessions)
        default: break
        }
    }

    func forget(_ account: AccountName) { profiles.forget(account) }

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

/// The users who have signed in to an account, with their linked identities. The record is kept after a session ends,
/// so that the next sign-in shows which identities were linked meanwhile. It has no tokens and no addresses.
struct KnownUsers: Equatable {
    private struct KnownUser: Equatable {
        let subject: String
        let identities: [KnownIdentity]
    }

    /// The user who was seen last comes first.
    private var people: [KnownUser] = []
    /// The maximum number of users per account. The user who was seen longest ago is removed first.
    static let most = 64
    private static let version = 1

    init() {}

    func identities(of subject: String) -> [KnownIdentity]? { people.first { $0.subject == subject }?.identities }

    mutating func remember(_ identities: [KnownIdentity], of subject: String) {
        people.removeAll { $0.subject == subject }
        people.insert(KnownUser(subject: subject, identities: identities), at: 0)
        people.removeLast(max(0, people.count - KnownUsers.most))
    }

    // MARK: As text for the vault

    init?(decoding text: Secret) {
        guard let json = try? JSON(parsing: text.revealedBytes()), json["version"]?.integer == KnownUsers.version
        else { return nil }
        for member in (json["people"]?.array ?? []).prefix(KnownUsers.most) {
            guard let subject = member["subject"]?.string else { continue }
            let identities = (member["identities"]?.array ?? []).compactMap { identity -> KnownIdentity? in
                guard let id = identity["identity_id"]?.string, let provider = identity["provider"]?.string else {
                    return nil
                }
                return KnownIdentity(identityID: id, provider: provider)
            }
            people.append(KnownUser(subject: subject, identities: identities))
        }
    }

    var text: Secret {
        let people = people.map { user -> JSONObject in
            let identities = user.identities.map { identity -> JSONObject in
                ["identity_id": identity.identityID, "provider": identity.provider]
            }
            return ["subject": user.subject, "identities": identities]
        }
        let document: JSONObject = ["version": KnownUsers.version, "people": people]
        return Secret(bytes: JSON.object(document).serialized())
    }
}

/// For apps that had their own users before: the session shows the former identifier until the app has moved the data.
extension SupabaseOperations {
    /// Stores the user's former identifier. Another one is rejected until the first is acknowledged (`.conflict`).
    public func migrate(_ name: AccountName, from identifier: String) async throws(BrokerError) -> AccountView {
        guard (1...255).contains(identifier.utf8.count), identifier.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            let text = "an identifier of 1 to 255 bytes without control characters"
            throw .invalid(field: "from", reason: .stated(text))
        }
        try await requests(of: name).setMigration(identifier)
        return try await broker.account(name)
    }

    public func acknowledgeMigration(_ name: AccountName) async throws(BrokerError) -> AccountView {
        try await requests(of: name).setMigration(nil)
        return try await broker.account(name)
    }
}
