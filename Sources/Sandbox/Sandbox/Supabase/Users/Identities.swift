internal import LocalHTTP
internal import RingbackBase

struct SupabaseClaims {
    let provider: String
    let subject: String
    /// Verified by the provider; empty without one.
    let email: String
    let data: JSONObject

    /// A user's claims at a provider, which is always the issuer. Apple's ID tokens contain no name.
    init(_ person: SandboxUser, at provider: String, issuer: String, showsName: Bool) {
        let name = showsName ? person.displayName : nil
        data =
            [
                "iss": issuer, "sub": person.subject, "provider_id": person.subject, "email": person.email,
                "email_verified": true, "phone_verified": false, "name": name, "full_name": name,
                "user_name": provider == "github" ? person.name : nil,
            ] as JSONObject
        self.provider = provider
        subject = person.subject
        email = person.email
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
    mutating func user(for claims: SupabaseClaims, linkingTo target: String?, _ call: SupabaseCall) throws -> String {
        guard let target else { return try user(for: claims, call.settings, at: call.now) }
        try link(claims, to: target, at: call.now)
        return target
    }

    /// The id of an identity's user: the one who has it, the one who has its verified address, or a new one.
    private mutating func user(for claims: SupabaseClaims, _ settings: SupabaseSettings, at now: Int) throws -> String {
        let moment = SupabaseInstant.next(now)
        if var known = user(provider: claims.provider, subject: claims.subject) {
            try known.checkBan(at: now)
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
            try known.checkBan(at: now)
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
        try require(settings.allowsSignUp, 422, "signup_disabled", "Signups not allowed for this instance")
        var user = SupabaseUser(at: moment)
        user.isManaged = isManaged
        user.email = claims.email
        user.add(claims, at: now)
        if !user.email.isEmpty { user.confirmEmail(at: now) }
        save(user, at: now)
        return user.id
    }

    private mutating func link(_ claims: SupabaseClaims, to userID: String, at now: Int) throws {
        var user = try unwrap(self[userID], 422, "user_not_found", "User from sub claim in JWT does not exist")
        let owner = self.user(provider: claims.provider, subject: claims.subject)
        try require(
            owner == nil, 422, "identity_already_exists",
            owner?.id == userID ? "Identity is already linked" : "Identity is already linked to another user")
        if !claims.email.isEmpty, user.email.isEmpty {
            try require(
                self.user(email: claims.email) == nil, 400, "email_exists",
                "A user with this email address has already been registered")
            user.email = claims.email
        }
        user.add(claims, at: now)
        if user.email == claims.email, !claims.email.isEmpty { user.confirmEmail(at: now) }
        user.isAnonymous = false
        save(user, at: now)
    }
}

extension SupabaseProject {
    mutating func unlink(_ call: SupabaseCall) throws -> ServerResponse {
        var user = try authenticate(call).user
        try call.checkLinking()
        let id = call.parts[2]
        try require(SupabaseText.isUUID(id), "identity_id must be an UUID", status: 404)
        try require(
            user.identities.count > 1, 422, "single_identity_not_deletable",
            "User must have at least 1 identity after unlinking")
        let index = try unwrap(
            user.identities.firstIndex { $0.identityID == id }, 422, "identity_not_found", "Identity doesn't exist")
        let gone = user.identities.remove(at: index)
        user.listProviders()
        if gone.provider == "phone" {
            user.phone = ""
            user.phoneConfirmedAt = nil
        } else {
            // The user's address must be that of an identity that is left.
            let addresses = user.identities.compactMap { $0.data["email"]?.string }
            if !user.email.isEmpty, !addresses.contains(user.email) {
                let next = addresses.first ?? ""
                try require(
                    next.isEmpty || users.user(email: next) == nil, 422, "email_conflict_identity_not_deletable",
                    "Unable to unlink identity due to email conflict")
                user.email = next
                if next.isEmpty { user.emailConfirmedAt = nil }
            }
        }
        users.save(user, at: call.now)
        return SupabaseResponses.json([:])
    }
}

/// What a user has allowed a client of the project's own OAuth server, of which the sandbox has only this list.
struct SupabaseConsent: JSONConvertible {
    let userID: String
    let clientID: String
    let name: String
    let scopes: [String]

    var jsonValue: JSON {
        let client: JSONObject = [
            "id": clientID, "name": name, "uri": "https://client.example",
            "logo_uri": "https://client.example/logo.png",
        ]
        return .object(["client": client, "scopes": scopes, "granted_at": "2026-01-02T03:04:05Z"])
    }
}

extension SupabaseProject {
    private func ownConsents(_ call: SupabaseCall) throws -> [SupabaseConsent] {
        guard let consents else { throw SupabaseError.serverIsOff }
        let user = try authenticate(call).user
        return consents.filter { $0.userID == user.id }
    }

    func grants(_ call: SupabaseCall) throws -> ServerResponse { SupabaseResponses.json(value: try ownConsents(call)) }

    mutating func revokeGrant(_ call: SupabaseCall) throws -> ServerResponse {
        let own = try ownConsents(call)
        let clientID = try unwrap(call.query("client_id"), "client_id query parameter is required").lowercased()
        try require(SupabaseText.isUUID(clientID), "Invalid client_id format")
        let gone = try unwrap(
            own.first { $0.clientID == clientID }, 404, "oauth_consent_not_found",
            "No active grant found for this client")
        consents?.removeAll { $0.userID == gone.userID && $0.clientID == clientID }
        sessions.end { $0.userID == gone.userID && $0.clientID == clientID }
        return SupabaseResponses.empty(204)
    }
}
