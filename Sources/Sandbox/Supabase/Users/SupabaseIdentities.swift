internal import LocalHTTP
internal import StrictJSON

/// A user's claims at an external provider.
struct SupabaseClaims {
    let provider: String
    let subject: String
    /// Verified by the provider; empty without one.
    let email: String
    let data: JSONObject
}

/// Which user an external identity belongs to, and how identities come and go.
extension SupabaseProject {
    /// The user of an identity: the one who has it, the one who has its verified address, or a new one.
    mutating func user(for claims: SupabaseClaims, at now: Int) throws(SupabaseErrorResponse) -> String {
        let moment = instant(now)
        if var known = user(provider: claims.provider, subject: claims.subject) {
            if known.isBanned(at: now) { throw SupabaseErrorResponse(403, "user_banned", "User is banned") }
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
            if known.isBanned(at: now) { throw SupabaseErrorResponse(403, "user_banned", "User is banned") }
            // An address that was never confirmed does not show who asked for the account.
            if known.emailConfirmedAt == nil {
                known.identities = []
                known.password = nil
                known.appMetadata = JSONObject()
            }
            add(claims, to: &known, at: now)
            confirmEmail(of: &known, at: now)
            save(known, at: now)
            return known.id
        }
        guard settings.allowsSignUp else {
            throw SupabaseErrorResponse(422, "signup_disabled", "Signups not allowed for this instance")
        }
        var user = SupabaseUser(at: moment)
        user.isManaged = isManaged
        user.email = claims.email
        add(claims, to: &user, at: now)
        if !user.email.isEmpty { confirmEmail(of: &user, at: now) }
        save(user, at: now)
        return user.id
    }

    private mutating func add(_ claims: SupabaseClaims, to user: inout SupabaseUser, at now: Int) {
        user.addIdentity(
            SupabaseIdentity(
                provider: claims.provider, subject: claims.subject, data: claims.data, at: instant(now)))
        user.merge(claims.data)
    }

    /// Links a further identity to a signed-in user.
    mutating func link(_ claims: SupabaseClaims, to userID: String, at now: Int) throws(SupabaseErrorResponse) {
        guard var user = users[userID] else {
            throw SupabaseErrorResponse(422, "user_not_found", "User from sub claim in JWT does not exist")
        }
        if let owner = self.user(provider: claims.provider, subject: claims.subject) {
            throw SupabaseErrorResponse(
                422, "identity_already_exists",
                owner.id == userID ? "Identity is already linked" : "Identity is already linked to another user")
        }
        if !claims.email.isEmpty, user.email.isEmpty {
            guard self.user(email: claims.email) == nil else {
                throw SupabaseErrorResponse(
                    400, "email_exists", "A user with this email address has already been registered")
            }
            user.email = claims.email
        }
        add(claims, to: &user, at: now)
        if user.email == claims.email, !claims.email.isEmpty { confirmEmail(of: &user, at: now) }
        user.isAnonymous = false
        save(user, at: now)
    }

    mutating func unlink(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        var user = try authenticate(call).user
        try checkLinking()
        let id = call.parts[2]
        guard SupabaseText.isUUID(id) else { throw .validation("identity_id must be an UUID", status: 404) }
        guard user.identities.count > 1 else {
            throw SupabaseErrorResponse(
                422, "single_identity_not_deletable", "User must have at least 1 identity after unlinking")
        }
        guard let index = user.identities.firstIndex(where: { $0.identityID == id }) else {
            throw SupabaseErrorResponse(422, "identity_not_found", "Identity doesn't exist")
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
                guard next.isEmpty || self.user(email: next) == nil else {
                    throw SupabaseErrorResponse(
                        422, "email_conflict_identity_not_deletable",
                        "Unable to unlink identity due to email conflict")
                }
                user.email = next
                if next.isEmpty { user.emailConfirmedAt = nil }
            }
        }
        save(user, at: call.now)
        return SupabaseResponses.json([:])
    }

    func checkLinking() throws(SupabaseErrorResponse) {
        guard settings.allowsLinking else {
            throw SupabaseErrorResponse(404, "manual_linking_disabled", "Manual linking is disabled")
        }
    }
}
