internal import StrictJSON

/// How users come to be, and what a confirmed address or number changes in them.
extension SupabaseUser {
    /// A user with an address that is to be confirmed.
    init(email: String, password: String?, data: JSONObject, at now: Int) {
        self.init(at: .next(now))
        self.email = email
        self.password = password
        merge(data)
        addOwnIdentity("email", email, at: now)
        for name in ["sub", "email", "email_verified", "phone_verified"] {
            userMetadata[name] = identities.first?.data[name]
        }
    }

    /// A user with a number that is to be confirmed.
    init(phone: String, password: String?, data: JSONObject, at now: Int) {
        self.init(at: .next(now))
        self.phone = phone
        self.password = password
        merge(data)
        addOwnIdentity("phone", phone, at: now)
    }

    /// The identity of the user's own address (`email`) or number (`phone`).
    private mutating func addOwnIdentity(_ provider: String, _ value: String, at now: Int) {
        guard !identities.contains(where: { $0.provider == provider }) else { return }
        let data = JSONObject([
            .init("sub", .string(id)), .init(provider, .string(value)), .init("email_verified", false),
            .init("phone_verified", false),
        ])
        addIdentity(SupabaseIdentity(provider: provider, subject: id, data: data, at: .next(now)))
    }

    mutating func confirmEmail(at now: Int) {
        if emailConfirmedAt == nil { emailConfirmedAt = .next(now) }
        isAnonymous = false
        sentCodes[.confirmation] = nil
        for index in identities.indices where identities[index].provider == "email" {
            identities[index].data["email_verified"] = true
        }
        userMetadata["email_verified"] = true
    }

    mutating func confirmPhone(at now: Int) {
        if phoneConfirmedAt == nil { phoneConfirmedAt = .next(now) }
        isAnonymous = false
        sentCodes[.phoneConfirmation] = nil
        for index in identities.indices where identities[index].provider == "phone" {
            identities[index].data["phone_verified"] = true
        }
    }

    /// The new address replaces the old one.
    mutating func changeEmail(at now: Int) {
        email = newEmail
        newEmail = ""
        emailChangeConfirmations = 0
        sentCodes[.emailChangeCurrent] = nil
        sentCodes[.emailChangeNew] = nil
        addOwnIdentity("email", email, at: now)
        for index in identities.indices where identities[index].provider == "email" {
            identities[index].data["email"] = .string(email)
        }
        userMetadata["email"] = .string(email)
        emailConfirmedAt = nil
        confirmEmail(at: now)
    }

    mutating func changePhone(at now: Int) {
        phone = newPhone
        newPhone = ""
        sentCodes[.phoneChange] = nil
        addOwnIdentity("phone", phone, at: now)
        for index in identities.indices where identities[index].provider == "phone" {
            identities[index].data["phone"] = .string(phone)
        }
        phoneConfirmedAt = nil
        confirmPhone(at: now)
    }
}
