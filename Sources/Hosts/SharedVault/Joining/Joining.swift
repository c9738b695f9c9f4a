internal import Cryptography
public import RingbackBase
public import SessionVault
internal import Synchronization

/// How a host joins, in this order. It can be killed between any two steps; the same call then goes on.
///
/// 1. The record is in the local vault, synced: the host's key, its code, and the role's next password.
/// 2. The database accepts the invitation. From then on the role's password is the record's.
/// 3. The record says so.
/// 4. ``Opening``: the first host of an owner makes the data key, any other takes the one that was given to it.
struct Joining: Sendable {
    let local: any Vault
    let hosts: any SharedHosts
    let place: DatabasePlace
    let random: @Sendable (Int) -> [UInt8]
    var slot: VaultSlot { VaultSlot(account: "joining", binding: place.binding, kind: .hostsKey) }

    func record() async throws(VaultError) -> JoiningRecord? {
        guard let text = try await local.load(slot)?.text else { return nil }
        guard let record = JoiningRecord(reading: text) else {
            // Without it the role's password is lost: it is not overwritten.
            throw .locked(.joiningUnreadable)
        }
        return record
    }

    /// What the database knows of this host. The record is nil if the role was set up in another way.
    func identify() async throws(VaultError) -> (HostIdentity, JoiningRecord?) {
        guard let record = try await record() else { return (try await identityByConfiguration(), nil) }
        hosts.use(record.password)
        let identity: HostIdentity
        do throws(HostFailure) { identity = try await self.identity(of: record) } catch {
            // The role may have been set up in another way.
            guard !record.isAccepted, error.meansNotAccepted || error == .invitationUsed else {
                throw VaultError(error)
            }
            return (try await identityByConfiguration(), nil)
        }
        return (identity, try await accepted(record))
    }

    private func identityByConfiguration() async throws(VaultError) -> HostIdentity {
        hosts.use(nil)
        do throws(HostFailure) {
            return try await hosts.identity()
        } catch .database(.noPassword) {
            throw VaultError.notJoined
        } catch {
            throw VaultError(error)
        }
    }

    /// The key that another host has given to this one; nil if there is none that is for this host and its code.
    func given(_ identity: HostIdentity, _ record: JoiningRecord?) throws(VaultError) -> Membership? {
        guard let wrapped = identity.wrappedKey, let record else { return nil }
        let key = try VaultError.mapping { () throws(CryptographyError) in
            try record.open(wrapped, of: place.role, owner: identity.ownerID)
        }
        return key.map { Membership(dataKey: $0, owner: identity.ownerID, host: identity.name, isConfirmed: false) }
    }

    /// Accepts the invitation, unless that was done (`isNew`). Without a name the host keeps the one of the last call.
    func accept(
        as name: String?, otherwise usual: String, invitation: Secret?
    ) async throws(HostFailure) -> (HostIdentity, JoiningRecord?, isNew: Bool) {
        let former = try await HostFailure.mapping { () throws(VaultError) in try await self.record() }
        if let former, let identity = try await known(former, invitation) {
            let record = try await HostFailure.mapping { () throws(VaultError) in try await accepted(former) }
            return (identity, record, isNew: !former.isAccepted)
        }
        var record: JoiningRecord
        if let former { record = former } else { record = try newRecord(name ?? usual) }
        if let name { record.name = name }
        record.isAccepted = false
        if record != former {
            let text = record.encoded()
            try await HostFailure.mapping { () throws(VaultError) in try await local.store(text, in: slot) }
        }
        do throws(HostFailure) {
            try await hosts.accept(
                as: record.name, password: record.password, publicKey: try published(record), invitation: invitation)
        } catch {
            // If the answer was lost, a second attempt may have failed because the first had an effect.
            hosts.use(record.password)
            guard let identity = try? await self.identity(of: record) else {
                hosts.use(nil)
                throw refusal(error, invitation)
            }
            let known = try await HostFailure.mapping { () throws(VaultError) in try await accepted(record) }
            return (identity, known, isNew: true)
        }
        hosts.use(record.password)
        record = try await HostFailure.mapping { () throws(VaultError) in try await accepted(record) }
        return (try await hosts.identity(), record, isNew: true)
    }

    /// Who this host is if its record was accepted before; nil if the invitation is still to be accepted.
    private func known(_ record: JoiningRecord, _ invitation: Secret?) async throws(HostFailure) -> HostIdentity? {
        hosts.use(record.password)
        do throws(HostFailure) { return try await identity(of: record) } catch {
            // If the database has lost what it had accepted, the invitation may still be good.
            guard error.meansNotAccepted, !record.isAccepted || invitation != nil else { throw error }
            return nil
        }
    }

    /// Throws `invitationUsed` if the database has accepted the role with another key than the record's.
    private func identity(of record: JoiningRecord) async throws(HostFailure) -> HostIdentity {
        let identity = try await hosts.identity()
        guard !record.isAccepted else { return identity }
        let own = try await hosts.hosts().first(where: \.isSelf)
        guard own?.publicKey == (try published(record)) else { throw .invitationUsed }
        return identity
    }

    private func published(_ record: JoiningRecord) throws(HostFailure) -> [UInt8] {
        do throws(CryptographyError) { return try record.published() } catch { throw .cryptography }
    }

    private func newRecord(_ name: String) throws(HostFailure) -> JoiningRecord {
        do throws(CryptographyError) { return try JoiningRecord(name: name, role: place.role, random: random) } catch {
            throw .cryptography
        }
    }

    private func refusal(_ failure: HostFailure, _ invitation: Secret?) -> HostFailure {
        switch failure {
        case .database(.noPassword): .passwordNeeded
        case .database(.authentication): invitation == nil ? .passwordNeeded : .passwordRefused
        default: failure
        }
    }

    private func accepted(_ record: JoiningRecord) async throws(VaultError) -> JoiningRecord {
        guard !record.isAccepted else { return record }
        var record = record
        record.isAccepted = true
        try await local.store(record.encoded(), in: slot)
        return record
    }
}

extension VaultError {
    public init(_ failure: HostFailure) {
        switch failure {
        case .vault(let error): self = error
        case .database(let reason): self.init(reason)
        case .cryptography: self = .refused(.cryptography)
        default: self = .notJoined
        }
    }
}

/// What a host keeps of its joining, in the local vault: written before the invitation is accepted, since the password of
/// the role is this one afterwards and nobody else knows it.
struct JoiningRecord: Sendable, Equatable {
    /// The private part of the host's X25519 key.
    let agreement: Secret
    /// What the code is made of besides the key; empty in a record of a former version, whose code nobody accepts.
    let nonce: Secret
    let code: HostCode
    /// The password of the role once the invitation is accepted.
    let password: Secret
    var name: String
    /// The database is known to have accepted it.
    var isAccepted = false

    init(name: String, role: String, random: (Int) -> [UInt8]) throws(CryptographyError) {
        agreement = Secret(bytes: random(AgreementKey.length))
        nonce = Secret(bytes: random(HostCode.nonceLength))
        code = try HostCode(nonce: nonce, publicKey: try AgreementKey(secret: agreement).publicKey, role: role)
        password = Invitation.newPassword()
        self.name = name
    }

    func encoded() -> Secret {
        let object: JSONObject = [
            "version": 2, "agreement": Hex.text(agreement.revealedBytes()), "nonce": Hex.text(nonce.revealedBytes()),
            "code": code.revealed(), "password": password.revealed(), "name": name, "accepted": isAccepted,
        ]
        return Secret(bytes: JSON.object(object).serialized())
    }

    init?(reading text: Secret) {
        guard let object = (try? JSON(parsing: text.revealedBytes()))?.object,
            let nonce = object["version"]?.integer == 1 ? [] : object["nonce"]?.string.flatMap(Hex.bytes),
            object["version"]?.integer == 1 || object["version"]?.integer == 2,
            nonce.isEmpty || nonce.count == HostCode.nonceLength,
            let agreement = object["agreement"]?.string.flatMap(Hex.bytes), agreement.count == AgreementKey.length,
            let code = object["code"]?.string.flatMap({ HostCode(Secret($0)) }),
            let password = object["password"]?.string, !password.isEmpty, let name = object["name"]?.string,
            case .bool(let isAccepted)? = object["accepted"]
        else { return nil }
        self.agreement = Secret(bytes: agreement)
        self.nonce = Secret(bytes: nonce)
        self.code = code
        self.password = Secret(password)
        self.name = name
        self.isAccepted = isAccepted
    }

    func published() throws(CryptographyError) -> [UInt8] {
        try code.published(try AgreementKey(secret: agreement).publicKey, nonce: nonce)
    }

    /// The hosts' data key, if this is what another host has sealed for this one.
    func open(_ wrapped: [UInt8], of role: String, owner: String) throws(CryptographyError) -> Secret? {
        try code.open(wrapped, with: try AgreementKey(secret: agreement), of: role, owner: owner)
    }

    /// The data key, sealed for this host itself.
    func seal(_ dataKey: Secret, of role: String, owner: String) throws(CryptographyError) -> [UInt8] {
        try code.seal(dataKey, for: try AgreementKey(secret: agreement).publicKey, of: role, owner: owner)
    }
}

/// What a person copies from a host that joins to a host that has the data key: 100 bits, which the database never gets.
/// With them both hosts recognize each other, although all else between them goes through the database:
///
/// - The code is a digest of the new host's public key and of a nonce. The host publishes both, the nonce masked by the
///   code. So the key is given to no other host, whatever public key the database shows: another public key has another
///   code, also for somebody who has seen this one.
/// - The key is sealed with a context that is derived from the code. So the new host takes no other key, whatever the
///   database gives it: with a key of its choice it could read what that host stores.
public struct HostCode: Hashable, Sendable {
    /// Crockford's base 32: no I, L, O and U.
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
    private static let length = 20
    private static let group = 5
    static let nonceLength = 32
    private let characters: Secret

    init(nonce: Secret, publicKey: [UInt8], role: String) throws(CryptographyError) {
        let purpose = "ringback: code of a host's key 2 " + role
        self.init(try KeyDerivation.derive(from: nonce, salt: publicKey, purpose: purpose).revealedBytes())
    }

    init(_ random: [UInt8]) {
        let characters = (0..<HostCode.length).map { index in
            // 5 bits from bit 5 × index on; they may lie in two bytes.
            let bit = index * 5
            let next = bit / 8 + 1 < random.count ? random[bit / 8 + 1] : 0
            let pair = UInt16(random[bit / 8]) << 8 | UInt16(next)
            return HostCode.alphabet[Int(pair >> (11 - UInt16(bit % 8)) & 31)]
        }
        self.characters = Secret(bytes: characters)
    }

    /// A code as a person types it: in either case, with spaces and hyphens anywhere, O for 0, and I and L for 1.
    public init?(_ text: Secret) {
        var found: [UInt8] = []
        for byte in text.revealedBytes() where byte != UInt8(ascii: " ") && byte != UInt8(ascii: "-") {
            let upper = byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z") ? byte - 32 : byte
            let character: UInt8 =
                switch upper {
                case UInt8(ascii: "O"): UInt8(ascii: "0")
                case UInt8(ascii: "I"), UInt8(ascii: "L"): UInt8(ascii: "1")
                default: upper
                }
            guard HostCode.alphabet.contains(character), found.count < HostCode.length else { return nil }
            found.append(character)
        }
        guard found.count == HostCode.length else { return nil }
        characters = Secret(bytes: found)
    }

    /// Four groups of five characters: `7K2QX-…`. For the person who joins the host.
    public func revealed() -> String {
        let characters = characters.revealedBytes()
        return stride(from: 0, to: HostCode.length, by: HostCode.group)
            .map { String(decoding: characters[$0..<$0 + HostCode.group], as: UTF8.self) }
            .joined(separator: "-")
    }

    /// What the host publishes for the hosts that have the data key: its public key and the masked nonce.
    func published(_ publicKey: [UInt8], nonce: Secret) throws(CryptographyError) -> [UInt8] {
        publicKey + (try masked(nonce.revealedBytes(), publicKey))
    }

    /// The public key in what the host of a role has published; nil if this is not its code.
    func publicKey(in published: [UInt8], of role: String) throws(CryptographyError) -> [UInt8]? {
        guard published.count == AgreementKey.length + HostCode.nonceLength else { return nil }
        let publicKey = Array(published.prefix(AgreementKey.length))
        let nonce = Secret(bytes: try masked(Array(published.dropFirst(AgreementKey.length)), publicKey))
        return try HostCode(nonce: nonce, publicKey: publicKey, role: role) == self ? publicKey : nil
    }

    private func masked(_ nonce: [UInt8], _ publicKey: [UInt8]) throws(CryptographyError) -> [UInt8] {
        let mask = try KeyDerivation.derive(
            from: characters, salt: publicKey, purpose: "ringback: mask of a host's nonce 2",
            length: HostCode.nonceLength)
        return zip(nonce, mask.revealedBytes()).map { $0 ^ $1 }
    }

    /// What is kept of a code that has failed: it does not reveal the code.
    func digest() throws(CryptographyError) -> String {
        Hex.text(try KeyDerivation.derive(from: characters, purpose: "ringback: a code that failed 1").revealedBytes())
    }

    func seal(
        _ dataKey: Secret, for publicKey: [UInt8], of role: String, owner: String
    ) throws(CryptographyError) -> [UInt8] {
        try SealedForKey.seal(dataKey, for: publicKey, context: try context(role, owner))
    }

    /// Nil if it was not sealed for this key, role and owner by a host that knows this code.
    func open(
        _ wrapped: [UInt8], with key: AgreementKey, of role: String, owner: String
    ) throws(CryptographyError) -> Secret? {
        let found = try SealedForKey.open(wrapped, with: key, context: try context(role, owner))
        return found?.count == SealedBox.keyLength ? found : nil
    }

    private func context(_ role: String, _ owner: String) throws(CryptographyError) -> [UInt8] {
        let purpose = "ringback: the hosts' key for a host 1 \(owner.utf8.count):\(owner)\(role)"
        return try KeyDerivation.derive(from: characters, purpose: purpose).revealedBytes()
    }
}

/// How a host that has opened its local vault gets the hosts' key: it has it, was given it, or is the first and makes it.
struct Opening: Sendable {
    let vault: SharedVault

    func run() async throws(VaultError) {
        do throws(VaultError) {
            try await vault.inTurn(vault.joining.slot) { @Sendable _ throws(VaultError) in try await becomeMember() }
            await vault.listUnread()
            await vault.showLock(nil)
        } catch {
            await vault.showLock(error)
            throw error
        }
    }

    private func becomeMember() async throws(VaultError) {
        let found = try await Membership.stored(in: vault.membershipSlot, of: vault.local)
        if let found, found.isConfirmed {
            let record = try await vault.joining.record()
            vault.hosts.use(record?.isAccepted == true ? record?.password : nil)
            return await vault.use(found)
        }
        let (identity, record) = try await vault.joining.identify()
        // What was made here counts if the database had no other key meanwhile.
        if let found, try await confirm(found, record) { return }
        if let given = try vault.joining.given(identity, record) {
            guard try await confirm(given, record) else { throw VaultError.noKey }
            return
        }
        // The first host makes the key. Which one is the first is decided by the database.
        let row = try await vault.read([Membership.markRow])
        guard row.isEmpty else { throw VaultError.noKey }
        let made = Membership(
            dataKey: Secret(bytes: vault.random(SealedBox.keyLength)), owner: identity.ownerID, host: identity.name,
            isConfirmed: false)
        try await vault.local.store(made.encoded(), in: vault.membershipSlot)
        guard try await confirm(made, record) else { throw VaultError.noKey }
    }

    /// Adopts a membership if its key is the one that the database knows, or the first. Else the stored one is removed.
    private func confirm(_ made: Membership, _ record: JoiningRecord?) async throws(VaultError) -> Bool {
        let mark = try made.mark()
        let putting = try await vault.ask { rows throws(DatabaseReason) in
            try await rows.put(mark, in: Membership.markRow, version: 0, lease: nil, overrides: false)
        }
        if case .refused(let row) = putting, row?.sealed != mark {
            try await vault.local.remove(vault.membershipSlot)
            return false
        }
        var confirmed = made
        confirmed.isConfirmed = true
        try await vault.adopt(confirmed)
        // For those who list the hosts. If it fails, the list alone is wrong.
        if let record, let own = try? record.seal(made.dataKey, of: vault.place.role, owner: made.owner) {
            _ = try? await vault.hosts.give(key: own, to: vault.place.role)
        }
        return true
    }
}

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
        let object: JSONObject = [
            "version": 1, "key": Hex.text(dataKey.revealedBytes()), "owner": owner, "host": host,
            "confirmed": isConfirmed,
        ]
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
