internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth

/// Requests about the signed-in user. Each runs in the account's lane with the access token that is valid then.
struct LaneRequests: Sendable {
    let sessions: SessionAccess

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
