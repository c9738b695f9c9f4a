internal import BrokerCore
internal import RingbackBase
internal import SupabaseAuth

/// How a request with a session's access token uses the session.
enum SessionUse: Sendable {
    /// It changes the session, so it holds the lane.
    case changes
    /// It does not change the session, so it does not hold the lane.
    case borrows
    /// Its response is a session with a new refresh token, which replaces the current one.
    case rotates
}

extension SignInContext {
    func requests(of account: AccountName) -> UserRequests { UserRequests(account: account, sessions: sessions) }
}

/// The requests of an account's signed-in user, with the access token of the session.
struct UserRequests: Sendable {
    let account: AccountName
    let sessions: SessionManager

    /// The account's settings. Throws for an account of another kind.
    @discardableResult
    func rules() async throws(BrokerError) -> SupabaseAccount {
        guard let rules = try await sessions.account(account).project else {
            throw .methodUnsupported(.supabase(.notSupabase(account)))
        }
        return rules
    }

    /// Sends a request with the access token that is valid when its turn comes, and returns its response.
    ///
    /// - Parameters:
    ///   - request: built when its turn comes.
    ///   - changesIdentities: a caller requested the operation's change of the user's identities.
    ///   - event: posted after it succeeded.
    ///   - apply: the response's effect on the session, unless it rotates.
    @discardableResult
    func ask<Response>(
        _ request: @autoclosure @escaping @Sendable () throws(FieldError) -> SupabaseRequest<Response>,
        _ use: SessionUse = .changes, on occasion: SupabaseProblem.Occasion = .account,
        changesIdentities: Bool = false, event: BrokerEvent.Kind? = nil,
        apply: @escaping @Sendable (Response, inout Session) throws(SupabaseError) -> Void = { _, _ in }
    ) async throws(BrokerError) -> Response {
        try await rules()
        let operation = SessionOperation(
            rotates: use == .rotates, changesIdentities: changesIdentities, event: event,
            prepare: { provider, token throws(BrokerError) in
                guard let provider = provider as? SupabaseProvider else {
                    throw .methodUnsupported(.supabase(.notSupabase(nil)))
                }
                let asked = try provider.http(try SupabaseProvider.building(try request()), bearer: token)
                return { attempt throws(BrokerError) in
                    let response = try await provider.send(asked, under: attempt)
                    guard use != .rotates else {
                        return .init(response, try provider.renewal(by: response, on: occasion))
                    }
                    return .init(
                        response,
                        .edit { session throws(BrokerError) in
                            let answer: Response = try SupabaseProvider.read(response, on: occasion)
                            try SupabaseProvider.mapping(occasion) { () throws(SupabaseError) in
                                try apply(answer, &session)
                            }
                        })
                }
            },
            meaning: { error in
                if error.asksForRefresh { return .tokenRefused }
                if error.endsSession { return .dead(code: error.wordOfEnd) }
                return error.isWordOfProject ? .unchanged : .unknown
            })
        let response =
            use == .borrows
            ? try await sessions.borrow(account, operation) : try await sessions.change(account, operation)
        return try SupabaseProvider.read(response, on: occasion)
    }

    /// Fetches the user object and stores it in the session. `changesIdentities`: a link or an unlink was requested.
    func fetchUser(
        event: BrokerEvent.Kind? = .userUpdated, changesIdentities: Bool = false
    ) async throws(BrokerError) {
        try await ask(.user, changesIdentities: changesIdentities, event: event) {
            user, session throws(SupabaseError) in try session.adopt(user)
        }
    }

    /// Sends the change of the user, in the account's lane.
    @discardableResult
    func put(_ changes: UserChanges, link: MailLink = .none) async throws(BrokerError) -> SupabaseUser {
        let isRecovery = try await sessions.readable(account)?.isRecovery ?? false
        do throws(BrokerError) {
            return try await ask(
                try .update(changes, link: link), on: isRecovery ? .passwordReset : .account, changesIdentities: true,
                event: .userUpdated
            ) { user, session throws(SupabaseError) in try session.adopt(user) }
        } catch {
            throw error.unquoting(changes.password, changes.currentPassword, changes.nonce)
        }
    }

    /// Requests a challenge of a second factor. For a phone, the server sends a message.
    func challenge(
        factor: String, channel: MessageChannel? = nil, party: RelyingParty? = nil
    ) async throws(BrokerError) -> FactorChallenge {
        try await ask(try .challenge(factor: factor, channel: channel, party: party), .borrows)
    }

    /// Verifies a challenge. The session gets a higher assurance level and new tokens.
    func verify(
        _ proof: FactorProof, factor: String, challenge: String, on occasion: SupabaseProblem.Occasion = .account
    ) async throws(BrokerError) {
        try await ask(
            try .verify(factor: factor, challenge: challenge, proof: proof), .rotates, on: occasion,
            event: .mfaChallengeVerified)
    }

    func verify(_ code: Secret, factor: String, challenge: String) async throws(BrokerError) {
        let code = try SupabaseProvider.building(try OneTimeCode(parsing: code))
        try await verify(.code(code), factor: factor, challenge: challenge)
    }

    /// Writes the name that Apple sends only once, unless the user has one. If this fails, the sign-in still succeeds,
    /// and the account shows the error.
    func write(_ appleName: AppleName) async {
        do throws(BrokerError) {
            let held = try await sessions.readable(account)?.user.flatMap(SupabaseUser.init(reading:))
            guard let held, let data = appleName.data(for: held) else { return }
            var changes = UserChanges()
            changes.data = data
            try await put(changes)
        } catch {
            await sessions.show(error, account)
        }
    }

    /// Stores the app's former identifier of the user; nil removes it.
    func setMigration(_ identifier: String?) async throws(BrokerError) {
        try await rules()
        try await sessions.edit(account) { session throws(BrokerError) in
            // Another identifier must not overwrite one whose data the app has not moved yet.
            if let identifier, let former = session.project?.migratesFrom, former != identifier {
                throw .conflict(
                    .stated("The data of \(former) waits to be moved already."), cause: .migrationPending(account))
            }
            session.project?.migratesFrom = identifier
        }
    }
}

extension Session {
    fileprivate mutating func adopt(_ fresh: SupabaseUser) throws(SupabaseError) {
        guard fresh.id == subject else { throw .ofOtherUser }
        user = fresh.json
    }
}

extension SupabaseProvider {
    fileprivate func renewal(
        by response: HTTPResponse, on occasion: SupabaseProblem.Occasion
    ) throws(BrokerError) -> SessionOperation.Effect {
        do throws(BrokerError) {
            return .renewal(renewed(by: try SupabaseProvider.read(response, on: occasion)))
        } catch {
            // If the response was cut off, the reason for that is more useful than what is missing in it.
            if let truncation = response.truncation { throw BrokerError(truncation) }
            throw error
        }
    }
}
