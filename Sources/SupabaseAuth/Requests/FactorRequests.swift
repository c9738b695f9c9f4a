public import HTTPMessages
public import Secrets
internal import StrictJSON

/// A second factor to be.
public struct NewFactor: Sendable, Equatable {
    /// What the factor is.
    public enum Kind: Sendable, Equatable {
        /// An authenticator app. `issuer` is the name it shows; nil for the Site URL's host.
        case totp(issuer: String?)
        case phone(PhoneNumber)
        /// A key of an authenticator, which an app or a page in a browser asks (Web Authentication level 3).
        case webAuthn
    }

    public var kind: Kind
    /// Unique among the user's factors; two factors without a name collide as well.
    public var name: String?

    /// A factor.
    public init(_ kind: Kind, name: String? = nil) {
        self.kind = kind
        self.name = name
    }
}

/// What proves a factor.
public enum FactorProof: Sendable, Equatable {
    /// An authenticator app's or a message's code.
    case code(OneTimeCode)
    /// What an authenticator answered to the options of a challenge, and the party of that challenge.
    case webAuthn(PasskeyCredential, RelyingParty?)
}

/// Whom a credential is for (Web Authentication level 3, section 5.1). A server with settings of its own for it ignores
/// this one; an older server takes it from each request, and refuses a request without it.
public struct RelyingParty: Sendable, Equatable {
    /// A domain: the credential is offered at its origins alone.
    let id: String
    /// Where the ceremony may be held, as `https://app.example.org`.
    let origins: [String]

    /// Throws for `rp_id` and `rp_origins`: one is nothing without the other.
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

/// Requests about second factors: all with the user's access token.
extension SupabaseProject {
    /// Adds a factor, which counts once it is verified; the answer is a ``FactorEnrolment``.
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

    /// Asks for a challenge, by message for a phone; the answer is a ``FactorChallenge``. There is always a body: for
    /// some factors the server refuses a request without one. Throws for `id`.
    public func challenge(
        factor id: String, channel: MessageChannel? = nil, party: RelyingParty? = nil, bearer: Secret
    ) throws(FieldError) -> HTTPRequest {
        var body = JSONObject(["channel": .optional(channel?.rawValue)])
        body["webauthn"] = party.map { .object(JSONObject($0.members)) }
        return request("POST", try SupabaseProject.path(toFactor: id) + "/challenge", body: body, bearer: bearer)
    }

    /// Answers a challenge; the response is a ``SessionResponse`` of the same session with a new refresh token, after
    /// which the one before ends the session: no refresh may run beside this, and even a part of the response is wanted.
    /// Throws for `id`, `challenge_id` and `credential`.
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

    /// Removes a factor; a verified one only with an `aal2` token. Refresh afterwards: the session falls back to
    /// `aal1`. Throws for `id`.
    public func removeFactor(_ id: String, bearer: Secret) throws(FieldError) -> HTTPRequest {
        request("DELETE", try SupabaseProject.path(toFactor: id), bearer: bearer)
    }

    private static func path(toFactor id: String) throws(FieldError) -> String {
        guard PlainText.isUUID(id) else { throw FieldError(field: "id", reason: "not a UUID") }
        return "/factors/\(id)"
    }
}
