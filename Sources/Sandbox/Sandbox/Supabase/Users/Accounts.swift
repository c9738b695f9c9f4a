internal import LocalHTTP
internal import RingbackBase

extension SupabaseProject {
    func authenticate(_ call: SupabaseCall) throws -> (user: SupabaseUser, session: SupabaseSession) {
        let token = try unwrap(call.bearer, 401, "no_authorization", "This endpoint requires a valid Bearer token")
        let claims = try keys.claims(of: token, at: call.now)
        let subject = try unwrap(claims["sub"]?.string, 403, "bad_jwt", "invalid claim: missing sub claim")
        let user = try unwrap(users[subject], 403, "user_not_found", "User from sub claim in JWT does not exist")
        let session = try unwrap(
            claims["session_id"]?.string.flatMap { sessions[$0] }, 403, "session_not_found",
            "Session from session_id claim in JWT does not exist")
        try user.checkBan(at: call.now)
        let audience = call.field("X-JWT-AUD") ?? "authenticated"
        try require(audience == claims["aud"]?.string, "Token audience doesn't match request audience")
        return (user, session)
    }

    /// The same; refuses anonymous users.
    func authenticateNamed(_ call: SupabaseCall) throws -> (user: SupabaseUser, session: SupabaseSession) {
        let (user, session) = try authenticate(call)
        try require(!user.isAnonymous, 403, "no_authorization", "Anonymous user not allowed to perform these actions")
        return (user, session)
    }

    /// Starts a session for a user who has authenticated. Returns its id.
    mutating func open(_ userID: String, by method: String, provider: String? = nil, _ call: SupabaseCall) -> String {
        let id = sessions.open(
            userID, .init(method: method, at: call.now, provider: provider), call.settings.refreshTokens, at: call.now)
        users.signedIn(userID, at: call.now)
        return id
    }

    /// The same. Returns the token response of the session.
    mutating func signIn(
        _ userID: String, by method: String, provider: String? = nil, extra: JSONObject = [:],
        _ call: SupabaseCall
    ) throws -> ServerResponse {
        try tokenResponse(open(userID, by: method, provider: provider, call), extra: extra, call)
    }

    /// - Parameter refreshToken: issued in place of the session's newest.
    mutating func tokenResponse(
        _ sessionID: String, refreshToken: String? = nil, extra: JSONObject = [:],
        fields: [(String, String)] = [], _ call: SupabaseCall
    ) throws -> ServerResponse {
        var members = try tokens(sessionID, refreshToken: refreshToken, call)
        members.members += extra.members
        guard let session = sessions[sessionID] else { throw SupabaseError.failure }
        let mark =
            session.isCounted
            ? ("sb-auth-refresh-token-counter", String(session.counter))
            : ("sb-auth-refresh-token-prefix", String((refreshToken ?? session.currentToken).prefix(5)))
        let names = [("sb-auth-user-id", session.userID), ("sb-auth-session-id", sessionID), mark]
        return SupabaseResponses.json(members, fields: names + fields)
    }

    /// - Parameter refreshToken: issued in place of the session's newest.
    mutating func tokens(_ sessionID: String, refreshToken: String? = nil, _ call: SupabaseCall) throws -> JSONObject {
        guard let session = sessions[sessionID], let user = users[session.userID] else { throw SupabaseError.failure }
        let (settings, now) = (call.settings, call.now)
        if let refusal = settings.tokenHook { throw refusal }
        var lifetime = settings.accessTokenLifetime
        if let limit = settings.lowLevelLifetime, session.level == "aal1", user.hasVerifiedFactor {
            lifetime = max(min(lifetime, session.createdAt + limit - now), 0)
        }
        let claims: JSONObject = [
            "iss": settings.namesIssuer ? settings.issuer ?? call.authURL : nil, "sub": user.id,
            "aud": "authenticated", "exp": now + lifetime, "iat": now, "email": user.email, "phone": user.phone,
            "app_metadata": user.appMetadata, "user_metadata": user.userMetadata, "role": "authenticated",
            "aal": session.level, "amr": session.proofs, "session_id": session.id, "is_anonymous": user.isAnonymous,
            "client_id": session.clientID,
        ]
        let token =
            if let forgery = settings.forgery {
                try SupabaseKeys.forge(claims, by: forgery)
            } else {
                try keys.sign(claims, with: settings.algorithm)
            }
        return [
            "access_token": token, "token_type": "bearer", "expires_in": lifetime, "expires_at": now + lifetime,
            "refresh_token": refreshToken ?? session.currentToken, "user": user,
        ] as JSONObject
    }

    mutating func passwordGrant(_ call: SupabaseCall) throws -> ServerResponse {
        let body = try call.body()
        let (email, phone) = (try body.text("email"), try body.text("phone"))
        let password = try body.text("password")
        try require(
            email.isEmpty || phone.isEmpty, "Only an email address or phone number should be provided on login.")
        let found: SupabaseUser?
        if !email.isEmpty {
            try require(call.settings.allowsEmail, 422, "email_provider_disabled", "Email logins are disabled")
            found = users.user(email: email.lowercased())
        } else if !phone.isEmpty {
            try require(call.settings.allowsPhone, 422, "phone_provider_disabled", "Phone logins are disabled")
            found = users.user(phone: phone.filter { $0 != " " && $0 != "+" })
        } else {
            throw SupabaseError("missing email or phone")
        }
        let user = try unwrap(
            found?.password == password ? found : nil, 400, "invalid_credentials", "Invalid login credentials")
        try user.checkBan(at: call.now, status: 400)
        try require(email.isEmpty || user.emailConfirmedAt != nil, 400, "email_not_confirmed", "Email not confirmed")
        try require(phone.isEmpty || user.phoneConfirmedAt != nil, 400, "phone_not_confirmed", "Phone not confirmed")
        let weakness = call.settings.weakness(of: password).map { error in
            JSON.object(["message": error.message, "reasons": error.reasons])
        }
        return try signIn(user.id, by: "password", extra: ["weak_password": weakness ?? JSON.null], call)
    }

    mutating func refreshGrant(_ call: SupabaseCall, _ counters: inout Counters) throws -> ServerResponse {
        let token = try call.body().text("refresh_token")
        try require(!token.isEmpty, "refresh_token required")
        do {
            let refresh = try sessions.refresh(token, users, call.settings, at: call.now)
            let answer = try tokenResponse(refresh.sessionID, refreshToken: refresh.token, fields: refresh.fields, call)
            counters[.refreshes] += 1
            if answer.fields.contains("sb-auth-refresh-token-rotated") { counters[.rotations] += 1 }
            return answer
        } catch let error as SupabaseError {
            if error.code == "refresh_token_already_used" { counters[.reuseDetections] += 1 }
            throw error
        }
    }

    /// Access tokens that were issued stay valid for servers that do not ask here.
    mutating func logOut(_ call: SupabaseCall) throws -> ServerResponse {
        let scope = call.query("scope") ?? "global"
        let (user, session) = try authenticate(call)
        switch scope {
        case "global": sessions.end { $0.userID == user.id }
        case "local": sessions.end { $0.id == session.id }
        case "others": sessions.end { $0.userID == user.id && $0.id != session.id }
        default: throw SupabaseError("Unsupported logout scope \"\(scope)\"")
        }
        return SupabaseResponses.empty(204)
    }
}

/// `PUT /user`: what users change of themselves.
extension SupabaseProject {
    mutating func updateUser(_ call: SupabaseCall) throws -> ServerResponse {
        var (user, session) = try authenticate(call)
        let body = try call.body()
        let (email, phone) = (try body.text("email"), try body.text("phone"))
        let password = try body.text("password")
        let changesPassword = body.members["password"] != nil && body.members["password"] != .null
        let challenge = try body.challenge()
        let channel = try SupabaseText.channel(body.text("channel"))
        try require(
            body.members["app_metadata"] == nil, 403, "not_admin", "Updating app_metadata requires admin privileges")
        if !email.isEmpty || !phone.isEmpty || changesPassword {
            try require(
                !user.isManaged, 422, "user_sso_managed",
                "Updating email, phone, password of a SSO account only possible via SSO")
            try session.checkLevel(
                of: user, 401, "AAL2 session is required to update email or password when MFA is enabled.")
        }
        if changesPassword {
            try change(password: password, of: &user, session, body, isNewcomer: email.isEmpty && phone.isEmpty, call)
        }
        if let data = try body.object("data") { user.merge(data) }
        if !email.isEmpty { try change(email: email, of: &user, challenge, call) }
        if !phone.isEmpty { try change(phone: phone, of: &user, channel, call) }
        let changed = users.save(user, at: call.now)
        if changesPassword { sessions.end { $0.userID == user.id && $0.id != session.id } }
        return SupabaseResponses.json(value: changed)
    }

    private func change(
        password: String, of user: inout SupabaseUser, _ session: SupabaseSession, _ body: SupabaseBody,
        isNewcomer: Bool, _ call: SupabaseCall
    ) throws {
        try require(
            !user.isAnonymous || !isNewcomer,
            "Updating password of an anonymous user without an email or phone is not allowed", status: 422)
        if call.settings.requiresCurrentPassword, let current = user.password {
            let stated = try body.text("current_password")
            try require(
                stated == current, 400, stated.isEmpty ? "current_password_required" : "current_password_invalid",
                "Current password required when setting new password.")
        }
        if call.settings.securesPasswordChange, call.now > session.createdAt + 86_400 {
            let nonce = try body.text("nonce")
            try require(!nonce.isEmpty, 400, "reauthentication_needed", "Password update requires reauthentication")
            let sentCode = user.sentCodes[.reauthentication]
            let isCurrent = sentCode.map { call.now - $0.sentAt <= call.settings.otpLifetime } ?? false
            try require(
                isCurrent && sentCode?.code == nonce, 422, "reauthentication_not_valid",
                "Nonce has expired or is invalid")
            user.sentCodes[.reauthentication] = nil
        }
        try call.settings.check(password: password)
        try require(
            user.password != password, 422, "same_password", "New password should be different from the old password.")
        user.password = password
    }

    private mutating func change(
        email text: String, of user: inout SupabaseUser, _ challenge: SupabaseChallenge?, _ call: SupabaseCall
    ) throws {
        let email = try SupabaseText.address(text)
        guard email != user.email else { return }
        try require(
            users.user(email: email) == nil, 422, "email_exists",
            "A user with this email address has already been registered")
        user.newEmail = email
        guard !call.settings.autoconfirm else { return user.changeEmail(at: call.now) }
        try mail.mailChange(of: &user, isPKCE: challenge != nil, call)
        flows.begin("email_change", for: user.id, challenge, call)
    }

    private mutating func change(
        phone text: String, of user: inout SupabaseUser, _ channel: String, _ call: SupabaseCall
    ) throws {
        let phone = try SupabaseText.number(text)
        guard phone != user.phone else { return }
        try require(
            users.user(phone: phone) == nil, 422, "phone_exists",
            "A user with this phone number has already been registered")
        user.newPhone = phone
        guard !call.settings.phoneAutoconfirm else { return user.changePhone(at: call.now) }
        try mail.message(.phoneChange, type: "phone_change", to: phone, by: channel, about: &user, call)
    }
}

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
