public import BrokerCore
internal import OAuth
public import RingbackBase
public import SupabaseAuth

/// Operations of the signed-in user at a Supabase project. Each request runs in the account's lane with the access
/// token that is valid then.
public struct SupabaseOperations: Sendable {
    let broker: Broker

    var context: SignInContext { broker.signInContext }
    var sessions: SessionManager { context.sessions }
    /// True for an account at a Supabase project.
    public func isProject(_ name: AccountName) async throws(BrokerError) -> Bool {
        try await sessions.account(name).project != nil
    }

    /// The user object, fetched now.
    public func user(_ name: AccountName) async throws(BrokerError) -> JSONObject {
        try await sessions.fetchUser(name, event: nil)
        return try await heldUser(name)
    }

    /// Changes the user. A new e-mail address or phone number needs a confirmation; then the result has a flow that
    /// waits for it. The same change again joins that flow.
    @discardableResult
    public func update(
        _ name: AccountName, _ changes: UserChanges
    ) async throws(BrokerError) -> (user: JSONObject, flow: FlowView?) {
        guard changes.hasContacts else {
            _ = try await sessions.put(changes, of: name)
            return (try await heldUser(name), nil)
        }
        guard try await isProject(name) else { throw .methodUnsupported(.supabase(.notSupabase(name))) }
        try await sessions.ready(name)
        guard try await sessions.readable(name) != nil else { throw await sessions.absence(of: name) }
        var request = SignInRequest(.userUpdate)
        request.project = SupabaseSignInFields()
        request.project?.changes = changes
        let (flow, isNew) = try await broker.begin(name, request)
        // An earlier request started the flow. It may not have contained the other changes.
        if !isNew, !changes.withoutContacts.isEmpty {
            _ = try await sessions.put(changes.withoutContacts, of: name)
        }
        return (try await heldUser(name), flow)
    }

    private func heldUser(_ name: AccountName) async throws(BrokerError) -> JSONObject {
        guard let user = try await broker.account(name).user else { throw .signInRequired(name) }
        return user
    }

    /// Sends the code that a change of the password may require.
    public func reauthenticate(_ name: AccountName) async throws(BrokerError) {
        try await sessions.ask(name, .reauthentication, .borrows)
    }

    /// Sends a recovery mail. The flow ends with a session in which the user can choose a new password.
    ///
    /// - Parameter replaces: a different pending sign-in of the account is cancelled.
    public func resetPassword(
        _ name: AccountName, email: String, captcha: Secret? = nil, replaces: Bool = false
    ) async throws(BrokerError) -> (flow: FlowView?, isNew: Bool) {
        var request = SignInRequest(.recovery)
        request.project = SupabaseSignInFields()
        request.project?.email = email
        request.project?.captcha = captcha
        request.replaces = replaces
        return try await broker.begin(name, request)
    }

    /// Ends the user's other sessions; this one stays.
    public func signOutOthers(_ name: AccountName) async throws(BrokerError) -> AccountView {
        try await sessions.ask(name, .signOutOthers, .borrows)
        return try await broker.account(name)
    }

    // MARK: Second factors

    /// Adds a factor, which is active once it is verified. The response has the secret for an authenticator app.
    public func enroll(_ name: AccountName, _ factor: NewFactor) async throws(BrokerError) -> FactorEnrolment {
        let enrolment = try await sessions.ask(name, .enroll(factor), .borrows)
        _ = try? await user(name)
        return enrolment
    }

    /// Requests a challenge. For a phone, the server sends a message; for an authenticator, the response has the
    /// options.
    public func challenge(
        _ name: AccountName, factor: String, channel: MessageChannel? = nil, party: RelyingParty? = nil
    ) async throws(BrokerError) -> FactorChallenge {
        try await sessions.challenge(name, factor: factor, channel: channel, party: party)
    }

    /// Verifies a challenge. The session gets a higher assurance level and new tokens.
    public func verifyFactor(
        _ name: AccountName, factor: String, challenge: String, code: Secret
    ) async throws(BrokerError) -> AccountView {
        try await sessions.verify(code, name, factor: factor, challenge: challenge)
        return try await broker.account(name)
    }

    /// The same with an authenticator's response, `PublicKeyCredential.toJSON()`. `party` must be the challenge's.
    public func verifyFactor(
        _ name: AccountName, factor: String, challenge: String, credential: JSONObject, party: RelyingParty? = nil
    ) async throws(BrokerError) -> AccountView {
        let credential = try SupabaseProvider.building { () throws(FieldError) in
            try PasskeyCredential(parsing: credential)
        }
        try await sessions.verify(
            .webAuthn(credential, party), name, factor: factor, challenge: challenge, on: .credential)
        return try await broker.account(name)
    }

    /// Removes a factor. The next access token of the session has the first assurance level.
    public func removeFactor(_ name: AccountName, factor: String) async throws(BrokerError) -> AccountView {
        try await sessions.ask(name, try .removeFactor(factor))
        do throws(BrokerError) {
            return try await broker.refresh(name, isForced: true)
        } catch {
            // The factor is removed. The next refresh will show it.
            guard error.isTransient else { throw error }
            return try await broker.account(name)
        }
    }

    // MARK: Identities

    /// Unlinks an identity from the user.
    public func unlink(_ name: AccountName, identity: String) async throws(BrokerError) -> JSONObject {
        try await sessions.ask(name, try .removeIdentity(identity))
        try await sessions.fetchUser(name, event: nil, changesIdentities: true)
        return try await heldUser(name)
    }

    // MARK: Functions

    /// Calls one of the functions that the account's configuration lists, as the user.
    public func call(
        _ name: AccountName, function: String, arguments: JSONObject
    ) async throws(BrokerError) -> JSON {
        guard let rules = try await sessions.account(name).project else {
            throw .methodUnsupported(.supabase(.notSupabase(name)))
        }
        guard rules.functions.contains(function) else {
            throw .invalid(
                field: "function", reason: .supabase(.functionNotListed(name, listed: Array(rules.functions))))
        }
        let response: FunctionResponse
        do throws(BrokerError) {
            response = try await sessions.ask(name, try .call(function, arguments: arguments), .borrows)
        } catch {
            // The function may have run although its response was lost.
            if let account = try? await sessions.account(name) { profiles.renew(account, in: sessions) }
            throw error
        }
        // Such functions often change the user's row, so fetch it again.
        profiles.renew(try await sessions.account(name), in: sessions)
        return response.value
    }

    // MARK: The profile

    private var profiles: SupabaseProfiles { context.tools.memory() }

    /// The user's row: the cached one, or fetched now. Nil if the account has no `profile`.
    public func profile(_ name: AccountName) async throws(BrokerError) -> SupabaseProfile? {
        let account = try await sessions.account(name)
        guard account.project?.profile != nil else { return nil }
        return try await profiles.profile(of: account, in: sessions)
    }
}

extension Broker {
    /// Operations that only accounts at a Supabase project have.
    public var supabase: SupabaseOperations { SupabaseOperations(broker: self) }
}

/// Requests that the operations, the flows and the sign-in page share.
extension SessionManager {
    /// Fetches the user object and stores it in the session. `changesIdentities`: a link or an unlink was requested
    /// before.
    nonisolated func fetchUser(
        _ name: AccountName, event: BrokerEvent.Kind? = .userUpdated, changesIdentities: Bool = false
    ) async throws(BrokerError) {
        try await ask(name, .user, changesIdentities: changesIdentities, event: event) {
            user, session throws(SupabaseError) in try session.adopt(user)
        }
    }

    /// Sends the change of the user, in the account's lane.
    @discardableResult
    nonisolated func put(
        _ changes: UserChanges, of name: AccountName, link: MailLink = .none
    ) async throws(BrokerError) -> SupabaseUser {
        let isRecovery = try await readable(name)?.isRecovery ?? false
        do throws(BrokerError) {
            return try await ask(
                name, try .update(changes, link: link), on: isRecovery ? .passwordReset : .account,
                changesIdentities: true, event: .userUpdated
            ) { user, session throws(SupabaseError) in try session.adopt(user) }
        } catch {
            throw error.unquoting(changes.password, changes.currentPassword, changes.nonce)
        }
    }

    /// Requests a challenge of a second factor. For a phone, the server sends a message.
    nonisolated func challenge(
        _ name: AccountName, factor: String, channel: MessageChannel? = nil, party: RelyingParty? = nil
    ) async throws(BrokerError) -> FactorChallenge {
        try await ask(name, try .challenge(factor: factor, channel: channel, party: party), .borrows)
    }

    /// Verifies a challenge. The session gets a higher assurance level and new tokens.
    nonisolated func verify(
        _ proof: FactorProof, _ name: AccountName, factor: String, challenge: String,
        on occasion: SupabaseProblem.Occasion = .account
    ) async throws(BrokerError) {
        try await ask(
            name, try .verify(factor: factor, challenge: challenge, proof: proof), .rotates, on: occasion,
            event: .mfaChallengeVerified)
    }

    nonisolated func verify(
        _ code: Secret, _ name: AccountName, factor: String, challenge: String
    ) async throws(BrokerError) {
        let code = try SupabaseProvider.building { () throws(FieldError) in try OneTimeCode(parsing: code) }
        try await verify(.code(code), name, factor: factor, challenge: challenge)
    }

    /// Writes the name that Apple sends only once, unless the user has one. If this fails, the sign-in still succeeds,
    /// and the account shows the error.
    nonisolated func write(_ appleName: AppleName, to name: AccountName) async {
        do throws(BrokerError) {
            let held = try await readable(name)?.user.flatMap(SupabaseUser.init(reading:))
            guard let held, let data = appleName.data(for: held) else { return }
            var changes = UserChanges()
            changes.data = data
            try await put(changes, of: name)
        } catch {
            await show(error, name)
        }
    }
}

extension Session {
    fileprivate mutating func adopt(_ fresh: SupabaseUser) throws(SupabaseError) {
        guard fresh.id == subject else { throw .ofOtherUser }
        user = fresh.json
    }
}

/// What the signed-in user has allowed OAuth clients of the project.
extension SupabaseOperations {
    public func consents(_ name: AccountName) async throws(BrokerError) -> [Consent] {
        try await sessions.ask(name, .consents, .borrows).entries
    }

    /// Revokes the user's consent for a client. The project ends that client's sessions; this session stays.
    public func revokeConsent(_ name: AccountName, client: String) async throws(BrokerError) {
        try await sessions.ask(name, try .revokeConsent(client: client), .borrows)
    }
}
