internal import RingbackBase

struct SupabaseUser: JSONConvertible {
    let id = SupabaseText.uuid()
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
        createdAt = now
        updatedAt = now
        self.isAnonymous = isAnonymous
    }

    var isConfirmed: Bool { emailConfirmedAt != nil || phoneConfirmedAt != nil }
    var hasVerifiedFactor: Bool { factors.contains { $0.isVerified } }
    func isBanned(at now: Int) -> Bool { bannedUntil.map { now < $0.seconds } ?? false }

    func checkBan(at now: Int, status: Int = 403) throws {
        try require(!isBanned(at: now), status, "user_banned", "User is banned")
    }

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
        if !names.isEmpty { appMetadata["providers"] = names.jsonValue }
    }

    /// Merges what the caller knows about the user; null removes a member.
    mutating func merge(_ data: JSONObject) {
        // `nil` would be a JSON null in a conditional expression.
        for member in data.members { userMetadata[member.name] = member.isNull ? JSON?.none : member.value }
    }

    var jsonValue: JSON {
        let confirmedAt = [emailConfirmedAt, phoneConfirmedAt].compactMap(\.self).min { $0.seconds < $1.seconds }
        return JSON.object([
            "id": id, "aud": "authenticated", "role": "authenticated", "email": email, "phone": phone,
            "email_confirmed_at": emailConfirmedAt, "phone_confirmed_at": phoneConfirmedAt,
            "confirmation_sent_at": sentAt[.confirmation] ?? sentAt[.phoneConfirmation], "confirmed_at": confirmedAt,
            "recovery_sent_at": sentAt[.recovery],
            "email_change_sent_at": newEmail.isEmpty ? nil : sentAt[.emailChangeNew],
            "phone_change_sent_at": newPhone.isEmpty ? nil : sentAt[.phoneChange],
            "reauthentication_sent_at": sentAt[.reauthentication], "last_sign_in_at": lastSignInAt,
            "banned_until": bannedUntil, "new_email": newEmail.isEmpty ? nil : newEmail,
            "new_phone": newPhone.isEmpty ? nil : newPhone, "app_metadata": appMetadata, "user_metadata": userMetadata,
            "factors": factors.isEmpty ? nil : factors, "identities": identities.map { $0.members(userID: id) },
            "created_at": createdAt, "updated_at": updatedAt, "is_anonymous": isAnonymous,
        ])
    }

    /// The response to a sign-up with another user's confirmed address. It must not reveal that the address is known.
    func obfuscated(data: JSONObject, at now: SupabaseInstant) -> JSONObject {
        let provider = email.isEmpty ? "phone" : "email"
        return [
            "id": SupabaseText.uuid(), "aud": "authenticated", "role": "", "email": email, "phone": phone,
            "confirmation_sent_at": now,
            "app_metadata": ["provider": provider, "providers": [provider]] as JSONObject, "user_metadata": data,
            "identities": [String](), "created_at": now, "updated_at": now, "is_anonymous": false,
        ] as JSONObject
    }
}

struct SupabaseIdentity {
    let identityID = SupabaseText.uuid()
    let provider: String
    let subject: String
    var data: JSONObject
    let createdAt: SupabaseInstant
    var lastSignInAt: SupabaseInstant

    init(provider: String, subject: String, data: JSONObject, at now: SupabaseInstant) {
        self.provider = provider
        self.subject = subject
        self.data = data
        createdAt = now
        lastSignInAt = now
    }

    func members(userID: String) -> JSONObject {
        [
            "identity_id": identityID, "id": subject, "user_id": userID, "identity_data": data, "provider": provider,
            "last_sign_in_at": lastSignInAt, "created_at": createdAt, "updated_at": lastSignInAt,
            "email": data["email"],
        ] as JSONObject
    }
}

struct SupabaseFactor: JSONConvertible {
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
    let secret: [UInt8]
    var isVerified = false
    let createdAt: SupabaseInstant
    var updatedAt: SupabaseInstant
    var lastChallengedAt: SupabaseInstant?
    /// The key of a `webauthn` that is verified, and the last answer by it.
    var credential: PasskeyCeremony.Credential?
    var lastResponse: JSONObject?

    var jsonValue: JSON {
        .object([
            "id": id, "created_at": createdAt, "updated_at": updatedAt,
            "status": isVerified ? "verified" : "unverified", "friendly_name": name.isEmpty ? nil : name,
            "factor_type": kind.rawValue, "phone": phone,
            "last_challenged_at": lastChallengedAt?.jsonValue ?? JSON.null,
            "last_webauthn_challenge_data": lastResponse,
        ])
    }
}
