public import RingbackBase

/// Changes that a user makes to its own data; nil members are not changed.
public struct UserChanges: Sendable, Equatable {
    /// Pending until it is confirmed. The project may require confirmation at both addresses.
    public var email: EmailAddress?
    /// Pending until its code is verified.
    public var phone: PhoneNumber?
    /// A new password ends all other sessions of the user.
    public var password: Secret?
    /// Needed if the project requires it.
    public var currentPassword: Secret?
    /// The code of ``SupabaseProject/reauthentication(bearer:)``, needed to change the password in an older session.
    public var nonce: Secret?
    /// Merged into `user_metadata`; a member with null is removed.
    public var data: JSONObject?
    /// The channel for the code to a new number.
    public var channel: MessageChannel?

    /// Creates an empty change.
    public init() {}

    /// True if nothing is changed.
    public var isEmpty: Bool { email == nil && phone == nil && password == nil && data == nil }

    /// True if the address or number is changed, which needs a confirmation.
    public var hasContacts: Bool { email != nil || phone != nil }

    /// Only the changes of address and number, without secrets.
    public var contacts: UserChanges {
        var changes = UserChanges()
        changes.email = email
        changes.phone = phone
        changes.channel = channel
        return changes
    }

    /// All changes except those of address and number.
    public var withoutContacts: UserChanges {
        var changes = self
        changes.email = nil
        changes.phone = nil
        changes.channel = nil
        return changes
    }
}

/// Which sessions a sign-out ends.
public enum SignOutScope: String, Sendable {
    /// This session.
    case local
    /// Every session of the user.
    case global
    /// Every session but this one.
    case others
}

/// Requests of a user about itself. All need its access token.
extension SupabaseProject {
    /// Requests the user. This also shows whether an access token is still valid, because the server looks up the
    /// session.
    public func user(bearer: Secret) -> HTTPRequest { request("GET", "/user", bearer: bearer) }

    /// Changes the user; the response is a ``SupabaseUser``. The claims of the access token change with the next
    /// refresh. `link` is used only for a new e-mail address. Throws for `password` and `current_password`, and for
    /// `data` if nothing is changed.
    public func update(_ changes: UserChanges, link: MailLink = .none, bearer: Secret) throws(FieldError) -> HTTPRequest
    {
        guard !changes.isEmpty else { throw FieldError(field: "data", reason: "there is nothing to change") }
        if let password = changes.password { try PasswordRule.check(password, isNew: true) }
        if let password = changes.currentPassword, password.count > PasswordRule.maxBytes {
            throw FieldError(field: "current_password", reason: "longer than \(PasswordRule.maxBytes) bytes")
        }
        var body = JSONObject([
            "email": .optional(changes.email?.text), "phone": .optional(changes.phone?.digits),
            "password": changes.password.map { .secret($0) },
            "current_password": changes.currentPassword.map { .secret($0) },
            "nonce": changes.nonce.map { .secret($0) }, "data": changes.data.map { .object($0) },
            "channel": .optional(changes.channel?.rawValue),
        ])
        if changes.email != nil { body.set(challenge: link.challenge) }
        let query = SupabaseProject.query(redirectTo: changes.email == nil ? nil : link.redirectTo)
        return request("PUT", "/user", query: query, body: body, bearer: bearer)
    }

    /// Requests that the code for ``UserChanges/nonce`` is sent; the response is a ``MessageResponse``.
    public func reauthentication(bearer: Secret) -> HTTPRequest { request("GET", "/reauthenticate", bearer: bearer) }

    /// Ends sessions; the response is a ``SignOutResponse``. Issued access tokens are accepted by the project's tables
    /// until they expire.
    public func signOut(_ scope: SignOutScope, bearer: Secret) -> HTTPRequest {
        request("POST", "/logout", query: [("scope", scope.rawValue)], bearer: bearer)
    }

    /// Removes an identity from the user. `identityID` is ``Identity/identityID``, not the provider's subject. Throws
    /// for `id`.
    public func removeIdentity(_ identityID: String, bearer: Secret) throws(FieldError) -> HTTPRequest {
        guard PlainText.isUUID(identityID) else { throw FieldError(field: "id", reason: "not a UUID") }
        return request("DELETE", "/user/identities/\(identityID)", bearer: bearer)
    }
}

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

/// An authenticator's response: `PublicKeyCredential.toJSON()` (Web Authentication level 3, section 5.1). Only its form
/// is checked here; the server verifies it.
public struct PasskeyCredential: Sendable, Equatable {
    /// The WebAuthn operation of the authenticator, with the server's names.
    public enum Ceremony: String, Sendable {
        /// `navigator.credentials.create()`: a key was made.
        case create
        /// `navigator.credentials.get()`: a key was used.
        case request
    }

    let document: JSONObject

    /// The operation, derived from the members of the response; nil if it has the members of neither.
    var ceremony: Ceremony? {
        let response = document["response"]?.object
        if response?.word("attestationObject") != nil { return .create }
        return response?.word("signature") == nil ? nil : .request
    }

    /// Throws for `credential` if it does not have this form. A challenge can be used only once, so an obviously
    /// invalid response is not sent.
    public init(parsing document: JSONObject) throws(FieldError) {
        guard document.word("id") != nil, document["response"]?.object?.word("clientDataJSON") != nil else {
            throw FieldError(
                field: "credential",
                reason: "not a credential as PublicKeyCredential.toJSON() writes it, with id and response")
        }
        guard document["type"] == nil || document["type"] == "public-key" else {
            throw FieldError(field: "credential", reason: "its type is not public-key")
        }
        self.document = document
    }
}

/// Requests about passkeys. The WebAuthn ceremony runs in an app or web page at an origin that the project allows.
extension SupabaseProject {
    /// The maximum length of a passkey's name in bytes.
    public static let maxPasskeyName = 120

    /// Requests a challenge for a sign-in; the response is a ``PasskeyChallenge``. A body is always sent: a project
    /// with CAPTCHA protection requires one.
    public func passkeySignIn(captcha: Secret? = nil) -> HTTPRequest {
        var body = JSONObject()
        body.set(captcha: captcha)
        return request("POST", "/passkeys/authentication/options", body: body)
    }

    /// Exchanges an authenticator's response for a session; the response is a ``SessionResponse``. Throws for
    /// `challenge_id`.
    public func passkeyGrant(challenge: String, credential: PasskeyCredential) throws(FieldError) -> HTTPRequest {
        let body = try SupabaseProject.answer(to: challenge, credential)
        return request("POST", "/passkeys/authentication/verify", body: body)
    }

    /// Requests a challenge for a new passkey; the response is a ``PasskeyChallenge``.
    public func passkeyRegistration(bearer: Secret) -> HTTPRequest {
        request("POST", "/passkeys/registration/options", body: JSONObject(), bearer: bearer)
    }

    /// Adds a passkey to the user; the response is a ``Passkey``. Throws for `challenge_id`.
    public func registerPasskey(
        challenge: String, credential: PasskeyCredential, bearer: Secret
    ) throws(FieldError) -> HTTPRequest {
        let body = try SupabaseProject.answer(to: challenge, credential)
        return request("POST", "/passkeys/registration/verify", body: body, bearer: bearer)
    }

    /// Requests the user's passkeys; the response is a ``PasskeyList``.
    public func passkeys(bearer: Secret) -> HTTPRequest { request("GET", "/passkeys/", bearer: bearer) }

    /// Renames a passkey; the response is a ``Passkey``. Throws for `id` and `friendly_name` (1 to 120 bytes).
    public func renamePasskey(_ id: String, to name: String, bearer: Secret) throws(FieldError) -> HTTPRequest {
        guard (1...SupabaseProject.maxPasskeyName).contains(name.utf8.count) else {
            throw FieldError(field: "friendly_name", reason: "not 1 to \(SupabaseProject.maxPasskeyName) bytes")
        }
        let path = try SupabaseProject.path(toPasskey: id)
        return request("PATCH", path, body: JSONObject(["friendly_name": .string(name)]), bearer: bearer)
    }

    /// Removes a passkey; the response is a ``RemovalResponse``. If the user has a second factor, an `aal2` token is
    /// needed. Throws for `id`.
    public func removePasskey(_ id: String, bearer: Secret) throws(FieldError) -> HTTPRequest {
        request("DELETE", try SupabaseProject.path(toPasskey: id), bearer: bearer)
    }

    private static func answer(
        to challenge: String, _ credential: PasskeyCredential
    ) throws(FieldError) -> JSONObject {
        guard PlainText.isUUID(challenge) else { throw FieldError(field: "challenge_id", reason: "not a UUID") }
        return JSONObject(["challenge_id": .string(challenge), "credential": .object(credential.document)])
    }

    private static func path(toPasskey id: String) throws(FieldError) -> String {
        guard PlainText.isUUID(id) else { throw FieldError(field: "id", reason: "not a UUID") }
        return "/passkeys/\(id)"
    }
}

/// Requests about the project: its keys, settings, tables and functions.
extension SupabaseProject {
    /// Requests the public keys of access tokens, a ``JSONWebKeySet``; empty for a project that signs with a shared
    /// secret. They may be cached for ten minutes.
    public func keys() -> HTTPRequest { request("GET", "/.well-known/jwks.json") }

    /// Requests the enabled sign-in methods, see ``SupabaseSettings``.
    public func settings() -> HTTPRequest { request("GET", "/settings") }

    /// Requests the Auth server's version, see ``SupabaseHealth``.
    public func health() -> HTTPRequest { request("GET", "/health") }

    /// Requests the app's own row about the user: the one of `table` in which `key` equals `value`. The response is a
    /// ``ProfileResponse``. Throws for `profile` if a name is not `[A-Za-z_][A-Za-z0-9_]{0,62}` or there are no tables
    /// (bare Auth server).
    public func row(
        in table: String, where key: String, is value: String, bearer: Secret
    ) throws(FieldError) -> HTTPRequest {
        let root = try tables(field: "profile")
        guard SupabaseProject.isName(table), SupabaseProject.isName(key), !SupabaseProject.words.contains(key) else {
            throw FieldError(field: "profile", reason: "not a name of a table and a column")
        }
        // Two rows are requested so that a key that is not unique is noticed.
        let query = [("select", "*"), (key, "eq.\(value)"), ("limit", "2")]
        return request("GET", at: "\(root)/\(table)", query: query, body: nil, bearer: bearer)
    }

    /// Calls a function of the project's database as the user; the response is a ``FunctionResponse``. Throws for
    /// `function`.
    public func call(_ function: String, arguments: JSONObject, bearer: Secret) throws(FieldError) -> HTTPRequest {
        let root = try tables(field: "function")
        guard SupabaseProject.isName(function) else {
            throw FieldError(field: "function", reason: "not a function's name")
        }
        return request("POST", at: "\(root)/rpc/\(function)", query: [], body: arguments, bearer: bearer)
    }

    /// True for a database name that needs no quotes: `[A-Za-z_][A-Za-z0-9_]{0,62}`.
    public static func isName(_ text: String) -> Bool {
        guard (1...63).contains(text.utf8.count), let first = text.utf8.first else { return false }
        let isLetter = { (byte: UInt8) in (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "_") }
        return isLetter(first) && text.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) }
    }

    /// Parameters of PostgREST that are not columns.
    private static let words: Set<String> = [
        "select", "limit", "offset", "order", "and", "or", "not", "columns", "on_conflict",
    ]

    private func tables(field: String) throws(FieldError) -> String {
        guard let restURL else { throw FieldError(field: field, reason: "a bare Auth server has no tables") }
        return restURL
    }
}
