internal import RingbackBase

/// A user of a project, with everything that is pending for the user.
struct SupabaseUser {
    let id: String
    /// Lower-cased; empty without one.
    var email = ""
    /// Digits without `+`; empty without one.
    var phone = ""
    /// In plain text: no user here is real.
    var password: String?
    var appMetadata = JSONObject()
    var userMetadata = JSONObject()
    var identities: [SupabaseIdentity] = []
    var factors: [SupabaseFactor] = []
    var passkeys: [SupabasePasskey] = []
    var isAnonymous = false
    /// Signs in through an organization's provider. Only that provider may change the user.
    var isManaged = false
    let createdAt: SupabaseInstant
    var updatedAt: SupabaseInstant
    var emailConfirmedAt: SupabaseInstant?
    var phoneConfirmedAt: SupabaseInstant?
    var lastSignInAt: SupabaseInstant?
    var bannedUntil: SupabaseInstant?
    /// An address that is to replace the present one, and how many of the links have been opened.
    var newEmail = ""
    var emailChangeConfirmations = 0
    var newPhone = ""
    /// Codes and links that were sent, the newest of each kind.
    var sentCodes: [SentCode.Kind: SentCode] = [:]
    /// When the newest of each kind was sent; kept when it is used.
    var sentAt: [SentCode.Kind: SupabaseInstant] = [:]

    init(at now: SupabaseInstant, isAnonymous: Bool = false) {
        id = SupabaseText.uuid()
        createdAt = now
        updatedAt = now
        self.isAnonymous = isAnonymous
    }

    var isConfirmed: Bool { emailConfirmedAt != nil || phoneConfirmedAt != nil }

    var hasVerifiedFactor: Bool { factors.contains { $0.isVerified } }

    func isBanned(at now: Int) -> Bool { bannedUntil.map { now < $0.seconds } ?? false }

    /// Adds an identity, and lists its provider in the app's metadata.
    mutating func addIdentity(_ identity: SupabaseIdentity) {
        identities.append(identity)
        listProviders()
    }

    mutating func listProviders() {
        var names: [String] = []
        for identity in identities where !names.contains(identity.provider) { names.append(identity.provider) }
        let first = appMetadata["provider"]?.string
        if let name = first.flatMap({ names.contains($0) ? $0 : nil }) ?? names.first {
            appMetadata["provider"] = .string(name)
        }
        if !names.isEmpty { appMetadata["providers"] = .array(names.map(JSON.string)) }
    }

    /// Merges what the caller knows about the user; null removes a member.
    mutating func merge(_ data: JSONObject) {
        for member in data.members {
            let value: JSON? = member.value == .null ? Optional.none : member.value
            userMetadata[member.name] = value
        }
    }

    /// The user as every response shows it.
    var json: JSON {
        var members = JSONObject([
            .init("id", .string(id)), .init("aud", "authenticated"), .init("role", "authenticated"),
            .init("email", .string(email)),
        ])
        let optional: [(String, SupabaseInstant?)] = [
            ("email_confirmed_at", emailConfirmedAt), ("phone_confirmed_at", phoneConfirmedAt),
            ("confirmation_sent_at", sentAt[.confirmation] ?? sentAt[.phoneConfirmation]),
            ("confirmed_at", [emailConfirmedAt, phoneConfirmedAt].compactMap(\.self).min { $0.seconds < $1.seconds }),
            ("recovery_sent_at", sentAt[.recovery]),
            ("email_change_sent_at", newEmail.isEmpty ? nil : sentAt[.emailChangeNew]),
            ("phone_change_sent_at", newPhone.isEmpty ? nil : sentAt[.phoneChange]),
            ("reauthentication_sent_at", sentAt[.reauthentication]), ("last_sign_in_at", lastSignInAt),
            ("banned_until", bannedUntil),
        ]
        members["phone"] = .string(phone)
        for (name, instant) in optional { members[name] = instant.map { .string($0.text) } }
        if !newEmail.isEmpty { members["new_email"] = .string(newEmail) }
        if !newPhone.isEmpty { members["new_phone"] = .string(newPhone) }
        members["app_metadata"] = .object(appMetadata)
        members["user_metadata"] = .object(userMetadata)
        if !factors.isEmpty { members["factors"] = .array(factors.map(\.json)) }
        members["identities"] = .array(identities.map { $0.json(userID: id) })
        members["created_at"] = .string(createdAt.text)
        members["updated_at"] = .string(updatedAt.text)
        members["is_anonymous"] = .bool(isAnonymous)
        return .object(members)
    }

    /// The response to a sign-up with another user's confirmed address. It must not reveal that the address is known.
    func obfuscated(data: JSONObject, at now: SupabaseInstant) -> JSON {
        let provider = email.isEmpty ? "phone" : "email"
        return [
            "id": .string(SupabaseText.uuid()), "aud": "authenticated", "role": "", "email": .string(email),
            "phone": .string(phone), "confirmation_sent_at": .string(now.text),
            "app_metadata": ["provider": .string(provider), "providers": [.string(provider)]],
            "user_metadata": .object(data), "identities": [], "created_at": .string(now.text),
            "updated_at": .string(now.text), "is_anonymous": false,
        ]
    }
}

/// An identity of a user: a way to sign in.
struct SupabaseIdentity {
    /// The id by which it is removed.
    let identityID: String
    let provider: String
    /// The provider's identifier of the user.
    let subject: String
    var data: JSONObject
    let createdAt: SupabaseInstant
    var lastSignInAt: SupabaseInstant

    init(provider: String, subject: String, data: JSONObject, at now: SupabaseInstant) {
        identityID = SupabaseText.uuid()
        self.provider = provider
        self.subject = subject
        self.data = data
        createdAt = now
        lastSignInAt = now
    }

    func json(userID: String) -> JSON {
        var members = JSONObject([
            .init("identity_id", .string(identityID)), .init("id", .string(subject)),
            .init("user_id", .string(userID)), .init("identity_data", .object(data)),
            .init("provider", .string(provider)), .init("last_sign_in_at", .string(lastSignInAt.text)),
            .init("created_at", .string(createdAt.text)), .init("updated_at", .string(lastSignInAt.text)),
        ])
        if let email = data["email"] { members["email"] = email }
        return .object(members)
    }
}

/// A second factor.
struct SupabaseFactor {
    enum Kind: String {
        case totp, phone
        case webAuthn = "webauthn"

        var title: String {
            switch self {
            case .totp: "TOTP"
            case .phone: "Phone"
            case .webAuthn: "WebAuthn"
            }
        }
    }

    let id: String
    let kind: Kind
    let name: String
    let phone: String
    /// The shared secret of a `totp`.
    let secret: [UInt8]
    var isVerified = false
    let createdAt: SupabaseInstant
    var updatedAt: SupabaseInstant
    var lastChallengedAt: SupabaseInstant?
    /// The key of a `webauthn` that is verified, and the last answer by it.
    var credential: PasskeyCeremony.Credential?
    var lastResponse: JSON?

    var json: JSON {
        var members = JSONObject([
            .init("id", .string(id)), .init("created_at", .string(createdAt.text)),
            .init("updated_at", .string(updatedAt.text)), .init("status", isVerified ? "verified" : "unverified"),
        ])
        if !name.isEmpty { members["friendly_name"] = .string(name) }
        members["factor_type"] = .string(kind.rawValue)
        members["phone"] = .string(phone)
        members["last_challenged_at"] = lastChallengedAt.map { .string($0.text) } ?? .null
        members["last_webauthn_challenge_data"] = lastResponse
        return .object(members)
    }
}
