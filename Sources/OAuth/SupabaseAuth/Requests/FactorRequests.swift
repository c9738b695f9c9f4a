public import HTTPMessages
public import Secrets
internal import StrictJSON

/// A second factor to be added.
public struct NewFactor: Sendable, Equatable {
    /// The kind of factor.
    public enum Kind: Sendable, Equatable {
        /// An authenticator app. `issuer` is the name that it shows; nil for the host of the Site URL.
        case totp(issuer: String?)
        case phone(PhoneNumber)
        /// A security key or another authenticator, used by an app or a web page (Web Authentication level 3).
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
    /// An authenticator's response to the options of a challenge, and the relying party of that challenge.
    case webAuthn(PasskeyCredential, RelyingParty?)
}

/// The relying party of a credential (Web Authentication level 3, section 5.1). A server that has its own setting
/// ignores this value. An older server takes it from each request, and rejects a request without it.
public struct RelyingParty: Sendable, Equatable {
    /// A domain: the credential can be used only at its origins.
    let id: String
    /// The origins where the credential is made or used, as `https://app.example.org`.
    let origins: [String]

    /// Throws for `rp_id` and `rp_origins`: both are needed.
    public init(id: String, origins: [String]) throws(FieldError) {
        guard PlainText.isToken(id), id.utf8.count <= 253 else {
            throw FieldError(field: "rp_id", reason: "not a domain")
        }
        guard !origins.isEmpty, origins.allSatisfy(PlainText.isToken) else {
            throw FieldError(field: "rp_origins", reason: "not a list of origins")
        }
        self.id = id
        self.origins = origins
    }

    fileprivate var members: [JSONObject.Member] {
        [.init("rpId", .string(id)), .init("rpOrigins", .array(origins.map { .string($0) }))]
    }
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
        factor id: String, channel: MessageChannel? = nil, party: RelyingParty? = nil, bearer: Secret
    ) throws(FieldError) -> HTTPRequest {
        var body = JSONObject(["channel": .optional(channel?.rawValue)])
        body["webauthn"] = party.map { .object(JSONObject($0.members)) }
        return request("POST", try SupabaseProject.path(toFactor: id) + "/challenge", body: body, bearer: bearer)
    }

    /// Responds to a challenge. The response is a ``SessionResponse`` for the same session with a new refresh token.
    /// From then on, using the old refresh token ends the session, so no refresh may run at the same time, and a
    /// partial response must be kept. Throws for `id`, `challenge_id` and `credential`.
    public func verify(
        factor id: String, challenge: String, proof: FactorProof, bearer: Secret
    ) throws(FieldError) -> HTTPRequest {
        guard PlainText.isUUID(challenge) else { throw FieldError(field: "challenge_id", reason: "not a UUID") }
        var body = JSONObject(["challenge_id": .string(challenge)])
        switch proof {
        case .code(let code): body["code"] = .secret(code.digits)
        case .webAuthn(let credential, let party):
            guard let ceremony = credential.ceremony else {
                throw FieldError(
                    field: "credential", reason: "its response has neither an attestationObject nor a signature")
            }
            let answer: [JSONObject.Member] = [
                .init("type", .string(ceremony.rawValue)), .init("credential_response", .object(credential.document)),
            ]
            body["webauthn"] = .object(JSONObject((party?.members ?? []) + answer))
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
