public import HTTPMessages
public import StrictJSON

/// A passkey of a user. The server keeps its public key, the device its private one.
public struct Passkey: Sendable, Equatable {
    /// The UUID that identifies it in requests.
    public let id: String
    public let name: String?
    /// As the server writes it (RFC 3339).
    public let createdAt: String?
    public let lastUsedAt: String?

    /// Reads an entry of the server's list; nil without `id`.
    public init?(reading document: JSONObject) {
        guard let id = document.word("id") else { return nil }
        self.id = id
        name = document.word("friendly_name")
        createdAt = document.word("created_at")
        lastUsedAt = document.word("last_used_at")
    }

    /// Reads the response to ``SupabaseProject/registerPasskey(challenge:credential:bearer:)`` and
    /// ``SupabaseProject/renamePasskey(_:to:bearer:)``. Throws `.invalid` without an id.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard let passkey = Passkey(reading: try ErrorReading.object(response)) else {
            throw .invalid(reason: "a passkey without id")
        }
        self = passkey
    }

    /// The passkey in the socket API's form, from which it can be read again.
    public var json: JSONObject {
        JSONObject([
            "id": .string(id), "friendly_name": .optional(name), "created_at": .optional(createdAt),
            "last_used_at": .optional(lastUsedAt),
        ])
    }
}

/// The response to ``SupabaseProject/passkeys(bearer:)``.
public struct PasskeyList: Sendable, Equatable {
    public let passkeys: [Passkey]

    /// Reads the response. Entries without an id are skipped, because they cannot be used. Throws ``SupabaseError``.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard let entries = try ErrorReading.json(response).array else { throw .invalid(reason: "no list of passkeys") }
        passkeys = entries.compactMap { $0.object.flatMap { Passkey(reading: $0) } }
    }
}

/// A WebAuthn challenge: the response to ``SupabaseProject/passkeySignIn(captcha:)`` and
/// ``SupabaseProject/passkeyRegistration(bearer:)``. It can be used once.
public struct PasskeyChallenge: Sendable, Equatable {
    /// The id that the verification needs.
    public let id: String
    /// `PublicKeyCredentialRequestOptions` or `PublicKeyCredentialCreationOptions` as JSON (Web Authentication level 3,
    /// section 5.1.9), without a wrapper.
    public let options: JSONObject
    /// Unix seconds; 300 s after the request. Nil if the server does not say.
    public let expiresAt: Int?

    /// Reads the response. If the options are inside `publicKey`, as in the browser's API, they are unwrapped.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        let object = try ErrorReading.object(response)
        guard let id = object.word("challenge_id") else { throw .invalid(reason: "a challenge without id") }
        let member = object["options"]
        guard let options = (member?["publicKey"] ?? member)?.object, options.word("challenge") != nil else {
            throw .invalid(reason: "a challenge without options")
        }
        self.id = id
        self.options = options
        expiresAt = object["expires_at"]?.integer
    }

    /// The challenge in the socket API's form.
    public var json: JSONObject {
        JSONObject([
            "challenge_id": .string(id), "options": .object(options), "expires_at": expiresAt.map { .integer($0) },
        ])
    }
}
