internal import RingbackAPI
package import StrictJSON

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

    fileprivate var members: [JSONObject.Member] {
        [.init("rp_id", .string(id)), .init("rp_origins", .array(origins.map { .string($0) }))]
    }
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
        guard let id = json["id"]?.string else { throw .missing("id", in: "challenge") }
        guard let options = json["webauthn"]?["options"], options.object != nil else {
            throw .missing("webauthn", in: "challenge")
        }
        self.id = id
        makesKey = json["webauthn"]?["type"] == "create"
        self.options = options.visibleText
        expiresAt = WallInstant(json["expires_at"])
    }
}

extension BrokerCalls {
    /// Verifies a factor with an authenticator's response.
    package func verifyFactor(
        _ account: String, _ id: String, credential: JSONObject, challenge: String, party: RelyingParty? = nil
    ) throws(RingbackError) -> JSON {
        let body: [JSONObject.Member] = [
            .init("challenge_id", .string(challenge)), .init("credential", .object(credential)),
        ]
        return try project(.verifyFactor, account, id, body: JSONObject(body + (party?.members ?? [])))
    }
}

extension BrokerClient {
    /// Adds an authenticator as a second factor. It takes effect once
    /// ``verifyFactor(_:_:credential:challenge:party:)`` has succeeded.
    public func enrollWebAuthnFactor(
        _ account: String, name: String? = nil
    ) async throws(RingbackError) -> FactorEnrolment {
        var body = JSONObject([.init("factor_type", "webauthn")])
        body["friendly_name"] = name.map { .string($0) }
        let wanted = body
        return try await run { calls throws(RingbackError) in
            try FactorEnrolment(reading: try calls.project(.enrollFactor, account, body: wanted))
        }
    }

    /// Requests a challenge for the authenticator. For a factor that is not verified yet, it creates the credential.
    ///
    /// - Parameter party: for a server that has no settings of its own for it; others ignore it.
    public func webAuthnChallenge(
        _ account: String, _ factor: String, party: RelyingParty? = nil
    ) async throws(RingbackError) -> FactorChallenge {
        let body = JSONObject(party?.members ?? [])
        return try await run { calls throws(RingbackError) in
            try FactorChallenge(reading: try calls.project(.challengeFactor, account, factor, body: body))
        }
    }

    /// Verifies a factor with an authenticator's response: the session then has the second assurance level.
    ///
    /// - Parameter credential: JSON text, as `PublicKeyCredential.toJSON()` writes it.
    /// - Parameter challenge: the ``FactorChallenge/id``.
    /// - Parameter party: as for the challenge.
    @discardableResult
    public func verifyFactor(
        _ account: String, _ factor: String, credential: String, challenge: String, party: RelyingParty? = nil
    ) async throws(RingbackError) -> Account {
        let credential = try JSONText.object(credential)
        return try await run { calls throws(RingbackError) in
            try Account(
                reading: try calls.verifyFactor(
                    account, factor, credential: credential, challenge: challenge, party: party))
        }
    }
}
