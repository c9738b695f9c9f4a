public import RingbackBase

/// A user of a project. Only its id is required; unknown members are kept.
public struct SupabaseUser: SupabaseObject, Equatable {
    /// The user's UUID, which is the subject of the session.
    public let id: String
    public let email: String?
    /// With a plus sign, although the server stores it without.
    public let phone: String?
    /// A new address that is not confirmed yet.
    public let newEmail: String?
    /// A new number whose code was not entered yet, with a plus sign.
    public let newPhone: String?
    /// Empty for the invented user of a sign-up with an existing address.
    public let role: String
    /// Written by the user, its providers and its apps.
    public let userMetadata: JSONObject
    /// Nil if the response does not contain them; the server then sends null.
    public let identities: [Identity]?
    public let factors: [Factor]
    private let document: JSONObject
    /// Each change is recorded, and a malicious project could otherwise fill the records.
    static let mostIdentities = 64

    /// A document of the server or one of ours (``json``); nil without a valid `id`.
    public init?(reading document: JSONObject) {
        guard let id = document["id"]?.string, (1...255).contains(id.utf8.count),
            id.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        self.id = id
        email = document.word("email")
        phone = document.word("phone").map(SupabaseUser.outward)
        newEmail = document.word("new_email")
        newPhone = document.word("new_phone").map(SupabaseUser.outward)
        role = document["role"]?.string ?? ""
        userMetadata = document["user_metadata"]?.object ?? JSONObject()
        identities = document["identities"]?.array?.prefix(SupabaseUser.mostIdentities).compactMap {
            $0.object.flatMap(Identity.init(reading:))
        }
        factors = document["factors"]?.array?.compactMap { $0.object.flatMap(Factor.init(reading:)) } ?? []
        self.document = document
    }

    public static var absences: (object: String, list: String) { ("a user without id", "no list of users") }
    /// The highest level that a session can reach.
    public var nextAssurance: AssuranceLevel { factors.contains { $0.isVerified } ? .aal2 : .aal1 }
    /// True for the invented user that the server returns for a sign-up with an existing user's address.
    public var isStandIn: Bool { identities?.isEmpty ?? false }

    public var name: String? {
        let whole = ["full_name", "name", "display_name", "preferred_username", "user_name"].lazy.compactMap {
            userMetadata.word($0)
        }
        let parts = [userMetadata.word("given_name"), userMetadata.word("family_name")].compactMap { $0 }
        return whole.first ?? (parts.isEmpty ? nil : parts.joined(separator: " "))
    }

    /// In the socket API's form: with plus signs in phone numbers and with `name`, without secrets and without members
    /// that are internal to the server.
    public var json: JSONObject {
        var json = JSONObject(document.members.filter { !SupabaseUser.isPrivate($0.name) && $0.value != .null })
        for name in ["email", "phone", "new_email", "new_phone", "role"] where document[name]?.string == "" {
            json[name] = nil
        }
        if let phone { json["phone"] = .string(phone) }
        if let newPhone { json["new_phone"] = .string(newPhone) }
        if let name { json["name"] = .string(name) }
        json["identities"] = identities.map { .array($0.map { .object($0.json) }) }
        if document["factors"] != nil { json["factors"] = .array(factors.map { .object($0.json) }) }
        return json
    }

    /// Members that are only in responses to administrators or in the server's table of users. They must never be
    /// passed on, even if a response contains them.
    private static func isPrivate(_ name: String) -> Bool {
        name.hasSuffix("token") || name.hasSuffix("password") || name.hasSuffix("_otp") || name.hasSuffix("secret")
            || name == "action_link" || name == "verification_type"
    }

    static func outward(_ phone: String) -> String { phone.hasPrefix("+") ? phone : "+\(phone)" }
    public static func == (left: SupabaseUser, right: SupabaseUser) -> Bool { left.document == right.document }
}

extension JSONObject {
    /// Nil if it is missing or empty. The server sends an empty text for a missing value.
    func word(_ name: String) -> String? { self[name]?.string.flatMap { $0.isEmpty ? nil : $0 } }

    /// Those without a text are left out.
    func words(_ names: String...) -> JSONObject {
        JSONObject(names.compactMap { name in word(name).map { Member(name, .string($0)) } })
    }
}

/// An account at a provider that belongs to a user.
public struct Identity: Sendable, Equatable {
    /// The UUID that ``SupabaseRequest/removeIdentity(_:)`` takes.
    public let identityID: String
    /// `google`, `apple`, `email`, `phone` ...
    public let provider: String
    public let email: String?
    /// Times are as the server writes them (RFC 3339).
    public let createdAt: String?
    public let lastSignInAt: String?
    private let document: JSONObject

    /// Nil without `identity_id` and `provider`.
    public init?(reading document: JSONObject) {
        guard let identityID = document.word("identity_id"), let provider = document.word("provider") else {
            return nil
        }
        self.identityID = identityID
        self.provider = provider
        email = document.word("email") ?? document["identity_data"]?.object?.word("email")
        createdAt = document.word("created_at")
        lastSignInAt = document.word("last_sign_in_at")
        self.document = document
    }

    /// In the socket API's form.
    public var json: JSONObject { document }
}

/// The stored part of an identity, by which it can still be reported after it was removed.
public struct KnownIdentity: Sendable, Equatable {
    public let identityID: String
    public let provider: String

    public init(identityID: String, provider: String) {
        self.identityID = identityID
        self.provider = provider
    }
}

/// The server links an account with the same confirmed address without reporting it: only a comparison finds that.
public struct IdentityChange: Sendable, Equatable {
    public let linked: [Identity]
    public let unlinked: [KnownIdentity]
    public var isEmpty: Bool { linked.isEmpty && unlinked.isEmpty }

    /// Empty if one of them does not contain the identities.
    public init(from earlier: SupabaseUser, to later: SupabaseUser) {
        self.init(from: earlier.id == later.id ? earlier.knownIdentities : nil, to: later)
    }

    /// From stored identities to those of a user document.
    public init(from before: [KnownIdentity]?, to later: SupabaseUser) {
        guard let before, let after = later.identities else {
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
    /// In Unix seconds.
    public var createdAtSeconds: Int? { createdAt.flatMap(Timestamp.seconds(of:)) }
}

extension SupabaseUser {
    /// In Unix seconds.
    var createdAt: Int? { json["created_at"]?.string.flatMap(Timestamp.seconds(of:)) }
    public var lastSignInAt: Int? { json["last_sign_in_at"]?.string.flatMap(Timestamp.seconds(of:)) }

    /// Nil if the document does not contain them.
    public var knownIdentities: [KnownIdentity]? {
        identities?.map { KnownIdentity(identityID: $0.identityID, provider: $0.provider) }
    }
}

/// The user's name as Apple sends it: only once, at the first sign-in, and not in the ID token.
public struct AppleName: Sendable, Equatable {
    public let given: String?
    public let family: String?
    /// If it was given as one text.
    private let full: String?

    /// Nil if all are empty.
    public init?(given: String?, family: String?, full: String? = nil) {
        self.given = given.flatMap(AppleName.cleaned)
        self.family = family.flatMap(AppleName.cleaned)
        self.full = full.flatMap(AppleName.cleaned)
        guard self.given != nil || self.family != nil || self.full != nil else { return nil }
    }

    /// Of a user's metadata.
    public static let members: Set<String> = ["full_name", "given_name", "family_name"]

    /// From a user's metadata; nil if there is none. Throws for `data` if there are other members.
    public init?(parsing data: JSONObject) throws(FieldError) {
        for member in data.members {
            guard AppleName.members.contains(member.name), member.value.string != nil else {
                throw FieldError(
                    field: "data",
                    reason: "with an ID token only a name is allowed that the token does not contain: full_name, "
                        + "given_name and family_name, each a string")
            }
        }
        self.init(
            given: data["given_name"]?.string, family: data["family_name"]?.string, full: data["full_name"]?.string)
    }

    /// From what Apple posts with the code: `{"name": {"firstName": …, "lastName": …}}`; nil without a name.
    public init?(reading user: JSONObject) {
        self.init(given: user["name"]?["firstName"]?.string, family: user["name"]?["lastName"]?.string)
    }

    /// For ``UserChanges/data``; nil if the user has a name already.
    public func data(for user: SupabaseUser) -> JSONObject? {
        let names = ["full_name", "name", "given_name", "family_name"]
        guard !names.contains(where: { user.userMetadata.word($0) != nil }) else { return nil }
        let whole = full ?? [given, family].compactMap { $0 }.joined(separator: " ")
        return JSONObject([
            "full_name": .string(whole), "given_name": .optional(given), "family_name": .optional(family),
        ])
    }

    private static func cleaned(_ text: String) -> String? {
        let words = text.split { $0.isWhitespace }.joined(separator: " ")
        return words.isEmpty || words.utf8.count > 200 ? nil : words
    }
}

/// What a user has allowed an OAuth client of the project, whose own OAuth server asks once for each client.
public struct Consent: SupabaseObject {
    /// In the socket API's form.
    public let json: JSONObject

    /// Nil without the client's id.
    public init?(reading document: JSONObject) {
        guard let client = document["client"]?.object, let id = client.word("id") else { return nil }
        json = JSONObject([
            "client_id": .string(id), "client_name": .optional(client.word("name")),
            "client_uri": .optional(client.word("uri")),
            "scopes": .array((document["scopes"]?.array ?? []).filter { $0.string != nil }),
            "granted_at": .optional(document.word("granted_at")),
        ])
    }

    public static var absences: (object: String, list: String) { ("a consent without client", "no list of consents") }
}
