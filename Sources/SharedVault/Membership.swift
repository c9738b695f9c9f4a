internal import Cryptography
public import Secrets
public import SessionVault
internal import StrictJSON

/// What a host must have to use the rows of its owner. It is kept in the local vault.
public struct Membership: Sendable, Equatable {
    /// The hosts' data key: 32 bytes.
    public let dataKey: Secret
    /// The owner's identity in the database, to which rows are bound.
    public let owner: String
    /// This host's name in the database.
    public let host: String
    /// The database knows that this is the hosts' key.
    var isConfirmed: Bool

    public init(dataKey: Secret, owner: String, host: String, isConfirmed: Bool = true) {
        self.dataKey = dataKey
        self.owner = owner
        self.host = host
        self.isConfirmed = isConfirmed
    }

    func encoded() -> Secret {
        let object = JSONObject([
            .init("version", .integer(1)), .init("key", .string(Hex.text(dataKey.revealedBytes()))),
            .init("owner", .string(owner)), .init("host", .string(host)), .init("confirmed", .bool(isConfirmed)),
        ])
        return Secret(bytes: JSON.object(object).serialized())
    }

    /// Nil if the text is not a membership's.
    init?(reading text: Secret) {
        guard let object = (try? JSON(parsing: text.revealedBytes()))?.object, object["version"]?.integer == 1,
            let key = object["key"]?.string.flatMap(Hex.bytes), key.count == SealedBox.keyLength,
            let owner = object["owner"]?.string, let host = object["host"]?.string,
            case .bool(let isConfirmed)? = object["confirmed"]
        else { return nil }
        self.init(dataKey: Secret(bytes: key), owner: owner, host: host, isConfirmed: isConfirmed)
    }

    /// What the database is told of the key, so that all hosts have the same one: it does not reveal the key.
    func mark() throws(VaultError) -> [UInt8] {
        do throws(CryptographyError) {
            let mark = try KeyDerivation.derive(from: dataKey, purpose: "ringback: mark of the hosts' key 1 " + owner)
            return mark.revealedBytes()
        } catch {
            throw .refused(.cryptography)
        }
    }

    static func stored(in slot: VaultSlot, of local: any Vault) async throws(VaultError) -> Membership? {
        guard let text = try await local.load(slot)?.text else { return nil }
        guard let found = Membership(reading: text) else { throw VaultError.noKey }
        return found
    }

    /// The row that has the mark.
    static let markRow = RowKey(bytes: [UInt8](repeating: 0, count: 32))
}

extension SharedVault {
    /// The slot of the local vault that has the membership.
    private var membershipSlot: VaultSlot { VaultSlot(account: "hosts", binding: place.binding, kind: .hostsKey) }

    /// If this host has not joined, or does not have the key yet, the local vault stays open: what is missing may come
    /// without a passphrase being asked for again.
    public func open(passphrase: Secret?) async throws(VaultError) {
        try await local.open(passphrase: passphrase)
        guard membership == nil else { return }
        do throws(VaultError) {
            try await inTurn(joining.slot) { vault throws(VaultError) in try await vault.becomeMember() }
            showLock(nil)
        } catch {
            showLock(error)
            throw error
        }
    }

    private func becomeMember() async throws(VaultError) {
        let found = try await Membership.stored(in: membershipSlot, of: local)
        if let found, found.isConfirmed {
            let record = try await joining.record()
            hosts.use(record?.isAccepted == true ? record?.password : nil)
            return use(found)
        }
        let (identity, record) = try await joining.identify()
        // What was made here counts if the database had no other key meanwhile.
        if let found, try await confirm(found, record) { return }
        if let given = try joining.given(identity, record) {
            guard try await confirm(given, record) else { throw VaultError.noKey }
            return
        }
        // The first host makes the key. Which one is the first is decided by the database.
        let row = try await read([Membership.markRow])
        guard row.isEmpty else { throw VaultError.noKey }
        let made = Membership(
            dataKey: Secret(bytes: random(SealedBox.keyLength)), owner: identity.ownerID, host: identity.name,
            isConfirmed: false)
        try await local.store(made.encoded(), in: membershipSlot)
        guard try await confirm(made, record) else { throw VaultError.noKey }
    }

    /// Adopts a membership if its key is the one that the database knows, or the first. If it is another one, what was
    /// stored of it is removed.
    private func confirm(_ made: Membership, _ record: JoiningRecord?) async throws(VaultError) -> Bool {
        let mark = try made.mark()
        let putting = try await ask { rows throws(RowError) in
            try await rows.put(mark, in: Membership.markRow, version: 0, lease: nil, overrides: false)
        }
        if case .refused(let row) = putting, row?.sealed != mark {
            try await local.remove(membershipSlot)
            return false
        }
        var confirmed = made
        confirmed.isConfirmed = true
        try await adopt(confirmed)
        // For those who list the hosts. If it fails, the list alone is wrong.
        if let record, let own = try? record.seal(made.dataKey, of: place.role, owner: made.owner) {
            _ = try? await hosts.give(key: own, to: place.role)
        }
        return true
    }

    /// Stores what another host of the owner gave to this one, in the local vault, which must be open.
    public func adopt(_ membership: Membership) async throws(VaultError) {
        try await local.store(membership.encoded(), in: membershipSlot)
        use(membership)
        showLock(nil)
    }

    private func use(_ found: Membership) {
        membership = found
        sealing = RowSealing(dataKey: found.dataKey, owner: found.owner)
    }
}

extension VaultError {
    /// The role belongs to no host that has joined.
    static let notJoined = VaultError.locked(.noHost, obstacle: .notJoined)
    /// This host has not been given the hosts' key yet.
    static let noKey = VaultError.locked(.noHostsKey, obstacle: .noHostsKey)
}
