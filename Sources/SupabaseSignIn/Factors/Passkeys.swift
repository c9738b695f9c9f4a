public import BrokerCore
internal import HTTPMessages
internal import Secrets
public import StrictJSON
public import SupabaseAuth

/// Sign-ins by a passkey: the project asks a question that an app's authenticator answers. The question is answered
/// once; a wrong answer ends the flow, since the project has forgotten the question by then.
extension FlowStart {
    func passkey() async throws(BrokerError) -> Beginning {
        let challenge = try await provider.ask(
            project.passkeySignIn(captcha: fields.captcha), on: .signIn, SupabaseProvider.readChallenge)
        var awaited = try await redirected(isNeeded: false, message: nil)
        awaited.passkey = challenge
        // The project's clock is not ours: a challenge that seems to have ended already gets its usual time.
        let stated = challenge.expiresAt.map { WallInstant(seconds: $0) - provider.clock.wallInstant } ?? .zero
        let lifetime = stated > .zero ? min(stated, SupabaseFlow.passkeyTimeout) : SupabaseFlow.passkeyTimeout
        return .flow(awaited, atMost: lifetime)
    }
}

extension SupabaseFlow {
    /// The server forgets a challenge then.
    static let passkeyTimeout: Duration = .seconds(300)
}

/// The passkeys of the user who is signed in.
extension SupabaseOperations {
    /// The passkeys of the user who is signed in.
    public func passkeys(_ name: AccountName) async throws(BrokerError) -> [Passkey] {
        let response = try await sessions.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in project.passkeys(bearer: token) },
                borrowsToken: true,
                apply: { response, _ throws(SupabaseError) in _ = try PasskeyList(reading: response) }))
        return try SupabaseProvider.reading(response) { response throws(SupabaseError) in
            try PasskeyList(reading: response).passkeys
        }
    }

    /// Asks what an authenticator needs to make a passkey. The project takes one answer, within five minutes.
    public func passkeyRegistration(_ name: AccountName) async throws(BrokerError) -> PasskeyChallenge {
        let response = try await sessions.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in project.passkeyRegistration(bearer: token) },
                apply: { response, _ throws(SupabaseError) in _ = try PasskeyChallenge(reading: response) }))
        return try SupabaseProvider.reading(response, SupabaseProvider.readChallenge)
    }

    /// Adds the passkey that an authenticator has made.
    public func registerPasskey(
        _ name: AccountName, challenge: String, credential: JSONObject
    ) async throws(BrokerError) -> Passkey {
        let credential = try SupabaseProvider.building { () throws(FieldError) in
            try PasskeyCredential(parsing: credential)
        }
        let passkey = try await passkey(
            name,
            { project, token throws(FieldError) in
                try project.registerPasskey(challenge: challenge, credential: credential, bearer: token)
            })
        context.tools.record(.passkeyRegistered(name, passkey: passkey.id))
        return passkey
    }

    /// Names a passkey.
    public func renamePasskey(
        _ name: AccountName, _ id: String, to title: String
    ) async throws(BrokerError) -> Passkey {
        try await passkey(
            name,
            { project, token throws(FieldError) in try project.renamePasskey(id, to: title, bearer: token) })
    }

    private func passkey(
        _ name: AccountName,
        _ request: @escaping @Sendable (SupabaseProject, Secret) throws(FieldError) -> HTTPRequest
    ) async throws(BrokerError) -> Passkey {
        let response = try await sessions.change(
            name,
            SupabaseOperation(
                request: request,
                apply: { response, _ throws(SupabaseError) in _ = try Passkey(reading: response) }))
        return try SupabaseProvider.reading(response) { response throws(SupabaseError) in try Passkey(reading: response)
        }
    }

    /// Removes a passkey: nobody signs in by it any more. Sessions stay.
    public func removePasskey(_ name: AccountName, _ id: String) async throws(BrokerError) {
        _ = try await sessions.change(
            name,
            SupabaseOperation(request: { project, token throws(FieldError) in
                try project.removePasskey(id, bearer: token)
            }))
        context.tools.record(.passkeyRemoved(name, passkey: id.lowercased()))
    }
}
