internal import Cryptography
public import RingbackBase
public import SessionVault

public struct JoinedHost: Sendable, Equatable {
    public let name: String
    public let owner: String
    /// What a host that has the key needs to give it to this one; nil if the role was set up in another way.
    public let code: HostCode?
    /// False if it had joined before.
    public let isNew: Bool
}

public struct Sharing: Sendable {
    private let vault: SharedVault
    public init(_ vault: SharedVault) { self.vault = vault }

    /// Joins as a host: accepts an invitation, once; the same call again changes nothing. The local vault must be open.
    /// Without a name the host keeps the one of an earlier call, or gets `usual`.
    public func join(
        as name: String?, otherwise usual: String, invitation: Secret?
    ) async throws(HostFailure) -> JoinedHost {
        try await vault.inTurn(vault.joining.slot) { @Sendable vault throws(HostFailure) in
            let found: (identity: HostIdentity, record: JoiningRecord?, isNew: Bool)
            if vault.membership != nil {
                found = try await HostFailure.mapping { () throws(VaultError) in
                    let known = try await vault.joining.identify()
                    return (known.0, known.1, false)
                }
            } else {
                found = try await vault.joining.accept(as: name, otherwise: usual, invitation: invitation)
            }
            vault.outage.tryNow()
            return JoinedHost(
                name: found.identity.name, owner: found.identity.ownerName, code: found.record?.code,
                isNew: found.isNew)
        }
    }

    /// Invites one more host of the owner, for a minute to a week.
    public func invite(lasting: Duration) async throws(HostFailure) -> Invitation {
        _ = try await member()
        return try await vault.hosts.invite(lasting: lasting)
    }

    /// Gives the data key to the host with this code; returns its name. Throws `noSuchHost`, and from then on
    /// `failedCode` for the same code: the user who made it fail may have seen it.
    public func share(with code: HostCode) async throws(HostFailure) -> String {
        let membership = try await member()
        guard try await !failedCodes().contains(try Sharing.digest(of: code)) else { throw .failedCode }
        for host in try await list() {
            guard let sealed = try Sharing.sealed(membership, for: host, code) else { continue }
            if try await vault.hosts.give(key: sealed, to: host.role) { return host.name ?? host.role }
        }
        try await note(failed: code)
        throw .noSuchHost
    }

    /// The owner's hosts, those that were invited last.
    public func list() async throws(HostFailure) -> [Host] {
        _ = try await member()
        return try await vault.hosts.hosts().map { host in
            var host = host
            // The host that made the key was not given it.
            if host.isSelf { host.hasKey = true }
            return host
        }
    }

    /// Removes another host, by its name or role; returns its name. What it had read is stale, see ``isStale(_:)``.
    public func remove(host word: String) async throws(HostFailure) -> String {
        let hosts = try await list()
        guard let host = hosts.first(where: { $0.role == word }) ?? hosts.first(where: { $0.name == word }) else {
            throw .noSuchHost
        }
        guard !host.isSelf else { throw .ownHost }
        try await Removals(vault: vault).remove(host)
        return host.name ?? host.role
    }

    /// True if a removed host may have read the session in the slot: it is to be refreshed once.
    public func isStale(_ slot: VaultSlot) async -> Bool { await vault.isStale(slot) }

    /// Goes on with removals that were begun and not ended, here or on another host.
    public func resumeRemovals() async throws(HostFailure) { try await Removals(vault: vault).resume() }

    /// Yields when there may be a removal to go on with, or a session that is stale.
    public var removalNews: AsyncStream<Void> { vault.removalNews.stream }
    public func lookAtRemovals() { vault.removalNews.continuation.yield() }

    /// Nil if the code is not this host's.
    private static func sealed(
        _ membership: Membership, for host: Host, _ code: HostCode
    ) throws(HostFailure) -> [UInt8]? {
        guard let published = host.publicKey else { return nil }
        do throws(CryptographyError) {
            guard let publicKey = try code.publicKey(in: published, of: host.role) else { return nil }
            return try code.seal(membership.dataKey, for: publicKey, of: host.role, owner: membership.owner)
        } catch .invalidKey {
            return nil
        } catch {
            throw .cryptography
        }
    }

    private static let mostFailedCodes = 256

    private var failedCodesSlot: VaultSlot {
        VaultSlot(account: "codes", binding: vault.place.binding, kind: .hostsKey)
    }

    private func failedCodes() async throws(HostFailure) -> [String] {
        let text = try await HostFailure.mapping { () throws(VaultError) in
            try await vault.local.load(failedCodesSlot)?.text
        }
        return text.flatMap { try? JSON(parsing: $0.revealedBytes()) }?.array?.compactMap(\.string) ?? []
    }

    private func note(failed code: HostCode) async throws(HostFailure) {
        let digest = try Sharing.digest(of: code)
        try await vault.inTurn(failedCodesSlot) { @Sendable vault throws(HostFailure) in
            let codes = (try await failedCodes() + [digest]).suffix(Sharing.mostFailedCodes)
            let text = Secret(bytes: JSON.array(codes.map { .string($0) }).serialized())
            do throws(VaultError) { try await vault.local.store(text, in: failedCodesSlot) } catch {
                throw .vault(error)
            }
        }
    }

    private static func digest(of code: HostCode) throws(HostFailure) -> String {
        do throws(CryptographyError) { return try code.digest() } catch { throw .cryptography }
    }

    private func member() async throws(HostFailure) -> Membership {
        guard let membership = await vault.membership else {
            let status = vault.status
            throw .vault(.locked(status.reason ?? .locked, obstacle: status.obstacle))
        }
        return membership
    }
}

/// A login role with its password: whoever has it can join as a host, once.
public struct Invitation: Sendable, Equatable {
    public let role: String
    public let password: Secret

    public init(role: String, password: Secret) {
        self.role = role
        self.password = password
    }

    /// A password of 256 random bits.
    public static func newPassword() -> Secret { RandomToken.base64URL() }
}

public struct HostIdentity: Sendable, Equatable {
    public let ownerName: String
    /// 16 bytes, to which the content of rows is bound.
    public let owner: [UInt8]
    public let name: String
    /// The hosts' data key, sealed for this host; nil until another host has given it.
    public let wrappedKey: [UInt8]?

    public init(ownerName: String, owner: [UInt8], name: String, wrappedKey: [UInt8]?) {
        self.ownerName = ownerName
        self.owner = owner
        self.name = name
        self.wrappedKey = wrappedKey
    }

    var ownerID: String { Hex.text(owner) }
}

public struct Host: Sendable, Equatable {
    public let role: String
    /// Nil until the invitation is accepted.
    public let name: String?
    public let isSelf: Bool
    /// Seconds since 1970 by the database's clock.
    public let joined: Int64?
    /// The same, to about ten minutes.
    public let seen: Int64?
    /// It was given the data key, or has noted that it made it.
    public var hasKey: Bool
    /// What it published when it joined, see ``HostCode``.
    public let publicKey: [UInt8]?

    public init(
        role: String, name: String?, isSelf: Bool, joined: Int64?, seen: Int64?, hasKey: Bool, publicKey: [UInt8]?
    ) {
        self.role = role
        self.name = name
        self.isSelf = isSelf
        self.joined = joined
        self.seen = seen
        self.hasKey = hasKey
        self.publicKey = publicKey
    }
}

/// Why hosts could not join, be listed or be changed.
public enum HostFailure: Error, Sendable, Equatable {
    case vault(VaultError)
    case database(DatabaseReason)
    /// The role belongs to no host, or to one that was removed.
    case noHost
    case notJoined
    /// The invitation was accepted by another host.
    case invitationUsed
    case tooManyHosts
    case nameTaken
    /// The cryptography library failed here.
    case cryptography
    case passwordNeeded
    /// The database does not let the role in with the invitation's password.
    case passwordRefused
    /// No host that has joined has this code, name or role.
    case noSuchHost
    case failedCode
    case ownHost

    static func mapping<Value>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws(VaultError) -> Value
    ) async throws(HostFailure) -> Value {
        do throws(VaultError) { return try await body() } catch { throw .vault(error) }
    }

    /// The role has not accepted its invitation with the password that was used.
    var meansNotAccepted: Bool {
        switch self {
        case .database(.authentication), .database(.noPassword), .notJoined: true
        default: false
        }
    }
}

/// How hosts of an owner come and go. Each function asks as one host, and reaches only hosts of the same owner.
public protocol SharedHosts: Sendable {
    /// The password of this host's role from now on; nil for what the configuration says.
    func use(_ password: Secret?)
    /// Accepts an invitation, whose password is `invitation` (nil for what the configuration says): names the host and
    /// replaces the password of its role by `password`. The same call again changes nothing. Throws `invitationUsed`,
    /// `nameTaken` (1 to 64 bytes), and ``HostFailure`` for everything else.
    func accept(as name: String, password: Secret, publicKey: [UInt8], invitation: Secret?) async throws(HostFailure)
    /// What the database knows of this host. Throws `noHost` after it was removed.
    func identity() async throws(HostFailure) -> HostIdentity
    /// All hosts of the owner, those that were invited last.
    func hosts() async throws(HostFailure) -> [Host]
    /// Makes a login role for one more host, which has a minute to a week to accept it. Throws `tooManyHosts`.
    func invite(lasting: Duration) async throws(HostFailure) -> Invitation
    /// Leaves the data key, sealed for that host, for a host that has joined. False if there is none.
    func give(key wrapped: [UInt8], to role: String) async throws(HostFailure) -> Bool
    /// Removes a host: its connections end, its role cannot log in and is dropped. False if the owner has no such host.
    func remove(host role: String) async throws(HostFailure) -> Bool
}

public struct DatabasePlace: Sendable, Equatable {
    /// For a status, without a password.
    public let shown: String
    public let role: String
    public let database: String

    public init(shown: String, role: String, database: String) {
        self.shown = shown
        self.role = role
        self.database = database
    }

    /// What the local vault's records about the database are bound to. The server's names may change.
    var binding: String { "\(role) \(database)" }
}

/// How a host is removed, in this order. The removing host can be killed between any two steps. It goes on when it is
/// started again, and so does any other host that sees the record.
///
/// 1. The record in the database says that the removal has begun.
/// 2. The database removes the host: from then on it reads nothing.
/// 3. The record says that the removal is done: its count grows.
/// 4. Each session whose content has a lower count is refreshed once, by a host that has its account.
struct Removals: Sendable {
    private static let mostChanges = 10
    let vault: SharedVault

    func remove(_ host: Host) async throws(HostFailure) {
        let removal = RemovalRecord.Begun(role: host.role, name: host.name ?? host.role)
        try await change { $0.begin(removal) }
        try await finish(removal)
    }

    func resume() async throws(HostFailure) {
        for removal in await vault.removals.begun where removal.role != vault.place.role { try await finish(removal) }
    }

    private func finish(_ removal: RemovalRecord.Begun) async throws(HostFailure) {
        // False if the database has removed it before.
        _ = try await vault.hosts.remove(host: removal.role)
        try await change { $0.end(removal) }
    }

    private func change(_ body: @escaping @Sendable (inout RemovalRecord) -> Void) async throws(HostFailure) {
        do throws(VaultError) { try await record(body) } catch { throw .vault(error) }
    }

    /// Changes the record in the database; nothing is written while that is away.
    func record(_ body: @Sendable (inout RemovalRecord) -> Void) async throws(VaultError) {
        // Another slot's turn: those of the record are taken by what is called here.
        let turn = VaultSlot(account: "removing", binding: "", kind: .hostsKey)
        try await vault.inTurn(turn) { @Sendable vault throws(VaultError) in
            for _ in 0..<Removals.mostChanges {
                _ = try await vault.load(vault.removalSlot)
                let former = vault.removals
                var record = former
                body(&record)
                guard record != former else { return }
                do throws(VaultError) {
                    return try await vault.store(record.encoded(), in: vault.removalSlot, as: .edit)
                } catch {
                    guard error == .unreachable(.changedElsewhere) || error == .unreachable(.heldElsewhere) else {
                        throw error
                    }
                }
            }
            throw .unreachable(.changedElsewhere)
        }
    }
}

extension SharedVault {
    var removals: RemovalRecord {
        guard let content = slots[removalSlot]?.entry?.content else { return RemovalRecord() }
        if removalsRead?.name != content.name {
            removalsRead = (content.name, content.text.flatMap { RemovalRecord(reading: $0) } ?? RemovalRecord())
        }
        return removalsRead?.record ?? RemovalRecord()
    }

    func isStale(_ slot: VaultSlot) -> Bool {
        slot.kind == .session && slots[slot]?.isOlder(than: removals.count) == true
    }

    /// To be called when a slot was read: there may be something to do about removals.
    func noteRemovals(in slot: VaultSlot) {
        if slot == removalSlot || isStale(slot) { removalNews.continuation.yield() }
    }
}

/// Which hosts were removed, as all hosts share it in a row of its own. The count grows with each removal that is done.
/// A removed host may have read a content that has a lower count (``RowContent/removals``).
struct RemovalRecord: Sendable, Equatable {
    struct Begun: Sendable, Equatable {
        let role: String
        let name: String
    }

    var count = 0
    var begun: [Begun] = []
    init() {}

    init?(reading text: Secret) {
        guard let object = (try? JSON(parsing: text.revealedBytes()))?.object, object["version"]?.integer == 1,
            let count = object["count"]?.integer, count >= 0, let begun = object["begun"]?.array
        else { return nil }
        self.count = count
        self.begun = begun.compactMap { entry in
            guard let role = entry["role"]?.string, let name = entry["name"]?.string else { return nil }
            return Begun(role: role, name: name)
        }
        guard self.begun.count == begun.count else { return nil }
    }

    func encoded() -> Secret {
        let begun = begun.map { ["role": $0.role, "name": $0.name] as JSONObject }
        let object: JSONObject = ["version": 1, "count": count, "begun": begun]
        return Secret(bytes: JSON.object(object).serialized())
    }

    mutating func begin(_ removal: Begun) { if !begun.contains(removal) { begun.append(removal) } }

    /// Nothing if another host has noted it already.
    mutating func end(_ removal: Begun) {
        guard begun.contains(removal) else { return }
        begun.removeAll { $0 == removal }
        count += 1
    }
}
