// A host joins in this order. It can be killed between any two steps; the same call then goes on.
//
// 1. The record is in the local vault, synced: the host's key, its code, and the role's next password.
// 2. The database accepts the invitation. From then on the role's password is the record's.
// 3. The record says so.
// 4. The vault is opened: the first host of an owner makes the data key, any other takes the one that was given to it.

internal import Cryptography
internal import Secrets
public import SessionVault

/// The steps 1 to 3, and who this host is.
struct Joining: Sendable {
    let local: any Vault
    let hosts: any SharedHosts
    let place: DatabasePlace
    let random: @Sendable (Int) -> [UInt8]

    /// The slot of the local vault that has the record.
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
        do throws(HostFailure) {
            identity = try await self.identity(of: record)
        } catch {
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
        } catch .database(.unreachable(.noPassword)) {
            throw VaultError.notJoined
        } catch {
            throw VaultError(error)
        }
    }

    /// The key that another host has given to this one; nil if there is none that is for this host and its code.
    func given(_ identity: HostIdentity, _ record: JoiningRecord?) throws(VaultError) -> Membership? {
        guard let wrapped = identity.wrappedKey, let record else { return nil }
        do throws(CryptographyError) {
            let key = try record.open(wrapped, of: place.role, owner: identity.ownerID)
            return key.map {
                Membership(dataKey: $0, owner: identity.ownerID, host: identity.name, isConfirmed: false)
            }
        } catch {
            throw .refused(.cryptography)
        }
    }

    /// Accepts the invitation, if that was not done before. Without a name the host keeps the one of the last call.
    /// `isNew` is false if the record said already that it was accepted.
    func accept(
        as name: String?, otherwise usual: String, invitation: Secret?
    ) async throws(SharingFailure) -> (HostIdentity, JoiningRecord?, isNew: Bool) {
        let former = try await mapping { () throws(VaultError) in try await self.record() }
        if let former, let identity = try await known(former, invitation) {
            let record = try await mapping { () throws(VaultError) in try await accepted(former) }
            return (identity, record, isNew: !former.isAccepted)
        }
        var record: JoiningRecord
        if let former { record = former } else { record = try newRecord(name ?? usual) }
        if let name { record.name = name }
        record.isAccepted = false
        if record != former { try await store(record) }
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
            return (identity, try await mapping { () throws(VaultError) in try await accepted(record) }, isNew: true)
        }
        hosts.use(record.password)
        record = try await mapping { () throws(VaultError) in try await accepted(record) }
        do throws(HostFailure) { return (try await hosts.identity(), record, isNew: true) } catch {
            throw .hosts(error)
        }
    }

    /// Who this host is if its record was accepted before; nil if the invitation is still to be accepted.
    private func known(
        _ record: JoiningRecord, _ invitation: Secret?
    ) async throws(SharingFailure) -> HostIdentity? {
        hosts.use(record.password)
        do throws(HostFailure) {
            return try await identity(of: record)
        } catch {
            // If the database has lost what it had accepted, the invitation may still be good.
            guard error.meansNotAccepted, !record.isAccepted || invitation != nil else { throw .hosts(error) }
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
        do throws(CryptographyError) {
            return try record.published()
        } catch {
            throw .cryptography
        }
    }

    private func newRecord(_ name: String) throws(SharingFailure) -> JoiningRecord {
        do throws(CryptographyError) {
            return try JoiningRecord(name: name, role: place.role, random: random)
        } catch {
            throw .hosts(.cryptography)
        }
    }

    private func refusal(_ failure: HostFailure, _ invitation: Secret?) -> SharingFailure {
        switch failure {
        case .database(.unreachable(.noPassword)): .passwordNeeded
        case .database(.unreachable(.authentication)): invitation == nil ? .passwordNeeded : .passwordRefused
        default: .hosts(failure)
        }
    }

    private func accepted(_ record: JoiningRecord) async throws(VaultError) -> JoiningRecord {
        guard !record.isAccepted else { return record }
        var record = record
        record.isAccepted = true
        try await local.store(record.encoded(), in: slot)
        return record
    }

    private func store(_ record: JoiningRecord) async throws(SharingFailure) {
        try await mapping { () throws(VaultError) in try await local.store(record.encoded(), in: slot) }
    }

    private func mapping<Value>(
        _ body: () async throws(VaultError) -> Value
    ) async throws(SharingFailure) -> Value {
        do throws(VaultError) { return try await body() } catch { throw .vault(error) }
    }
}

extension VaultError {
    /// Why it cannot be known who this host is.
    public init(_ failure: HostFailure) {
        switch failure {
        case .database(let error): self.init(error)
        case .cryptography: self = .refused(.cryptography)
        case .noHost, .notJoined, .invitationUsed, .tooManyHosts, .nameTaken:
            self = .notJoined
        }
    }
}
