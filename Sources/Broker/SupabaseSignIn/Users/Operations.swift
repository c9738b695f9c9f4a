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
    private var users: LaneRequests { LaneRequests(sessions: sessions) }

    /// True for an account at a Supabase project.
    public func isProject(_ name: AccountName) async throws(BrokerError) -> Bool {
        try await sessions.account(name).project != nil
    }

    /// The user object, fetched now.
    public func user(_ name: AccountName) async throws(BrokerError) -> JSONObject {
        try await users.look(name, event: nil)
        return try await heldUser(name)
    }

    /// Changes the user. A new e-mail address or phone number needs a confirmation; then the result has a flow that
    /// waits for it. The same change again joins that flow.
    @discardableResult
    public func update(
        _ name: AccountName, _ changes: UserChanges
    ) async throws(BrokerError) -> (user: JSONObject, flow: FlowView?) {
        guard changes.hasContacts else {
            _ = try await users.put(changes, of: name, link: .none)
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
            _ = try await users.put(changes.withoutContacts, of: name, link: .none)
        }
        return (try await heldUser(name), flow)
    }

    private func heldUser(_ name: AccountName) async throws(BrokerError) -> JSONObject {
        guard let user = try await broker.account(name).user else { throw .signInRequired(name) }
        return user
    }

    /// Sends the code that a change of the password may require.
    public func reauthenticate(_ name: AccountName) async throws(BrokerError) {
        let change = SupabaseOperation(
            request: { project, token throws(FieldError) in project.reauthentication(bearer: token) },
            borrowsToken: true,
            apply: { response, _ throws(SupabaseError) in _ = try MessageResponse(reading: response) })
        _ = try await sessions.change(name, change)
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
        let change = SupabaseOperation(
            request: { project, token throws(FieldError) in project.signOut(.others, bearer: token) },
            borrowsToken: true)
        _ = try await sessions.change(name, change)
        return try await broker.account(name)
    }

    // MARK: Second factors

    /// Adds a factor, which is active once it is verified. The response has the secret for an authenticator app.
    public func enroll(_ name: AccountName, _ factor: NewFactor) async throws(BrokerError) -> FactorEnrolment {
        let response = try await sessions.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in project.enroll(factor, bearer: token) },
                borrowsToken: true,
                apply: { response, _ throws(SupabaseError) in _ = try FactorEnrolment(reading: response) }))
        let enrolment = try SupabaseProvider.reading(response) { response throws(SupabaseError) in
            try FactorEnrolment(reading: response)
        }
        _ = try? await user(name)
        return enrolment
    }

    /// Requests a challenge. For a phone, the server sends a message; for an authenticator, the response has the
    /// options.
    public func challenge(
        _ name: AccountName, factor: String, channel: MessageChannel? = nil, party: RelyingParty? = nil
    ) async throws(BrokerError) -> FactorChallenge {
        try await users.challenge(name, factor: factor, channel: channel, party: party)
    }

    /// Verifies a challenge. The session gets a higher assurance level and new tokens.
    public func verifyFactor(
        _ name: AccountName, factor: String, challenge: String, code: Secret
    ) async throws(BrokerError) -> AccountView {
        try await users.verify(code, name, factor: factor, challenge: challenge)
        return try await broker.account(name)
    }

    /// The same with an authenticator's response, `PublicKeyCredential.toJSON()`. `party` must be the challenge's.
    public func verifyFactor(
        _ name: AccountName, factor: String, challenge: String, credential: JSONObject, party: RelyingParty? = nil
    ) async throws(BrokerError) -> AccountView {
        let credential = try SupabaseProvider.building { () throws(FieldError) in
            try PasskeyCredential(parsing: credential)
        }
        let proof = FactorProof.webAuthn(credential, party)
        _ = try await sessions.change(name, .verification(factor: factor, challenge, proof, on: .credential))
        return try await broker.account(name)
    }

    /// Removes a factor. The next access token of the session has the first assurance level.
    public func removeFactor(_ name: AccountName, factor: String) async throws(BrokerError) -> AccountView {
        _ = try await sessions.change(
            name,
            SupabaseOperation(request: { project, token throws(FieldError) in
                try project.removeFactor(factor, bearer: token)
            }))
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
        _ = try await sessions.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in
                    try project.removeIdentity(identity, bearer: token)
                }))
        try await users.look(name, event: nil, changesIdentities: true)
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
        let change = SupabaseOperation(
            request: { project, token throws(FieldError) in
                try project.call(function, arguments: arguments, bearer: token)
            }, borrowsToken: true,
            apply: { response, _ throws(SupabaseError) in _ = try FunctionResponse(reading: response) })
        let response: HTTPResponse
        do throws(BrokerError) {
            response = try await sessions.change(name, change)
        } catch {
            // The function may have run although its response was lost.
            if let account = try? await sessions.account(name) { profiles.renew(account, in: sessions) }
            throw error
        }
        // Such functions often change the user's row, so fetch it again.
        profiles.renew(try await sessions.account(name), in: sessions)
        return try SupabaseProvider.reading(response) { response throws(SupabaseError) in
            try FunctionResponse(reading: response).value
        }
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

/// Requests about the signed-in user. Each runs in the account's lane with the access token that is valid then.
struct LaneRequests: Sendable {
    let sessions: SessionManager

    /// Fetches the user object and stores it in the session. `changesIdentities`: a link or an unlink was requested
    /// before.
    func look(
        _ name: AccountName, event: BrokerEvent.Kind? = .userUpdated, changesIdentities: Bool = false
    ) async throws(BrokerError) {
        let change = SupabaseOperation(
            request: { project, token throws(FieldError) in project.user(bearer: token) },
            changesIdentities: changesIdentities, event: event, apply: LaneRequests.adoptUser)
        _ = try await sessions.change(name, change)
    }

    /// Sends the change of the user, in the account's lane.
    func put(
        _ changes: UserChanges, of name: AccountName, link: MailLink
    ) async throws(BrokerError) -> SupabaseUser {
        let occasion: SupabaseProblem.Occasion = try await isRecovering(name) ? .passwordReset : .account
        let change = SupabaseOperation(
            request: { project, token throws(FieldError) in try project.update(changes, link: link, bearer: token) },
            occasion: occasion, changesIdentities: true, event: .userUpdated, apply: LaneRequests.adoptUser)
        do throws(BrokerError) {
            let response = try await sessions.change(name, change)
            return try SupabaseProvider.reading(response) { response throws(SupabaseError) in
                try SupabaseUser(reading: response)
            }
        } catch {
            throw error.unquoting(changes.password, changes.currentPassword, changes.nonce)
        }
    }

    /// Requests a challenge of a second factor. For a phone, the server sends a message.
    func challenge(
        _ name: AccountName, factor: String, channel: MessageChannel? = nil, party: RelyingParty? = nil
    ) async throws(BrokerError) -> FactorChallenge {
        let response = try await sessions.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in
                    try project.challenge(factor: factor, channel: channel, party: party, bearer: token)
                }, borrowsToken: true,
                apply: { response, _ throws(SupabaseError) in _ = try FactorChallenge(reading: response) }))
        return try SupabaseProvider.reading(response) { response throws(SupabaseError) in
            try FactorChallenge(reading: response)
        }
    }

    /// Verifies a challenge. The session gets a higher assurance level and new tokens.
    func verify(_ code: Secret, _ name: AccountName, factor: String, challenge: String) async throws(BrokerError) {
        let code = try SupabaseProvider.building { () throws(FieldError) in try OneTimeCode(parsing: code) }
        _ = try await sessions.change(name, .verification(factor: factor, challenge, .code(code)))
    }

    /// Writes the name that Apple sends only once, unless the user has one. If this fails, the sign-in still succeeds,
    /// and the account shows the error.
    func write(_ appleName: AppleName, to name: AccountName) async {
        do throws(BrokerError) {
            let held = try await sessions.readable(name)?.user.flatMap(SupabaseUser.init(reading:))
            guard let held, let data = appleName.data(for: held) else { return }
            var changes = UserChanges()
            changes.data = data
            _ = try await put(changes, of: name, link: .none)
        } catch {
            await sessions.show(error, name)
        }
    }

    private static func adoptUser(_ response: HTTPResponse, _ session: inout Session) throws(SupabaseError) {
        let user = try SupabaseUser(reading: response)
        guard user.id == session.subject else { throw .ofOtherUser }
        session.user = user.json
    }

    private func isRecovering(_ name: AccountName) async throws(BrokerError) -> Bool {
        try await sessions.readable(name)?.isRecovery ?? false
    }
}

/// What the signed-in user has allowed OAuth clients of the project.
extension SupabaseOperations {
    /// Lists the user's consents.
    public func consents(_ name: AccountName) async throws(BrokerError) -> [Consent] {
        let response = try await sessions.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in project.consents(bearer: token) },
                borrowsToken: true,
                apply: { response, _ throws(SupabaseError) in _ = try ConsentList(reading: response) }))
        return try SupabaseProvider.reading(response) { response throws(SupabaseError) in
            try ConsentList(reading: response).consents
        }
    }

    /// Revokes the user's consent for a client. The project ends that client's sessions; this session stays.
    public func revokeConsent(_ name: AccountName, client: String) async throws(BrokerError) {
        _ = try await sessions.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in
                    try project.revokeConsent(client: client, bearer: token)
                }, borrowsToken: true))
    }
}
