public import BrokerCore
internal import OAuth
public import RingbackBase
public import SupabaseAuth

/// Operations of the signed-in user at a Supabase project. Each request takes the access token that is valid then.
public struct SupabaseOperations: Sendable {
    let broker: Broker

    var context: SignInContext { broker.signInContext }
    var sessions: SessionManager { context.sessions }
    func requests(of name: AccountName) -> UserRequests { context.requests(of: name) }

    public func isProject(_ name: AccountName) async throws(BrokerError) -> Bool {
        try await sessions.account(name).project != nil
    }

    public func user(_ name: AccountName) async throws(BrokerError) -> JSONObject {
        try await requests(of: name).fetchUser(event: nil)
        return try await heldUser(name)
    }

    /// Changes the user. A new e-mail address or phone number needs a confirmation; then the result has a flow that
    /// waits for it. The same change again joins that flow.
    @discardableResult
    public func update(
        _ name: AccountName, _ changes: UserChanges
    ) async throws(BrokerError) -> (user: JSONObject, flow: FlowView?) {
        guard changes.hasContacts else {
            try await requests(of: name).put(changes)
            return (try await heldUser(name), nil)
        }
        try await requests(of: name).rules()
        try await sessions.ready(name)
        guard try await sessions.readable(name) != nil else { throw await sessions.absence(of: name) }
        var request = SignInRequest(.userUpdate)
        request.project = SupabaseSignInFields()
        request.project?.changes = changes
        let (flow, isNew) = try await broker.begin(name, request)
        // An earlier request started the flow. It may not have contained the other changes.
        if !isNew, !changes.withoutContacts.isEmpty { try await requests(of: name).put(changes.withoutContacts) }
        return (try await heldUser(name), flow)
    }

    private func heldUser(_ name: AccountName) async throws(BrokerError) -> JSONObject {
        guard let user = try await broker.account(name).user else { throw .signInRequired(name) }
        return user
    }

    /// Sends the code that a change of the password may require.
    public func reauthenticate(_ name: AccountName) async throws(BrokerError) {
        try await requests(of: name).ask(.reauthentication, .borrows)
    }

    /// Sends a recovery mail. The flow ends with a session in which the user can choose a new password. With
    /// `replaces`, a different pending sign-in of the account is cancelled.
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
        try await requests(of: name).ask(.signOutOthers, .borrows)
        return try await broker.account(name)
    }

    // MARK: Second factors

    /// Adds a factor, which is active once it is verified. The response has the secret for an authenticator app.
    public func enroll(_ name: AccountName, _ factor: NewFactor) async throws(BrokerError) -> FactorEnrolment {
        let enrolment = try await requests(of: name).ask(.enroll(factor), .borrows)
        _ = try? await user(name)
        return enrolment
    }

    public func challenge(
        _ name: AccountName, factor: String, channel: MessageChannel? = nil, party: RelyingParty? = nil
    ) async throws(BrokerError) -> FactorChallenge {
        try await requests(of: name).challenge(factor: factor, channel: channel, party: party)
    }

    public func verifyFactor(
        _ name: AccountName, factor: String, challenge: String, code: Secret
    ) async throws(BrokerError) -> AccountView {
        try await requests(of: name).verify(code, factor: factor, challenge: challenge)
        return try await broker.account(name)
    }

    /// The same with an authenticator's response, `PublicKeyCredential.toJSON()`. `party` must be the challenge's.
    public func verifyFactor(
        _ name: AccountName, factor: String, challenge: String, credential: JSONObject, party: RelyingParty? = nil
    ) async throws(BrokerError) -> AccountView {
        let credential = try SupabaseProvider.building(try PasskeyCredential(parsing: credential))
        try await requests(of: name).verify(
            .webAuthn(credential, party), factor: factor, challenge: challenge, on: .credential)
        return try await broker.account(name)
    }

    public func removeFactor(_ name: AccountName, factor: String) async throws(BrokerError) -> AccountView {
        try await requests(of: name).ask(try .removeFactor(factor))
        do throws(BrokerError) {
            return try await broker.refresh(name, isForced: true)
        } catch {
            // The factor is removed. The next refresh will show it.
            guard error.isTransient else { throw error }
            return try await broker.account(name)
        }
    }

    // MARK: Identities

    public func unlink(_ name: AccountName, identity: String) async throws(BrokerError) -> JSONObject {
        try await requests(of: name).ask(try .removeIdentity(identity))
        try await requests(of: name).fetchUser(event: nil, changesIdentities: true)
        return try await heldUser(name)
    }

    // MARK: Functions

    /// Calls one of the functions of the database that the account's configuration lists, as the user.
    public func call(
        _ name: AccountName, function: String, arguments: JSONObject
    ) async throws(BrokerError) -> JSON {
        let listed = try await requests(of: name).rules().functions
        return try await run(
            function, of: name, listedBy: "rpc", listed, try .call(function, arguments: arguments)
        ).value
    }

    /// Calls one of the Edge Functions that the account's configuration lists, as the user.
    public func invoke(
        _ name: AccountName, function: String, arguments: JSONObject
    ) async throws(BrokerError) -> JSON {
        let listed = try await requests(of: name).rules().edgeFunctions
        return try await run(
            function, of: name, listedBy: "edge_functions", listed, try .invoke(function, arguments: arguments)
        ).value
    }

    private func run<Response>(
        _ function: String, of name: AccountName, listedBy key: String, _ listed: [String],
        _ request: @autoclosure @escaping @Sendable () throws(FieldError) -> SupabaseRequest<Response>
    ) async throws(BrokerError) -> Response {
        guard listed.contains(function) else {
            throw .invalid(field: "function", reason: .supabase(.functionNotListed(name, key: key, listed: listed)))
        }
        let response: Response
        do throws(BrokerError) {
            response = try await requests(of: name).ask(try request(), .borrows)
        } catch {
            // The function may have run although its response was lost.
            if let account = try? await sessions.account(name) { profiles.renew(account, in: sessions) }
            throw error
        }
        // Such functions often change the user's row, so fetch it again.
        profiles.renew(try await sessions.account(name), in: sessions)
        return response
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
    public var supabase: SupabaseOperations { SupabaseOperations(broker: self) }
}

/// What the signed-in user has allowed OAuth clients of the project.
extension SupabaseOperations {
    public func consents(_ name: AccountName) async throws(BrokerError) -> [Consent] {
        try await requests(of: name).ask(.consents, .borrows).entries
    }

    /// Revokes the user's consent for a client. The project ends that client's sessions; this session stays.
    public func revokeConsent(_ name: AccountName, client: String) async throws(BrokerError) {
        try await requests(of: name).ask(try .revokeConsent(client: client), .borrows)
    }
}
