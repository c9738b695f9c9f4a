public import HTTPMessages
public import StrictJSON

/// A passkey of a user: a way in that an authenticator proves. The key itself is the server's and the device's.
public struct Passkey: Sendable, Equatable {
    /// The UUID that renaming and removing take.
    public let id: String
    public let name: String?
    /// As the server writes them (RFC 3339).
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

    /// Reads the answer to ``SupabaseProject/registerPasskey(challenge:credential:bearer:)`` and
    /// ``SupabaseProject/renamePasskey(_:to:bearer:)``.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard let passkey = Passkey(reading: try ErrorReading.object(response)) else {
            throw .invalid(reason: "a passkey without id")
        }
        self = passkey
    }

    /// The passkey as the socket shows it; read again, it is the same.
    public var json: JSONObject {
        JSONObject([
            "id": .string(id), "friendly_name": .optional(name), "created_at": .optional(createdAt),
            "last_used_at": .optional(lastUsedAt),
        ])
    }
}

/// The answer to ``SupabaseProject/passkeys(bearer:)``.
public struct PasskeyList: Sendable, Equatable {
    public let passkeys: [Passkey]

    /// Reads the answer. An entry that cannot be named is none that anything can be done with, and no reason to hide
    /// the others.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard let entries = try ErrorReading.json(response).array else { throw .invalid(reason: "no list of passkeys") }
        passkeys = entries.compactMap { $0.object.flatMap { Passkey(reading: $0) } }
    }
}

/// What an authenticator is asked: the answer to ``SupabaseProject/passkeySignIn(captcha:)`` and
/// ``SupabaseProject/passkeyRegistration(bearer:)``. The server takes one answer to it.
public struct PasskeyChallenge: Sendable, Equatable {
    /// What names it when it is answered.
    public let id: String
    /// `PublicKeyCredentialRequestOptions` or `PublicKeyCredentialCreationOptions` as JSON (Web Authentication level 3,
    /// section 5.1.9), without a wrapper.
    public let options: JSONObject
    /// Unix seconds; 300 s after it was asked for. Nil where the server does not say.
    public let expiresAt: Int?

    /// Reads the answer. Options within `publicKey`, as the browser's own interface has them, are taken out of it.
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

    /// The challenge as the socket shows it.
    public var json: JSONObject {
        JSONObject([
            "challenge_id": .string(id), "options": .object(options), "expires_at": expiresAt.map { .integer($0) },
        ])
    }
}
