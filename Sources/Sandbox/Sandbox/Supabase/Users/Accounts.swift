internal import LocalHTTP
internal import RingbackBase

/// The users of a project, their sessions, and the keys of their access tokens: who may do what, and what a client gets.
struct SupabaseAccounts {
    var users = SupabaseUsers()
    var sessions = SupabaseSessions()
    var keys = SupabaseKeys()

    /// The user and the session of a request's bearer token.
    func authenticate(
        _ call: SupabaseCall
    ) throws(SupabaseError) -> (user: SupabaseUser, session: SupabaseSession) {
        guard let token = call.bearer else {
            throw SupabaseError(401, "no_authorization", "This endpoint requires a valid Bearer token")
        }
        let claims = try keys.claims(of: token, at: call.now)
        guard let subject = claims["sub"]?.string else {
            throw SupabaseError(403, "bad_jwt", "invalid claim: missing sub claim")
        }
        guard let user = users[subject] else {
            throw SupabaseError(403, "user_not_found", "User from sub claim in JWT does not exist")
        }
        guard let session = claims["session_id"]?.string.flatMap({ sessions[$0] }) else {
            throw SupabaseError(
                403, "session_not_found", "Session from session_id claim in JWT does not exist")
        }
        if user.isBanned(at: call.now) { throw SupabaseError(403, "user_banned", "User is banned") }
        guard (call.field("X-JWT-AUD") ?? "authenticated") == claims["aud"]?.string else {
            throw .validation("Token audience doesn't match request audience")
        }
        return (user, session)
    }

    // MARK: Beginning a session

    /// Starts a session for a user who has authenticated. Returns its id.
    mutating func open(
        _ userID: String, by method: String, provider: String? = nil, _ call: SupabaseCall
    ) -> String {
        let id = sessions.open(
            userID, .init(method: method, at: call.now, provider: provider), call.settings.refreshTokens, at: call.now)
        users.signedIn(userID, at: call.now)
        return id
    }

    /// The same. Returns the token response of the session.
    mutating func signIn(
        _ userID: String, by method: String, provider: String? = nil, extra: [JSONObject.Member] = [],
        _ call: SupabaseCall
    ) throws(SupabaseError) -> ServerResponse {
        try tokenResponse(open(userID, by: method, provider: provider, call), extra: extra, call)
    }

    /// The token response of a session.
    ///
    /// - Parameter refreshToken: issued in place of the session's newest.
    mutating func tokenResponse(
        _ sessionID: String, refreshToken: String? = nil, extra: [JSONObject.Member] = [],
        fields: [(String, String)] = [], _ call: SupabaseCall
    ) throws(SupabaseError) -> ServerResponse {
        var members = try tokens(sessionID, refreshToken: refreshToken, call)
        members.members += extra
        guard let session = sessions[sessionID] else { throw .failure }
        let mark =
            session.isCounted
            ? ("sb-auth-refresh-token-counter", String(session.counter))
            : ("sb-auth-refresh-token-prefix", String((refreshToken ?? session.currentToken).prefix(5)))
        let names = [("sb-auth-user-id", session.userID), ("sb-auth-session-id", sessionID), mark]
        return SupabaseResponses.json(.object(members), fields: names + fields)
    }

    /// - Parameter refreshToken: issued in place of the session's newest.
    mutating func tokens(
        _ sessionID: String, refreshToken: String? = nil, _ call: SupabaseCall
    ) throws(SupabaseError) -> JSONObject {
        guard let session = sessions[sessionID], let user = users[session.userID] else { throw .failure }
        let (settings, now) = (call.settings, call.now)
        if let refusal = settings.tokenHook { throw refusal }
        var lifetime = settings.accessTokenLifetime
        if let limit = settings.lowLevelLifetime, session.level == "aal1", user.hasVerifiedFactor {
            lifetime = max(min(lifetime, session.createdAt + limit - now), 0)
        }
        var claims = JSONObject()
        if settings.namesIssuer { claims["iss"] = .string(settings.issuer ?? call.authURL) }
        claims.members += [
            .init("sub", .string(user.id)), .init("aud", "authenticated"), .init("exp", .integer(now + lifetime)),
            .init("iat", .integer(now)), .init("email", .string(user.email)), .init("phone", .string(user.phone)),
            .init("app_metadata", .object(user.appMetadata)), .init("user_metadata", .object(user.userMetadata)),
            .init("role", "authenticated"), .init("aal", .string(session.level)),
            .init("amr", .array(session.proofs.map(\.json))), .init("session_id", .string(session.id)),
            .init("is_anonymous", .bool(user.isAnonymous)),
        ]
        if let clientID = session.clientID { claims["client_id"] = .string(clientID) }
        let token: String
        if let forgery = settings.forgery {
            token = try SupabaseKeys.forge(claims, by: forgery)
        } else {
            token = try keys.sign(claims, with: settings.algorithm)
        }
        return JSONObject([
            .init("access_token", .string(token)), .init("token_type", "bearer"),
            .init("expires_in", .integer(lifetime)), .init("expires_at", .integer(now + lifetime)),
            .init("refresh_token", .string(refreshToken ?? session.currentToken)), .init("user", user.json),
        ])
    }

    // MARK: Grants

    mutating func passwordGrant(_ call: SupabaseCall) throws(SupabaseError) -> ServerResponse {
        let body = try call.body()
        let (email, phone) = (try body.text("email"), try body.text("phone"))
        let password = try body.text("password")
        guard email.isEmpty || phone.isEmpty else {
            throw .validation("Only an email address or phone number should be provided on login.")
        }
        let found: SupabaseUser?
        if !email.isEmpty {
            guard call.settings.allowsEmail else {
                throw SupabaseError(422, "email_provider_disabled", "Email logins are disabled")
            }
            found = users.user(email: email.lowercased())
        } else if !phone.isEmpty {
            guard call.settings.allowsPhone else {
                throw SupabaseError(422, "phone_provider_disabled", "Phone logins are disabled")
            }
            found = users.user(phone: phone.filter { $0 != " " && $0 != "+" })
        } else {
            throw .validation("missing email or phone")
        }
        guard let user = found, let known = user.password, known == password else {
            throw SupabaseError(400, "invalid_credentials", "Invalid login credentials")
        }
        if user.isBanned(at: call.now) { throw SupabaseError(400, "user_banned", "User is banned") }
        if !email.isEmpty, user.emailConfirmedAt == nil {
            throw SupabaseError(400, "email_not_confirmed", "Email not confirmed")
        }
        if !phone.isEmpty, user.phoneConfirmedAt == nil {
            throw SupabaseError(400, "phone_not_confirmed", "Phone not confirmed")
        }
        return try signIn(
            user.id, by: "password", extra: [.init("weak_password", call.settings.weakness(of: password))], call)
    }

    mutating func refreshGrant(_ call: SupabaseCall) throws(SupabaseError) -> ServerResponse {
        let token = try call.body().text("refresh_token")
        guard !token.isEmpty else { throw .validation("refresh_token required") }
        let refresh = try sessions.refresh(token, users, call.settings, at: call.now)
        return try tokenResponse(refresh.sessionID, refreshToken: refresh.token, fields: refresh.fields, call)
    }

    // MARK: Users themselves

    func showUser(_ call: SupabaseCall) throws(SupabaseError) -> ServerResponse {
        SupabaseResponses.json(try authenticate(call).user.json)
    }

    /// Access tokens that were issued stay valid for servers that do not ask here.
    mutating func logOut(_ call: SupabaseCall) throws(SupabaseError) -> ServerResponse {
        let scope = call.query("scope") ?? "global"
        let (user, session) = try authenticate(call)
        switch scope {
        case "global": sessions.end { $0.userID == user.id }
        case "local": sessions.end { $0.id == session.id }
        case "others": sessions.end { $0.userID == user.id && $0.id != session.id }
        default: throw .validation("Unsupported logout scope \"\(scope)\"")
        }
        return SupabaseResponses.empty(204)
    }
}

/// `PUT /user`: what users change of themselves.
extension SupabaseCodes {
    mutating func updateUser(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts, _ flows: inout SupabaseFlows
    ) throws(SupabaseError) -> ServerResponse {
        var (user, session) = try accounts.authenticate(call)
        let body = try call.body()
        let (email, phone) = (try body.text("email"), try body.text("phone"))
        let password = try body.text("password")
        let changesPassword = body.members["password"] != nil && body.members["password"] != .null
        let challenge = try body.challenge()
        let channel = try SupabaseText.channel(body.text("channel"))
        if body.members["app_metadata"] != nil {
            throw SupabaseError(403, "not_admin", "Updating app_metadata requires admin privileges")
        }
        let changesAny = !email.isEmpty || !phone.isEmpty || changesPassword
        if user.isManaged, changesAny {
            throw SupabaseError(
                422, "user_sso_managed", "Updating email, phone, password of a SSO account only possible via SSO")
        }
        if changesAny, user.hasVerifiedFactor, session.level != "aal2" {
            throw SupabaseError(
                401, "insufficient_aal",
                "AAL2 session is required to update email or password when MFA is enabled.")
        }
        if changesPassword {
            try change(password: password, of: &user, session, body, isNewcomer: email.isEmpty && phone.isEmpty, call)
        }
        if let data = try body.object("data") { user.merge(data) }
        if !email.isEmpty { try change(email: email, of: &user, challenge, call, accounts.users, &flows) }
        if !phone.isEmpty { try change(phone: phone, of: &user, channel, call, accounts.users) }
        let changed = accounts.users.save(user, at: call.now)
        if changesPassword { accounts.sessions.end { $0.userID == user.id && $0.id != session.id } }
        return SupabaseResponses.json(changed.json)
    }

    private func change(
        password: String, of user: inout SupabaseUser, _ session: SupabaseSession, _ body: SupabaseBody,
        isNewcomer: Bool, _ call: SupabaseCall
    ) throws(SupabaseError) {
        if user.isAnonymous, isNewcomer {
            throw .validation(
                "Updating password of an anonymous user without an email or phone is not allowed", status: 422)
        }
        if call.settings.requiresCurrentPassword, let current = user.password {
            let stated = try body.text("current_password")
            guard !stated.isEmpty else {
                throw SupabaseError(
                    400, "current_password_required", "Current password required when setting new password.")
            }
            guard stated == current else {
                throw SupabaseError(
                    400, "current_password_invalid", "Current password required when setting new password.")
            }
        }
        if call.settings.securesPasswordChange, call.now > session.createdAt + 86_400 {
            let nonce = try body.text("nonce")
            guard !nonce.isEmpty else {
                throw SupabaseError(
                    400, "reauthentication_needed", "Password update requires reauthentication")
            }
            guard let sentCode = user.sentCodes[.reauthentication], sentCode.code == nonce,
                call.now - sentCode.sentAt <= call.settings.otpLifetime
            else {
                throw SupabaseError(422, "reauthentication_not_valid", "Nonce has expired or is invalid")
            }
            user.sentCodes[.reauthentication] = nil
        }
        try call.settings.check(password: password)
        if user.password == password {
            throw SupabaseError(
                422, "same_password", "New password should be different from the old password.")
        }
        user.password = password
    }

    private mutating func change(
        email text: String, of user: inout SupabaseUser, _ challenge: SupabaseChallenge?, _ call: SupabaseCall,
        _ users: SupabaseUsers, _ flows: inout SupabaseFlows
    ) throws(SupabaseError) {
        let email = try SupabaseText.address(text)
        guard email != user.email else { return }
        guard users.user(email: email) == nil else {
            throw SupabaseError(
                422, "email_exists", "A user with this email address has already been registered")
        }
        user.newEmail = email
        guard !call.settings.autoconfirm else { return user.changeEmail(at: call.now) }
        try mail.mailChange(of: &user, isPKCE: challenge != nil, call)
        flows.begin("email_change", for: user.id, challenge, call)
    }

    private mutating func change(
        phone text: String, of user: inout SupabaseUser, _ channel: String, _ call: SupabaseCall,
        _ users: SupabaseUsers
    ) throws(SupabaseError) {
        let phone = try SupabaseText.number(text)
        guard phone != user.phone else { return }
        guard users.user(phone: phone) == nil else {
            throw SupabaseError(
                422, "phone_exists", "A user with this phone number has already been registered")
        }
        user.newPhone = phone
        guard !call.settings.phoneAutoconfirm else { return user.changePhone(at: call.now) }
        try mail.message(.phoneChange, type: "phone_change", to: phone, by: channel, about: &user, call)
    }
}

/// The users of a project.
struct SupabaseUsers {
    private var byID: [String: SupabaseUser] = [:]
    /// New users that the trigger of the database has not seen yet, as they were saved first.
    private var added: [SupabaseUser] = []

    subscript(id: String) -> SupabaseUser? { byID[id] }

    var all: some Collection<SupabaseUser> { byID.values }

    func first(where isWanted: (SupabaseUser) -> Bool) -> SupabaseUser? { byID.values.first(where: isWanted) }

    func user(email: String) -> SupabaseUser? { first { !email.isEmpty && $0.email == email && !$0.isManaged } }

    func user(phone: String) -> SupabaseUser? { first { !phone.isEmpty && $0.phone == phone } }

    func user(provider: String, subject: String) -> SupabaseUser? {
        first { user in user.identities.contains { $0.provider == provider && $0.subject == subject } }
    }

    /// Stores a user who is new or has changed. Returns the user as stored.
    @discardableResult
    mutating func save(_ user: SupabaseUser, at now: Int) -> SupabaseUser {
        var user = user
        user.updatedAt = .next(now)
        if byID.updateValue(user, forKey: user.id) == nil { added.append(user) }
        return user
    }

    mutating func remove(_ id: String) { byID[id] = nil }

    mutating func ban(_ id: String, until end: SupabaseInstant?) { byID[id]?.bannedUntil = end }

    mutating func signedIn(_ id: String, at now: Int) { byID[id]?.lastSignInAt = .next(now) }

    mutating func takeAdded() -> [SupabaseUser] {
        defer { added = [] }
        return added
    }
}
