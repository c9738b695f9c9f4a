public import HTTPMessages
public import Secrets
public import StrictJSON

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
