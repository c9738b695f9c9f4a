internal import Encodings
public import StrictJSON

/// An account at a provider that belongs to a user.
public struct Identity: Sendable, Equatable {
    /// The UUID that ``SupabaseProject/removeIdentity(_:bearer:)`` takes.
    public let identityID: String
    /// `google`, `apple`, `email`, `phone` ...
    public let provider: String
    /// The provider's subject.
    public let providerSubject: String
    public let email: String?
    /// As the server writes it (RFC 3339).
    public let createdAt: String?
    /// As the server writes it (RFC 3339).
    public let lastSignInAt: String?
    private let document: JSONObject

    /// Reads an identity of a user document; nil without `identity_id` and `provider`.
    public init?(reading document: JSONObject) {
        guard let identityID = document.word("identity_id"), let provider = document.word("provider") else {
            return nil
        }
        self.identityID = identityID
        self.provider = provider
        providerSubject = document["id"]?.string ?? ""
        email = document.word("email") ?? document["identity_data"]?.object?.word("email")
        createdAt = document.word("created_at")
        lastSignInAt = document.word("last_sign_in_at")
        self.document = document
    }

    /// The identity in the socket API's form.
    public var json: JSONObject { document }
}

/// The part of an identity that is stored, so that an identity can still be reported after it was removed.
public struct KnownIdentity: Sendable, Equatable {
    public let identityID: String
    public let provider: String

    public init(identityID: String, provider: String) {
        self.identityID = identityID
        self.provider = provider
    }
}

/// The difference between a user's identities at two times. The server links an account with the same confirmed address
/// without reporting it, so the link can only be found by comparison.
public struct IdentityChange: Sendable, Equatable {
    public let linked: [Identity]
    public let unlinked: [KnownIdentity]

    /// True if nothing changed.
    public var isEmpty: Bool { linked.isEmpty && unlinked.isEmpty }

    private init() { (linked, unlinked) = ([], []) }

    /// The change between two documents of the same user; empty if one of them does not contain the identities.
    public init(from earlier: SupabaseUser, to later: SupabaseUser) {
        guard earlier.id == later.id, let before = earlier.knownIdentities else {
            self.init()
            return
        }
        self.init(from: before, to: later)
    }

    /// The change from earlier, stored identities to those of a user document.
    public init(from before: [KnownIdentity], to later: SupabaseUser) {
        guard let after = later.identities else {
            (linked, unlinked) = ([], [])
            return
        }
        linked = after.filter { identity in !before.contains { $0.identityID == identity.identityID } }
        unlinked = before.filter { identity in !after.contains { $0.identityID == identity.identityID } }
    }

    /// The identities that were linked before this user was first seen: those at other providers that the server
    /// created later than the user. A sign-up creates both at the same time, by the server's clock. Identities of the
    /// user's own address or number are excluded, because the server adds them to old users too.
    public init(onFirstSightOf user: SupabaseUser) {
        unlinked = []
        guard let made = user.createdAt else {
            linked = []
            return
        }
        linked = (user.identities ?? []).filter { identity in
            !IdentityChange.own.contains(identity.provider)
                && identity.createdAtSeconds.map { $0 > made + IdentityChange.breath } ?? false
        }
    }

    private static let own: Set<String> = ["email", "phone"]
    /// How long a sign-up may take on the server, including its hooks, in seconds.
    private static let breath = 10
}

extension Identity {
    /// When the server created it, in Unix seconds.
    public var createdAtSeconds: Int? { createdAt.flatMap(Timestamp.seconds(of:)) }
}

extension SupabaseUser {
    /// When the server created the user, in Unix seconds.
    var createdAt: Int? { json["created_at"]?.string.flatMap(Timestamp.seconds(of:)) }

    /// The user's last sign-in in Unix seconds.
    public var lastSignInAt: Int? { json["last_sign_in_at"]?.string.flatMap(Timestamp.seconds(of:)) }

    /// The identities to store; nil if the document does not contain them.
    public var knownIdentities: [KnownIdentity]? {
        identities?.map { KnownIdentity(identityID: $0.identityID, provider: $0.provider) }
    }
}
