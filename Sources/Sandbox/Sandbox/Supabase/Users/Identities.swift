internal import LocalHTTP
internal import RingbackBase

/// A user's claims at an external provider.
struct SupabaseClaims {
    let provider: String
    let subject: String
    /// Verified by the provider; empty without one.
    let email: String
    let data: JSONObject

    /// A user's claims at a provider, which is always the issuer. Apple's ID tokens contain no name.
    init(_ person: SandboxUser, at provider: String, issuer: String, showsName: Bool) {
        var data = JSONObject([
            .init("iss", .string(issuer)), .init("sub", .string(person.subject)),
            .init("provider_id", .string(person.subject)), .init("email", .string(person.email)),
            .init("email_verified", true), .init("phone_verified", false),
        ])
        if showsName {
            data["name"] = .string(person.displayName)
            data["full_name"] = .string(person.displayName)
        }
        if provider == "github" { data["user_name"] = .string(person.name) }
        self.provider = provider
        subject = person.subject
        email = person.email
        self.data = data
    }
}

extension SupabaseUser {
    fileprivate mutating func add(_ claims: SupabaseClaims, at now: Int) {
        addIdentity(
            SupabaseIdentity(provider: claims.provider, subject: claims.subject, data: claims.data, at: .next(now)))
        merge(claims.data)
    }
}

/// Which user an external identity belongs to, and how identities come and go.
extension SupabaseUsers {
    /// The id of an identity's user: the one to whom it is linked now, if a user is named, else the one who signs in.
    mutating func user(
        for claims: SupabaseClaims, linkingTo target: String?, _ call: SupabaseCall
    ) throws(SupabaseError) -> String {
        guard let target else { return try user(for: claims, call.settings, at: call.now) }
        try link(claims, to: target, at: call.now)
        return target
    }

    /// The id of an identity's user: the one who has it, the one who has its verified address, or a new one.
    private mutating func user(
        for claims: SupabaseClaims, _ settings: SupabaseSettings, at now: Int
    ) throws(SupabaseError) -> String {
        let moment = SupabaseInstant.next(now)
        if var known = user(provider: claims.provider, subject: claims.subject) {
            if known.isBanned(at: now) { throw SupabaseError(403, "user_banned", "User is banned") }
            for index in known.identities.indices where known.identities[index].provider == claims.provider {
                known.identities[index].data = claims.data
                known.identities[index].lastSignInAt = moment
            }
            known.merge(claims.data)
            save(known, at: now)
            return known.id
        }
        let isManaged = claims.provider.hasPrefix("sso:")
        if !isManaged, var known = user(email: claims.email) {
            if known.isBanned(at: now) { throw SupabaseError(403, "user_banned", "User is banned") }
            // An address that was never confirmed does not show who asked for the account.
            if known.emailConfirmedAt == nil {
                known.identities = []
                known.password = nil
                known.appMetadata = JSONObject()
            }
            known.add(claims, at: now)
            known.confirmEmail(at: now)
            save(known, at: now)
            return known.id
        }
        guard settings.allowsSignUp else {
            throw SupabaseError(422, "signup_disabled", "Signups not allowed for this instance")
        }
        if let refusal = settings.userHook { throw refusal }
        var user = SupabaseUser(at: moment)
        user.isManaged = isManaged
        user.email = claims.email
        user.add(claims, at: now)
        if !user.email.isEmpty { user.confirmEmail(at: now) }
        save(user, at: now)
        return user.id
    }

    /// Links a further identity to a signed-in user.
    private mutating func link(_ claims: SupabaseClaims, to userID: String, at now: Int) throws(SupabaseError) {
        guard var user = self[userID] else {
            throw SupabaseError(422, "user_not_found", "User from sub claim in JWT does not exist")
        }
        if let owner = self.user(provider: claims.provider, subject: claims.subject) {
            throw SupabaseError(
                422, "identity_already_exists",
                owner.id == userID ? "Identity is already linked" : "Identity is already linked to another user")
        }
        if !claims.email.isEmpty, user.email.isEmpty {
            guard self.user(email: claims.email) == nil else {
                throw SupabaseError(
                    400, "email_exists", "A user with this email address has already been registered")
            }
            user.email = claims.email
        }
        user.add(claims, at: now)
        if user.email == claims.email, !claims.email.isEmpty { user.confirmEmail(at: now) }
        user.isAnonymous = false
        save(user, at: now)
    }
}

extension SupabaseAccounts {
    /// `DELETE /user/identities/{id}`.
    mutating func unlink(_ call: SupabaseCall) throws(SupabaseError) -> ServerResponse {
        var user = try authenticate(call).user
        try call.checkLinking()
        let id = call.parts[2]
        guard SupabaseText.isUUID(id) else { throw .validation("identity_id must be an UUID", status: 404) }
        guard user.identities.count > 1 else {
            throw SupabaseError(
                422, "single_identity_not_deletable", "User must have at least 1 identity after unlinking")
        }
        guard let index = user.identities.firstIndex(where: { $0.identityID == id }) else {
            throw SupabaseError(422, "identity_not_found", "Identity doesn't exist")
        }
        let gone = user.identities.remove(at: index)
        user.listProviders()
        switch gone.provider {
        case "phone":
            user.phone = ""
            user.phoneConfirmedAt = nil
        default:
            // The user's address must be that of an identity that is left.
            let addresses = user.identities.compactMap { $0.data["email"]?.string }
            if !user.email.isEmpty, !addresses.contains(user.email) {
                let next = addresses.first ?? ""
                guard next.isEmpty || users.user(email: next) == nil else {
                    throw SupabaseError(
                        422, "email_conflict_identity_not_deletable",
                        "Unable to unlink identity due to email conflict")
                }
                user.email = next
                if next.isEmpty { user.emailConfirmedAt = nil }
            }
        }
        users.save(user, at: call.now)
        return SupabaseResponses.json([:])
    }
}

extension SupabaseCall {
    func checkLinking() throws(SupabaseError) {
        guard settings.allowsLinking else {
            throw SupabaseError(404, "manual_linking_disabled", "Manual linking is disabled")
        }
    }
}

/// What users have allowed the clients of the project's own OAuth server. The sandbox has this list of that server, and
/// no authorization endpoint.
struct SupabaseConsents {
    private struct Consent {
        let userID: String
        let clientID: String
        let name: String
        let scopes: [String]
        let grantedAt = "2026-01-02T03:04:05Z"

        var json: JSON {
            [
                "client": [
                    "id": .string(clientID), "name": .string(name), "uri": "https://client.example",
                    "logo_uri": "https://client.example/logo.png",
                ],
                "scopes": .array(scopes.map(JSON.string)), "granted_at": .string(grantedAt),
            ]
        }
    }

    /// Nil while the project's OAuth server is off.
    private var consents: [Consent]?

    /// `GET` and `DELETE /user/oauth/grants`.
    mutating func answer(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts
    ) throws(SupabaseError) -> ServerResponse {
        guard let all = consents else {
            throw SupabaseError(404, "feature_disabled", "OAuth server is disabled")
        }
        let user = try accounts.authenticate(call).user
        guard call.method == "DELETE" else {
            return SupabaseResponses.json(.array(all.filter { $0.userID == user.id }.map(\.json)))
        }
        guard let clientID = call.query("client_id") else { throw .validation("client_id query parameter is required") }
        guard SupabaseText.isUUID(clientID) else { throw .validation("Invalid client_id format") }
        guard let index = all.firstIndex(where: { $0.userID == user.id && $0.clientID == clientID.lowercased() }) else {
            throw SupabaseError(404, "oauth_consent_not_found", "No active grant found for this client")
        }
        consents?.remove(at: index)
        accounts.sessions.end { $0.userID == user.id && $0.clientID == clientID.lowercased() }
        return SupabaseResponses.empty(204)
    }

    /// The control document's `consents`; false for another key.
    mutating func set(
        _ key: String, to member: JSONObject.Member, _ users: SupabaseUsers
    ) throws(ControlDocument.Mistake) -> Bool {
        guard key == "consents" else { return false }
        guard !member.isNull else {
            consents = nil
            return true
        }
        consents = try member.each { item throws(ControlDocument.Mistake) in
            try item.allow(["user", "client_id", "name", "scopes"])
            let address = try item.required("user").string()
            let clientID = try item.required("client_id").string()
            let scopes = try item.optional("scopes")?.each { scope throws(ControlDocument.Mistake) in
                try scope.string()
            }
            return Consent(
                userID: users.user(email: address)?.id ?? "", clientID: clientID,
                name: try item.optional("name")?.string() ?? "", scopes: scopes ?? ["email"])
        }
        return true
    }
}
