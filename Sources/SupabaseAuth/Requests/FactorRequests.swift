public import HTTPMessages
public import Secrets
public import StrictJSON

/// A second factor to be added.
public struct NewFactor: Sendable, Equatable {
    /// The kind of factor.
    public enum Kind: Sendable, Equatable {
        /// An authenticator app. `issuer` is the name that it shows; nil for the host of the Site URL.
        case totp(issuer: String?)
        case phone(PhoneNumber)
        /// A security key, used through a browser.
        case webAuthn
    }

    public var kind: Kind
    /// Must be unique among the user's factors; having no name counts as a name.
    public var name: String?

    /// Creates a factor.
    public init(_ kind: Kind, name: String? = nil) {
        self.kind = kind
        self.name = name
    }
}

/// Proof of a factor.
public enum FactorProof: Sendable, Equatable {
    /// The code of an authenticator app or a message.
    case code(OneTimeCode)
    /// A browser's response to the options of a challenge. `type` is that of the challenge: `create` or `request`.
    case webAuthn(type: String, credential: JSONObject)
}

/// Requests about second factors. All need the user's access token.
extension SupabaseProject {
    /// Adds a factor, which has an effect only after it is verified; the response is a ``FactorEnrolment``.
    public func enroll(_ factor: NewFactor, bearer: Secret) -> HTTPRequest {
        var body = JSONObject()
        switch factor.kind {
        case .totp(let issuer):
            body["factor_type"] = "totp"
            body["issuer"] = .optional(issuer)
        case .phone(let number):
            body["factor_type"] = "phone"
            body["phone"] = .string(number.digits)
        case .webAuthn: body["factor_type"] = "webauthn"
        }
        body["friendly_name"] = .optional(factor.name)
        return request("POST", "/factors", body: body, bearer: bearer)
    }

    /// Requests a challenge; for a phone the server sends a message. The response is a ``FactorChallenge``. A body is
    /// always sent, because the server requires it for some factors. Throws for `id`.
    public func challenge(
        factor id: String, channel: MessageChannel? = nil, bearer: Secret
    ) throws(FieldError) -> HTTPRequest {
        let body = JSONObject(["channel": .optional(channel?.rawValue)])
        return request("POST", try SupabaseProject.path(toFactor: id) + "/challenge", body: body, bearer: bearer)
    }

    /// Responds to a challenge. The response is a ``SessionResponse`` for the same session with a new refresh token.
    /// From then on, using the old refresh token ends the session, so no refresh may run at the same time, and a
    /// partial response must be kept. Throws for `id` and `challenge_id`.
    public func verify(
        factor id: String, challenge: String, proof: FactorProof, bearer: Secret
    ) throws(FieldError) -> HTTPRequest {
        guard PlainText.isUUID(challenge) else { throw FieldError(field: "challenge_id", reason: "not a UUID") }
        var body = JSONObject(["challenge_id": .string(challenge)])
        switch proof {
        case .code(let code): body["code"] = .secret(code.digits)
        case .webAuthn(let type, let credential):
            body["webauthn"] = .object(
                JSONObject(["type": .string(type), "credential_response": .object(credential)]))
        }
        let path = try SupabaseProject.path(toFactor: id) + "/verify"
        var request = request("POST", path, body: body, bearer: bearer)
        request.keepsPartialBody = true
        return request
    }

    /// Removes a factor; a verified one only with an `aal2` token. The session falls back to `aal1`, so it should be
    /// refreshed afterwards. Throws for `id`.
    public func removeFactor(_ id: String, bearer: Secret) throws(FieldError) -> HTTPRequest {
        request("DELETE", try SupabaseProject.path(toFactor: id), bearer: bearer)
    }

    private static func path(toFactor id: String) throws(FieldError) -> String {
        guard PlainText.isUUID(id) else { throw FieldError(field: "id", reason: "not a UUID") }
        return "/factors/\(id)"
    }
}
