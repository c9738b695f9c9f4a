internal import Cryptography
public import RingbackBase
public import SessionVault
internal import Synchronization

/// What a host must have to use the rows of its owner. It is kept in the local vault.
public struct Membership: Sendable, Equatable {
    /// The hosts' data key: 32 bytes.
    public let dataKey: Secret
    /// The owner's identity in the database, to which rows are bound.
    public let owner: String
    public let host: String
    /// The database knows that this is the hosts' key.
    var isConfirmed = true
}

extension Membership {
    func encoded() -> Secret {
        let object = JSONObject([
            .init("version", .integer(1)), .init("key", .string(Hex.text(dataKey.revealedBytes()))),
            .init("owner", .string(owner)), .init("host", .string(host)), .init("confirmed", .bool(isConfirmed)),
        ])
        return Secret(bytes: JSON.object(object).serialized())
    }

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
        try VaultError.mapping { () throws(CryptographyError) in
            try KeyDerivation.derive(from: dataKey, purpose: "ringback: mark of the hosts' key 1 " + owner)
        }.revealedBytes()
    }

    static func stored(in slot: VaultSlot, of local: any Vault) async throws(VaultError) -> Membership? {
        guard let text = try await local.load(slot)?.text else { return nil }
        guard let found = Membership(reading: text) else { throw VaultError.noKey }
        return found
    }

    static let markRow = RowKey(bytes: [UInt8](repeating: 0, count: 32))
}

extension SharedVault {
    nonisolated var membershipSlot: VaultSlot { VaultSlot(account: "hosts", binding: place.binding, kind: .hostsKey) }

    /// Without membership the local vault stays open: it may come without a passphrase being asked for again.
    public func open(passphrase: Secret?) async throws(VaultError) {
        try await local.open(passphrase: passphrase)
        if membership == nil { try await Opening(vault: self).run() }
    }

    /// Stores what another host of the owner gave to this one, in the local vault, which must be open.
    public func adopt(_ membership: Membership) async throws(VaultError) {
        try await local.store(membership.encoded(), in: membershipSlot)
        use(membership)
        showLock(nil)
    }

    /// This host's name among those that share the vault; nil before the vault was opened.
    public nonisolated var hostName: String? { shown.withLock { $0.host } }

    func use(_ found: Membership) {
        membership = found
        shown.withLock { $0.host = found.host }
        sealing = RowSealing(dataKey: found.dataKey, owner: found.owner)
        wakes.continuation.yield()
    }
}

extension VaultError {
    /// The role belongs to no host that has joined.
    static let notJoined = VaultError.locked(.noHost, obstacle: .notJoined)
    static let noKey = VaultError.locked(.noHostsKey, obstacle: .noHostsKey)

    static func mapping<Value>(_ body: () throws(CryptographyError) -> Value) throws(VaultError) -> Value {
        do throws(CryptographyError) { return try body() } catch { throw .refused(.cryptography) }
    }
}
