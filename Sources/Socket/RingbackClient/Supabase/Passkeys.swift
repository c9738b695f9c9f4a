internal import RingbackAPI
package import RingbackBase

public struct Passkey: Sendable, Equatable {
    /// What ``BrokerClient/renamePasskey(_:_:to:)`` and ``BrokerClient/removePasskey(_:_:)`` take.
    public var id: String
    public var name: String?
    public var createdAt: WallInstant?
    /// Nil before the first sign-in by it.
    public var lastUsedAt: WallInstant?

    package init(reading json: JSON) throws(RingbackError) {
        id = try json.text("id", of: "passkey")
        name = json["friendly_name"]?.string
        createdAt = WallInstant(text: json["created_at"])
        lastUsedAt = WallInstant(text: json["last_used_at"])
    }
}

/// A challenge for an authenticator, valid once.
public struct PasskeyChallenge: Sendable, Equatable {
    /// What ``BrokerClient/registerPasskey(_:challenge:credential:)`` takes.
    public var id: String
    /// JSON text, for `PublicKeyCredential.parseCreationOptionsFromJSON()` and similar functions.
    public var options: String
    /// After this instant the project accepts no response.
    public var expiresAt: WallInstant?

    package init(reading json: JSON) throws(RingbackError) {
        id = try json.text("challenge_id", of: "challenge")
        guard let options = json["options"], options.object != nil else { throw .missing("options", in: "challenge") }
        self.options = options.visibleText
        expiresAt = WallInstant(json["expires_at"])
    }
}

extension BrokerClient {
    /// Finishes a sign-in that ``SupabaseSignInFields/passkey()`` has begun. `credential` is JSON text, as
    /// `PublicKeyCredential.toJSON()` writes the authenticator's response to ``Flow/passkeyOptions``. A wrong response
    /// ends the sign-in: the project accepts one only. Throws as ``verify(_:code:)``.
    @discardableResult
    public func verify(_ flow: Flow, credential: String) async throws(RingbackError) -> Account {
        try await verify(flow, ["credential": try JSONText.object(credential)])
    }

    public func passkeys(_ account: String) async throws(RingbackError) -> [Passkey] {
        try await project(.listPasskeys, account) { answer throws(RingbackError) in
            try answer.list("passkeys", Passkey.init(reading:))
        }
    }

    /// Requests the options that an authenticator needs to make a passkey for the signed-in user.
    public func passkeyRegistration(_ account: String) async throws(RingbackError) -> PasskeyChallenge {
        try await project(.beginPasskey, account, body: [:], reading: PasskeyChallenge.init(reading:))
    }

    /// Adds the passkey that an authenticator has made: from now on the user can sign in with it. `challenge` is the
    /// ``PasskeyChallenge/id``; `credential` is JSON text, as `PublicKeyCredential.toJSON()` writes it.
    @discardableResult
    public func registerPasskey(
        _ account: String, challenge: String, credential: String
    ) async throws(RingbackError) -> Passkey {
        try await project(
            .registerPasskey, account,
            body: ["challenge_id": challenge, "credential": try JSONText.object(credential)],
            reading: Passkey.init(reading:))
    }

    /// Names a passkey: 1 to 120 bytes.
    @discardableResult
    public func renamePasskey(_ account: String, _ id: String, to name: String) async throws(RingbackError) -> Passkey {
        try await project(.renamePasskey, account, [id], body: ["friendly_name": name], reading: Passkey.init(reading:))
    }

    /// Removes a passkey: it can no longer be used to sign in.
    public func removePasskey(_ account: String, _ id: String) async throws(RingbackError) {
        try await project(.removePasskey, account, [id]) { _ in }
    }
}

/// Whom a credential is for (Web Authentication level 3, section 5.1).
public struct RelyingParty: Sendable, Equatable {
    /// A domain: the credential is offered at its origins alone.
    public var id: String
    /// The origins at which the ceremony may be performed, as `https://app.example.org`.
    public var origins: [String]

    public init(id: String, origins: [String]) {
        self.id = id
        self.origins = origins
    }

    fileprivate var members: [JSONObject.Member] { (["rp_id": id, "rp_origins": origins] as JSONObject).members }
}

/// The challenge for an authenticator that is a second factor, at a Supabase project.
public struct FactorChallenge: Sendable, Equatable {
    /// What ``BrokerClient/verifyFactor(_:_:credential:challenge:party:)`` takes.
    public var id: String
    /// True if the authenticator must create a credential (`navigator.credentials.create()`), as for a factor that is
    /// not verified yet; false if it must use an existing one (`get()`).
    public var makesKey: Bool
    /// JSON text: what `PublicKeyCredential.parseCreationOptionsFromJSON()` or `parseRequestOptionsFromJSON()` takes.
    public var options: String
    /// After this instant the project accepts no response.
    public var expiresAt: WallInstant?

    package init(reading json: JSON) throws(RingbackError) {
        id = try json.text("id", of: "challenge")
        guard let options = json["webauthn"]?["options"], options.object != nil else {
            throw .missing("webauthn", in: "challenge")
        }
        makesKey = json["webauthn"]?["type"] == "create"
        self.options = options.visibleText
        expiresAt = WallInstant(json["expires_at"])
    }
}

extension BrokerClient {
    /// Adds an authenticator as a second factor. It takes effect once
    /// ``verifyFactor(_:_:credential:challenge:party:)`` has succeeded.
    public func enrollWebAuthnFactor(
        _ account: String, name: String? = nil
    ) async throws(RingbackError) -> FactorEnrolment {
        try await project(
            .enrollFactor, account, body: ["factor_type": "webauthn", "friendly_name": name],
            reading: FactorEnrolment.init(reading:))
    }

    /// Requests a challenge for the authenticator. For a factor that is not verified yet, it creates the credential.
    /// `party` is for a server that has no settings of its own for it; others ignore it.
    public func webAuthnChallenge(
        _ account: String, _ factor: String, party: RelyingParty? = nil
    ) async throws(RingbackError) -> FactorChallenge {
        try await project(
            .challengeFactor, account, [factor], body: JSONObject(party?.members ?? []),
            reading: FactorChallenge.init(reading:))
    }

    /// Verifies a factor by an authenticator's response: the session then has the second assurance level. `credential`
    /// is JSON text, as `PublicKeyCredential.toJSON()` writes it; `challenge` is a ``FactorChallenge/id``.
    @discardableResult
    public func verifyFactor(
        _ account: String, _ factor: String, credential: String, challenge: String, party: RelyingParty? = nil
    ) async throws(RingbackError) -> Account {
        let body: JSONObject = ["challenge_id": challenge, "credential": try JSONText.object(credential)]
        return try await project(
            .verifyFactor, account, [factor], body: JSONObject(body.members + (party?.members ?? [])),
            reading: Account.init(reading:))
    }
}
