internal import Cryptography
public import Secrets
internal import SessionVault

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

/// What the database knows of the host that asks.
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

    /// The owner's identity as a membership has it.
    var ownerID: String { Hex.text(owner) }
}

/// A host of the same owner.
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

/// Why hosts could not be changed or listed.
public enum HostFailure: Error, Sendable, Equatable {
    case database(RowError)
    /// The role belongs to no host, or to one that was removed.
    case noHost
    /// The invitation has not been accepted yet.
    case notJoined
    /// The invitation was accepted by another host.
    case invitationUsed
    /// The owner has as many hosts as an owner may have.
    case tooManyHosts
    /// Another host of the owner has this name.
    case nameTaken
    /// The cryptography library failed here.
    case cryptography

    /// The role has not accepted its invitation with the password that was used.
    var meansNotAccepted: Bool {
        switch self {
        case .database(.unreachable(.authentication)), .database(.unreachable(.noPassword)), .notJoined: true
        default: false
        }
    }
}

/// How hosts of an owner come and go. Each function asks as one host, and reaches only hosts of the same owner.
public protocol SharedHosts: Sendable {
    /// The password of this host's role from now on; nil for what the configuration says.
    func use(_ password: Secret?)
    /// Accepts an invitation: names the host and replaces the password of its role by `password`. The same call again
    /// changes nothing. Throws `invitationUsed`, `nameTaken` (1 to 64 bytes), and ``HostFailure`` for everything else.
    ///
    /// - Parameter invitation: the password of the invitation; nil for what the configuration says.
    func accept(
        as name: String, password: Secret, publicKey: [UInt8], invitation: Secret?
    ) async throws(HostFailure)
    /// What the database knows of this host. Throws `noHost` after it was removed.
    func identity() async throws(HostFailure) -> HostIdentity
    /// All hosts of the owner, those that were invited last.
    func hosts() async throws(HostFailure) -> [Host]
    /// Makes a login role for one more host, which has `lasting` (a minute to a week) to accept it. Throws
    /// `tooManyHosts`.
    func invite(lasting: Duration) async throws(HostFailure) -> Invitation
    /// Leaves the data key, sealed for that host, for a host that has joined. False if there is none.
    func give(key wrapped: [UInt8], to role: String) async throws(HostFailure) -> Bool
    /// Removes a host: its connections end, its role cannot log in and is dropped. False if the owner has no such host.
    func remove(host role: String) async throws(HostFailure) -> Bool
}

/// Where the rows are.
public struct DatabasePlace: Sendable, Equatable {
    /// For a status, without a password.
    public let shown: String
    /// This host's role.
    public let role: String
    /// The database's name.
    public let database: String

    public init(shown: String, role: String, database: String) {
        self.shown = shown
        self.role = role
        self.database = database
    }

    /// What the local vault's records about the database are bound to. The server's names may change.
    var binding: String { "\(role) \(database)" }
}
