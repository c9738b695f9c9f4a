public import BrokerCore
internal import HTTPMessages
internal import OAuth
public import Secrets
public import StrictJSON
public import SupabaseAuth

/// What a person does about themselves at a Supabase project: each is asked in the account's lane, with the token that
/// is good then.
public struct SupabaseOperations: Sendable {
    let broker: Broker

    var context: SignInContext { broker.signInContext }
    var sessions: SessionAccess { context.sessions }
    private var users: LaneRequests { LaneRequests(sessions: sessions) }

    /// True for an account at a Supabase project.
    public func isProject(_ name: AccountName) async throws(BrokerError) -> Bool {
        try await sessions.account(name).project != nil
    }

    /// The user, as the server has it now.
    public func user(_ name: AccountName) async throws(BrokerError) -> JSONObject {
        try await users.look(name, event: nil)
        return try await heldUser(name)
    }

    /// Changes the user. An address waits for its confirmations, a number for its code: then there is a flow, which
    /// they end. The same change again joins it.
    @discardableResult
    public func update(
        _ name: AccountName, _ changes: UserChanges
    ) async throws(BrokerError) -> (user: JSONObject, flow: FlowView?) {
        guard changes.hasContacts else {
            _ = try await users.put(changes, of: name, link: .none)
            return (try await heldUser(name), nil)
        }
        guard try await isProject(name) else { throw .methodUnsupported("\(name) is not at a Supabase project.") }
        try await sessions.ready(name)
        guard try await sessions.readable(name) != nil else { throw await sessions.absence(of: name) }
        var request = SignInRequest(.userUpdate)
        request.project = SupabaseSignInFields()
        request.project?.changes = changes
        let (flow, isNew) = try await broker.begin(name, request)
        // Whoever began it may not have asked for the rest.
        if !isNew, !changes.withoutContacts.isEmpty {
            _ = try await users.put(changes.withoutContacts, of: name, link: .none)
        }
        return (try await heldUser(name), flow)
    }

    private func heldUser(_ name: AccountName) async throws(BrokerError) -> JSONObject {
        guard let user = try await broker.account(name).user else { throw .signInRequired(name) }
        return user
    }

    /// Sends the code that a change of the password may need.
    public func reauthenticate(_ name: AccountName) async throws(BrokerError) {
        let change = SupabaseOperation(
            request: { project, token throws(FieldError) in project.reauthentication(bearer: token) },
            apply: { response, _ throws(SupabaseError) in _ = try MessageResponse(reading: response) })
        _ = try await sessions.change(name, change)
    }

    /// Sends a mail to a person who forgot the password. The flow ends with a session that may choose another one.
    public func resetPassword(
        _ name: AccountName, email: String, captcha: Secret? = nil
    ) async throws(BrokerError) -> (flow: FlowView?, isNew: Bool) {
        var request = SignInRequest(.recovery)
        request.project = SupabaseSignInFields()
        request.project?.email = email
        request.project?.captcha = captcha
        return try await broker.begin(name, request)
    }

    /// Ends the user's other sessions; this one stays.
    public func signOutOthers(_ name: AccountName) async throws(BrokerError) -> AccountView {
        let change = SupabaseOperation(
            request: { project, token throws(FieldError) in project.signOut(.others, bearer: token) })
        _ = try await sessions.change(name, change)
        return try await broker.account(name)
    }

    // MARK: Second factors

    /// Adds a factor, which counts once it is verified. The answer holds what an authenticator needs: a secret.
    public func enroll(_ name: AccountName, _ factor: NewFactor) async throws(BrokerError) -> FactorEnrolment {
        let response = try await sessions.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in project.enroll(factor, bearer: token) },
                apply: { response, _ throws(SupabaseError) in _ = try FactorEnrolment(reading: response) }))
        let enrolment = try SupabaseProvider.reading(response) { response throws(SupabaseError) in
            try FactorEnrolment(reading: response)
        }
        _ = try? await user(name)
        return enrolment
    }

    /// Asks for a challenge; a phone gets a message, and an authenticator is asked with the options in the response.
    public func challenge(
        _ name: AccountName, factor: String, channel: MessageChannel? = nil, party: RelyingParty? = nil
    ) async throws(BrokerError) -> FactorChallenge {
        let response = try await sessions.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in
                    try project.challenge(factor: factor, channel: channel, party: party, bearer: token)
                },
                apply: { response, _ throws(SupabaseError) in _ = try FactorChallenge(reading: response) }))
        return try SupabaseProvider.reading(response) { response throws(SupabaseError) in
            try FactorChallenge(reading: response)
        }
    }

    /// Answers a challenge: the session goes on with a higher level and other tokens.
    public func verifyFactor(
        _ name: AccountName, factor: String, challenge: String, code: Secret
    ) async throws(BrokerError) -> AccountView {
        let code = try SupabaseProvider.building { () throws(FieldError) in try OneTimeCode(parsing: code) }
        _ = try await sessions.change(name, .verification(factor: factor, challenge, .code(code)))
        return try await broker.account(name)
    }

    /// The same with an authenticator's response, `PublicKeyCredential.toJSON()`. The party is the challenge's.
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

    /// Removes a factor. The session falls back to the first level, which its next token says.
    public func removeFactor(_ name: AccountName, factor: String) async throws(BrokerError) -> AccountView {
        _ = try await sessions.change(
            name,
            SupabaseOperation(request: { project, token throws(FieldError) in
                try project.removeFactor(factor, bearer: token)
            }))
        do throws(BrokerError) {
            return try await broker.refresh(name, isForced: true)
        } catch {
            // It is removed; the next refresh will say so.
            guard error.isTransient else { throw error }
            return try await broker.account(name)
        }
    }

    // MARK: Identities

    /// Takes a provider's account from the user.
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
            throw .methodUnsupported("\(name) is not at a Supabase project.")
        }
        guard rules.functions.contains(function) else {
            throw .invalid(
                field: "function",
                reason: "it is not among the functions of \(name) "
                    + "(rpc = [\(rules.functions.joined(separator: ", "))]); the configuration lists those that may be called"
            )
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
            // It may have been done although its answer was lost.
            if let account = try? await sessions.account(name) { profiles.renew(account, in: sessions) }
            throw error
        }
        // What such functions are mostly for: another name, an account that is not active any more.
        profiles.renew(try await sessions.account(name), in: sessions)
        return try SupabaseProvider.reading(response) { response throws(SupabaseError) in
            try FunctionResponse(reading: response).value
        }
    }

    // MARK: The profile

    private var profiles: SupabaseProfiles { context.tools.memory() }

    /// The user's row: the one that was fetched after the sign-in, or fetched now. Nil where the account has none.
    public func profile(_ name: AccountName) async throws(BrokerError) -> SupabaseProfile? {
        let account = try await sessions.account(name)
        guard account.project?.profile != nil else { return nil }
        return try await profiles.profile(of: account, in: sessions)
    }
}

extension Broker {
    /// What can only be asked at a Supabase project.
    public var supabase: SupabaseOperations { SupabaseOperations(broker: self) }
}
