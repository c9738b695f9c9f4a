public import OAuth
public import RingbackBase

/// Changes of a user's own data; nil members are not changed.
public struct UserChanges: Sendable, Equatable {
    /// Pending until it is confirmed. The project may require confirmation at both addresses.
    public var email: EmailAddress?
    /// Pending until its code is verified.
    public var phone: PhoneNumber?
    /// A new password ends all other sessions of the user.
    public var password: Secret?
    /// Needed if the project requires it.
    public var currentPassword: Secret?
    /// The code of ``SupabaseRequest/reauthentication``, needed to change the password in an older session.
    public var nonce: Secret?
    /// Merged into `user_metadata`; a member with null is removed.
    public var data: JSONObject?
    /// The channel for the code to a new number.
    public var channel: MessageChannel?

    public init() {}
    public var isEmpty: Bool { email == nil && phone == nil && password == nil && data == nil }
    /// Changes that need a confirmation.
    public var hasContacts: Bool { email != nil || phone != nil }
    /// Only the changes of address and number, without secrets.
    public var contacts: UserChanges {
        var changes = UserChanges()
        changes.email = email
        changes.phone = phone
        changes.channel = channel
        return changes
    }

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

/// Requests about the user need its access token.
extension SupabaseRequest where Response == SupabaseUser {
    /// Also shows whether an access token is still valid: the server looks up the session.
    public static var user: Self { Self("GET", "/user") }

    /// The claims of the access token change with the next refresh. `link` is used only for a new e-mail address.
    /// Throws for `password` and `current_password`, and for `data` if nothing is changed.
    public static func update(_ changes: UserChanges, link: MailLink = .none) throws(FieldError) -> Self {
        guard !changes.isEmpty else { throw FieldError(field: "data", reason: "there is nothing to change") }
        if let password = changes.password { try PasswordRule.check(password, isNew: true) }
        if let password = changes.currentPassword, password.count > PasswordRule.maxBytes {
            throw FieldError(field: "current_password", reason: "longer than \(PasswordRule.maxBytes) bytes")
        }
        var body = JSONObject([
            "email": .optional(changes.email?.text), "phone": .optional(changes.phone?.digits),
            "password": changes.password.map { .secret($0) },
            "current_password": changes.currentPassword.map { .secret($0) },
            "nonce": changes.nonce.map { .secret($0) }, "data": .optional(changes.data),
            "channel": .optional(changes.channel?.rawValue),
        ])
        guard changes.email != nil else { return Self("PUT", "/user", body: body) }
        body.set(challenge: link.challenge)
        return Self("PUT", "/user", query: query(redirectTo: link.redirectTo), body: body)
    }
}

extension SupabaseRequest where Response == SignOutResponse {
    /// Issued access tokens are accepted by the project's tables until they expire.
    public static func signOut(_ scope: SignOutScope) -> Self {
        Self("POST", "/logout", query: [("scope", scope.rawValue)])
    }
}

extension SupabaseRequest where Response == EmptyResponse {
    /// Sends the code for ``UserChanges/nonce``.
    public static var reauthentication: Self { Self("GET", "/reauthenticate") }
    public static var signOutOthers: Self { Self("POST", "/logout", query: [("scope", SignOutScope.others.rawValue)]) }

    /// `id` is ``Identity/identityID``, not the provider's subject. Throws for `id`.
    public static func removeIdentity(_ id: String) throws(FieldError) -> Self {
        Self("DELETE", "/user/identities/\(try PlainText.uuid(id))")
    }

    /// A verified factor only with an `aal2` token. The session falls back to `aal1`, so it should be refreshed
    /// afterwards. Throws for `id`.
    public static func removeFactor(_ id: String) throws(FieldError) -> Self {
        Self("DELETE", "/factors/\(try PlainText.uuid(id))")
    }

    /// If the user has a second factor, an `aal2` token is needed. Throws for `id`.
    public static func removePasskey(_ id: String) throws(FieldError) -> Self {
        Self("DELETE", "/passkeys/\(try PlainText.uuid(id))")
    }

    /// The server also ends the client's sessions of this user. Throws for `id`.
    public static func revokeConsent(client id: String) throws(FieldError) -> Self {
        Self("DELETE", "/user/oauth/grants", query: [("client_id", try PlainText.uuid(id))])
    }
}

extension SupabaseRequest where Response == SupabaseList<Consent> {
    /// A project whose OAuth server is off responds with `feature_disabled`.
    public static var consents: Self { Self("GET", "/user/oauth/grants") }
}

/// A second factor to be added.
public struct NewFactor: Sendable, Equatable {
    public enum Kind: Sendable, Equatable {
        /// `issuer` is the name that the authenticator app shows; nil for the host of the Site URL.
        case totp(issuer: String?)
        case phone(PhoneNumber)
        /// A security key or another authenticator, used by an app or a web page (Web Authentication level 3).
        case webAuthn
    }

    public var kind: Kind
    /// Must be unique among the user's factors; having no name counts as a name.
    public var name: String?

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

/// The relying party of a credential (Web Authentication level 3, section 5.1). A server with its own setting ignores
/// it. An older server takes it from each request, and rejects a request without it.
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

extension SupabaseRequest where Response == FactorEnrolment {
    /// Has an effect only after the factor is verified.
    public static func enroll(_ factor: NewFactor) -> Self {
        let members: KeyValuePairs<String, JSON?> =
            switch factor.kind {
            case .totp(let issuer): ["factor_type": "totp", "issuer": .optional(issuer)]
            case .phone(let number): ["factor_type": "phone", "phone": .string(number.digits)]
            case .webAuthn: ["factor_type": "webauthn"]
            }
        var body = JSONObject(members)
        body["friendly_name"] = .optional(factor.name)
        return Self("POST", "/factors", body: body)
    }
}

extension SupabaseRequest where Response == FactorChallenge {
    /// For a phone the server sends a message. The server requires the body for some factors. Throws for `id`.
    public static func challenge(
        factor id: String, channel: MessageChannel? = nil, party: RelyingParty? = nil
    ) throws(FieldError) -> Self {
        Self(
            "POST", "/factors/\(try PlainText.uuid(id))/challenge",
            body: JSONObject([
                "channel": .optional(channel?.rawValue), "webauthn": party.map { .object(JSONObject($0.members)) },
            ]))
    }
}

extension SupabaseRequest where Response == SessionResponse {
    /// The response has a new refresh token of the same session. From then on, using the old one ends the session, so
    /// no refresh may run at the same time, and a partial response must be kept. Throws for `id`, `challenge_id` and
    /// `credential`.
    public static func verify(factor id: String, challenge: String, proof: FactorProof) throws(FieldError) -> Self {
        var body = JSONObject(["challenge_id": .string(try PlainText.uuid(challenge, field: "challenge_id"))])
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
        return Self("POST", "/factors/\(try PlainText.uuid(id))/verify", body: body, keepsPartialBody: true)
    }
}

/// `PublicKeyCredential.toJSON()` (Web Authentication level 3, section 5.1). Only its form is checked; the server
/// verifies it.
public struct PasskeyCredential: Sendable, Equatable {
    /// The WebAuthn operation of the authenticator, with the server's names.
    public enum Ceremony: String, Sendable {
        /// `navigator.credentials.create()`: a key was made.
        case create
        /// `navigator.credentials.get()`: a key was used.
        case request
    }

    let document: JSONObject

    /// Derived from the members of the response; nil if it has those of neither.
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
extension SupabaseRequest where Response == PasskeyChallenge {
    /// The body is always sent: a project with CAPTCHA protection requires one.
    public static func passkeySignIn(captcha: Secret? = nil) -> Self {
        var body = JSONObject()
        body.set(captcha: captcha)
        return Self("POST", "/passkeys/authentication/options", body: body)
    }

    public static var passkeyRegistration: Self { Self("POST", "/passkeys/registration/options", body: JSONObject()) }
}

extension SupabaseRequest where Response == SessionResponse {
    /// Throws for `challenge_id`.
    public static func passkey(challenge: String, credential: PasskeyCredential) throws(FieldError) -> Self {
        Self("POST", "/passkeys/authentication/verify", body: try credential.answer(to: challenge))
    }
}

extension SupabaseRequest where Response == SupabaseList<Passkey> {
    public static var passkeys: Self { Self("GET", "/passkeys/") }
}

extension SupabaseRequest where Response == Passkey {
    /// Throws for `challenge_id`.
    public static func registerPasskey(challenge: String, credential: PasskeyCredential) throws(FieldError) -> Self {
        Self("POST", "/passkeys/registration/verify", body: try credential.answer(to: challenge))
    }

    /// Throws for `id` and `friendly_name` (1 to 120 bytes).
    public static func renamePasskey(_ id: String, to name: String) throws(FieldError) -> Self {
        guard (1...120).contains(name.utf8.count) else {
            throw FieldError(field: "friendly_name", reason: "not 1 to 120 bytes")
        }
        return Self("PATCH", "/passkeys/\(try PlainText.uuid(id))", body: JSONObject(["friendly_name": .string(name)]))
    }
}

extension PasskeyCredential {
    fileprivate func answer(to challenge: String) throws(FieldError) -> JSONObject {
        let id = try PlainText.uuid(challenge, field: "challenge_id")
        return JSONObject(["challenge_id": .string(id), "credential": .object(document)])
    }
}

extension SupabaseRequest where Response == JSONWebKeySet {
    /// None for a project that signs with a shared secret. They may be cached for ten minutes.
    public static var keys: Self { Self("GET", "/.well-known/jwks.json") }
}

extension SupabaseRequest where Response == SupabaseSettings {
    public static var settings: Self { Self("GET", "/settings") }
}

extension SupabaseRequest where Response == ProfileResponse {
    /// The app's own row about the user: the one of `table` in which `key` equals `value`. Throws for `profile` if a
    /// name is not `[A-Za-z_][A-Za-z0-9_]{0,62}`.
    public static func row(in table: String, where key: String, is value: String) throws(FieldError) -> Self {
        guard SupabaseProject.isName(table), SupabaseProject.isName(key), !SupabaseProject.words.contains(key) else {
            throw FieldError(field: "profile", reason: "not a name of a table and a column")
        }
        // Two rows are requested so that a key that is not unique is noticed.
        let query = [("select", "*"), (key, "eq.\(value)"), ("limit", "2")]
        return Self("GET", "/rest/v1/\(table)", query: query, gatewayFor: "profile")
    }
}

extension SupabaseRequest where Response == FunctionResponse {
    /// As the user. Throws for `function`.
    public static func call(_ function: String, arguments: JSONObject) throws(FieldError) -> Self {
        guard SupabaseProject.isName(function) else {
            throw FieldError(field: "function", reason: "not a function's name")
        }
        return Self("POST", "/rest/v1/rpc/\(function)", body: arguments, gatewayFor: "function")
    }
}

extension SupabaseRequest where Response == EdgeFunctionResponse {
    /// As the user. Throws for `function`.
    public static func invoke(_ function: String, arguments: JSONObject) throws(FieldError) -> Self {
        guard SupabaseProject.isEdgeFunction(function) else {
            throw FieldError(field: "function", reason: "not an Edge Function's name")
        }
        return Self("POST", "/functions/v1/\(function)", body: arguments, gatewayFor: "function")
    }
}

extension SupabaseProject {
    /// True for a database name that needs no quotes: `[A-Za-z_][A-Za-z0-9_]{0,62}`.
    public static func isName(_ text: String) -> Bool {
        guard (1...63).contains(text.utf8.count), let first = text.utf8.first else { return false }
        let isLetter = { (byte: UInt8) in (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "_") }
        return isLetter(first) && text.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) }
    }

    /// True for the name of an Edge Function: `[A-Za-z0-9_-]+`. A path below a function is not supported.
    public static func isEdgeFunction(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { PlainText.isNameByte($0) && !".:".utf8.contains($0) }
    }

    /// Parameters of PostgREST that are not columns.
    fileprivate static let words: Set = [
        "select", "limit", "offset", "order", "and", "or", "not", "columns", "on_conflict",
    ]
}
