public import BrokerCore
public import RingbackBase
public import SupabaseAuth

/// Sign-ins by passkey: an app's authenticator signs the project's challenge. Each challenge is used once, so a wrong
/// credential ends the flow.
extension FlowStart {
    func passkey() async throws(BrokerError) -> Beginning {
        let challenge = try await provider.ask(
            project.passkeySignIn(captcha: fields.captcha), on: .signIn, SupabaseProvider.readChallenge)
        var awaited = try await redirected(isNeeded: false, message: nil)
        awaited.passkey = challenge
        // The project's clock may differ from ours. A challenge that seems to have expired already gets the usual
        // lifetime.
        let stated = challenge.expiresAt.map { WallInstant(seconds: $0) - provider.clock.wallInstant } ?? .zero
        let lifetime = stated > .zero ? min(stated, SupabaseFlow.passkeyTimeout) : SupabaseFlow.passkeyTimeout
        return .flow(awaited, atMost: lifetime)
    }
}

extension SupabaseFlow {
    /// The server deletes a challenge after this time.
    static let passkeyTimeout: Duration = .seconds(300)
}

/// The passkeys of the user who is signed in.
extension SupabaseOperations {
    /// Lists the passkeys of the signed-in user.
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

    /// Requests the options with which an authenticator makes a passkey. The project accepts one credential for them,
    /// within five minutes.
    public func passkeyRegistration(_ name: AccountName) async throws(BrokerError) -> PasskeyChallenge {
        let response = try await sessions.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in project.passkeyRegistration(bearer: token) },
                apply: { response, _ throws(SupabaseError) in _ = try PasskeyChallenge(reading: response) }))
        return try SupabaseProvider.reading(response, SupabaseProvider.readChallenge)
    }

    /// Registers the passkey that an authenticator has made.
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

    /// Renames a passkey.
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

    /// Removes a passkey. It cannot be used for sign-ins any more. Sessions stay.
    public func removePasskey(_ name: AccountName, _ id: String) async throws(BrokerError) {
        _ = try await sessions.change(
            name,
            SupabaseOperation(request: { project, token throws(FieldError) in
                try project.removePasskey(id, bearer: token)
            }))
        context.tools.record(.passkeyRemoved(name, passkey: id.lowercased()))
    }
}
