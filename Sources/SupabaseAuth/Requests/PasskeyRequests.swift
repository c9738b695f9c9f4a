public import HTTPMessages
public import Secrets
public import StrictJSON

/// What an authenticator answered: `PublicKeyCredential.toJSON()` (Web Authentication level 3, section 5.1). Its
/// contents are for the server to judge.
public struct PasskeyCredential: Sendable, Equatable {
    /// What was asked of the authenticator, in the server's words.
    public enum Ceremony: String, Sendable {
        /// `navigator.credentials.create()`: a key was made.
        case create
        /// `navigator.credentials.get()`: a key was used.
        case request
    }

    let document: JSONObject

    /// Told by what the response has; nil if it has neither.
    var ceremony: Ceremony? {
        let response = document["response"]?.object
        if response?.word("attestationObject") != nil { return .create }
        return response?.word("signature") == nil ? nil : .request
    }

    /// Throws for `credential`, if it is not the form of one at all: a challenge is taken once, and what is plainly no
    /// answer must not cost it.
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

/// Requests about passkeys. The ceremony itself is an app's or a web page's, at an origin that the project has listed.
extension SupabaseProject {
    /// The longest name of a passkey, in bytes, as the server counts.
    public static let maxPasskeyName = 120

    /// Asks for what an authenticator is to sign for a sign-in; the answer is a ``PasskeyChallenge``. There is always a
    /// body: where the project asks people for a puzzle, it refuses a request without one.
    public func passkeySignIn(captcha: Secret? = nil) -> HTTPRequest {
        var body = JSONObject()
        body.set(captcha: captcha)
        return request("POST", "/passkeys/authentication/options", body: body)
    }

    /// Trades an authenticator's answer; the answer is a ``SessionResponse``. Throws for `challenge_id`.
    public func passkeyGrant(challenge: String, credential: PasskeyCredential) throws(FieldError) -> HTTPRequest {
        let body = try SupabaseProject.answer(to: challenge, credential)
        return request("POST", "/passkeys/authentication/verify", body: body)
    }

    /// Asks for what an authenticator needs to make a passkey; the answer is a ``PasskeyChallenge``.
    public func passkeyRegistration(bearer: Secret) -> HTTPRequest {
        request("POST", "/passkeys/registration/options", body: JSONObject(), bearer: bearer)
    }

    /// Adds a passkey to the user; the answer is a ``Passkey``. Throws for `challenge_id`.
    public func registerPasskey(
        challenge: String, credential: PasskeyCredential, bearer: Secret
    ) throws(FieldError) -> HTTPRequest {
        let body = try SupabaseProject.answer(to: challenge, credential)
        return request("POST", "/passkeys/registration/verify", body: body, bearer: bearer)
    }

    /// The user's passkeys; the answer is a ``PasskeyList``.
    public func passkeys(bearer: Secret) -> HTTPRequest { request("GET", "/passkeys/", bearer: bearer) }

    /// Names a passkey; the answer is a ``Passkey``. Throws for `id` and `friendly_name`: 1 to 120 bytes.
    public func renamePasskey(_ id: String, to name: String, bearer: Secret) throws(FieldError) -> HTTPRequest {
        guard (1...SupabaseProject.maxPasskeyName).contains(name.utf8.count) else {
            throw FieldError(field: "friendly_name", reason: "not 1 to \(SupabaseProject.maxPasskeyName) bytes")
        }
        let path = try SupabaseProject.path(toPasskey: id)
        return request("PATCH", path, body: JSONObject(["friendly_name": .string(name)]), bearer: bearer)
    }

    /// Removes a passkey; the answer is a ``RemovalResponse``. Where the user has a second factor, only with an `aal2`
    /// token. Throws for `id`.
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
