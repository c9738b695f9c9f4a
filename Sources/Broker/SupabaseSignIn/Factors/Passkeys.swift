public import BrokerCore
public import RingbackBase
public import SupabaseAuth

/// Sign-ins by passkey: an app's authenticator signs the project's challenge. Each challenge is used once, so a wrong
/// credential ends the flow.
extension FlowStart {
    func passkey() async throws(BrokerError) -> Beginning {
        let challenge = try await provider.ask(.passkeySignIn(captcha: fields.captcha))
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
    public func passkeys(_ name: AccountName) async throws(BrokerError) -> [Passkey] {
        try await sessions.ask(name, .passkeys, .borrows).entries
    }

    /// Requests the options with which an authenticator makes a passkey. The project accepts one credential for them,
    /// within five minutes.
    public func passkeyRegistration(_ name: AccountName) async throws(BrokerError) -> PasskeyChallenge {
        try await sessions.ask(name, .passkeyRegistration)
    }

    /// Registers the passkey that an authenticator has made.
    public func registerPasskey(
        _ name: AccountName, challenge: String, credential: JSONObject
    ) async throws(BrokerError) -> Passkey {
        let credential = try SupabaseProvider.building { () throws(FieldError) in
            try PasskeyCredential(parsing: credential)
        }
        let passkey = try await sessions.ask(
            name, try .registerPasskey(challenge: challenge, credential: credential))
        context.tools.record(.passkeyRegistered(name, passkey: passkey.id))
        return passkey
    }

    public func renamePasskey(
        _ name: AccountName, _ id: String, to title: String
    ) async throws(BrokerError) -> Passkey {
        try await sessions.ask(name, try .renamePasskey(id, to: title))
    }

    /// Removes a passkey. It cannot be used for sign-ins any more. Sessions stay.
    public func removePasskey(_ name: AccountName, _ id: String) async throws(BrokerError) {
        try await sessions.ask(name, try .removePasskey(id))
        context.tools.record(.passkeyRemoved(name, passkey: id.lowercased()))
    }
}
