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
        // The project's clock may differ from ours: one that seems to have expired gets the usual lifetime.
        let stated = challenge.expiresAt.map { WallInstant(seconds: $0) - provider.clock.wallInstant } ?? .zero
        let lifetime = stated > .zero ? min(stated, SupabaseFlow.passkeyTimeout) : SupabaseFlow.passkeyTimeout
        return .flow(awaited, atMost: lifetime)
    }
}

extension SupabaseFlow {
    static let passkeyTimeout: Duration = .seconds(300)
}

extension SupabaseOperations {
    public func passkeys(_ name: AccountName) async throws(BrokerError) -> [Passkey] {
        try await requests(of: name).ask(.passkeys, .borrows).entries
    }

    /// The options with which an authenticator makes one passkey, within five minutes.
    public func passkeyRegistration(_ name: AccountName) async throws(BrokerError) -> PasskeyChallenge {
        try await requests(of: name).ask(.passkeyRegistration)
    }

    public func registerPasskey(
        _ name: AccountName, challenge: String, credential: JSONObject
    ) async throws(BrokerError) -> Passkey {
        let credential = try SupabaseProvider.building(try PasskeyCredential(parsing: credential))
        let passkey = try await requests(of: name).ask(
            try .registerPasskey(challenge: challenge, credential: credential))
        context.tools.record(.passkeyRegistered(name, passkey: passkey.id))
        return passkey
    }

    public func renamePasskey(
        _ name: AccountName, _ id: String, to title: String
    ) async throws(BrokerError) -> Passkey {
        try await requests(of: name).ask(try .renamePasskey(id, to: title))
    }

    /// Removes a passkey. It cannot be used for sign-ins any more. Sessions stay.
    public func removePasskey(_ name: AccountName, _ id: String) async throws(BrokerError) {
        try await requests(of: name).ask(try .removePasskey(id))
        context.tools.record(.passkeyRemoved(name, passkey: id.lowercased()))
    }
}
