public import RingbackBase

/// The kinds of second factors that Ringback knows. A server may have newer ones.
public enum FactorKind: String, Sendable, CaseIterable {
    case totp, phone
    case webAuthn = "webauthn"
}

/// A second factor of a user.
public struct Factor: Sendable, Equatable {
    /// The UUID that identifies it in requests.
    public let id: String
    /// A ``FactorKind``, or another kind of a newer server.
    public let kind: String
    /// Only a verified factor has an effect.
    public let isVerified: Bool
    public let name: String?
    /// With a plus sign.
    public let phone: String?
    /// As the server writes it (RFC 3339).
    public let createdAt: String?
    public let updatedAt: String?

    /// Reads a factor of a user document; nil without `id` and `factor_type`.
    public init?(reading document: JSONObject) {
        guard let id = document.word("id"), let kind = document.word("factor_type") else { return nil }
        self.id = id
        self.kind = kind
        isVerified = document["status"]?.string == "verified"
        name = document.word("friendly_name")
        phone = document.word("phone").map(SupabaseUser.outward)
        createdAt = document.word("created_at")
        updatedAt = document.word("updated_at")
    }

    /// The factor in the socket API's form, from which it can be read again.
    public var json: JSONObject {
        JSONObject([
            "id": .string(id), "factor_type": .string(kind), "status": .string(isVerified ? "verified" : "unverified"),
            "friendly_name": .optional(name), "phone": .optional(phone), "created_at": .optional(createdAt),
            "updated_at": .optional(updatedAt),
        ])
    }
}

/// The response to ``SupabaseProject/enroll(_:bearer:)``.
public struct FactorEnrolment: Sendable, Equatable {
    /// The secret for an authenticator app. Whoever knows it can create codes.
    public struct TOTP: Sendable, Equatable {
        /// `otpauth://totp/…`, for a QR code in the terminal.
        public let uri: Secret
        /// The secret in base 32, for typing.
        public let secret: Secret
        /// The QR code as an SVG document, about 320 kB.
        public let picture: Secret?
    }

    public let id: String
    /// `totp`, `phone`, `webauthn`.
    public let kind: String
    public let name: String?
    /// With a plus sign.
    public let phone: String?
    /// Nil for other kinds than `totp`.
    public let totp: TOTP?

    /// Reads the response. Throws `.invalid` if a member is missing.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        let object = try ErrorReading.object(response)
        guard let id = object.word("id"), let kind = object.word("type") else {
            throw .invalid(reason: "a factor without id or type")
        }
        self.id = id
        self.kind = kind
        name = object.word("friendly_name")
        phone = object.word("phone").map(SupabaseUser.outward)
        guard FactorKind(rawValue: kind) == .totp else {
            totp = nil
            return
        }
        guard let uri = object["totp"]?["uri"]?.string, uri.hasPrefix("otpauth://"),
            let secret = PlainText.token(object["totp"]?["secret"])
        else { throw .invalid(reason: "an authenticator's factor without its secret") }
        let picture = object["totp"]?["qr_code"]?.string.flatMap { $0.isEmpty ? nil : Secret($0) }
        totp = TOTP(uri: Secret(uri), secret: secret, picture: picture)
    }
}

/// The response to ``SupabaseProject/challenge(factor:channel:party:bearer:)``.
public struct FactorChallenge: Sendable, Equatable {
    /// The options for an authenticator.
    public struct WebAuthn: Sendable, Equatable {
        /// `create` for a factor that is not verified yet, else `request`.
        public let ceremony: PasskeyCredential.Ceremony
        /// `PublicKeyCredentialCreationOptions` or `PublicKeyCredentialRequestOptions` as JSON (Web Authentication
        /// level 3, section 5.1), without a wrapper.
        public let options: JSONObject
    }

    /// The id that the verification needs.
    public let id: String
    /// Unix seconds; 300 s after the request.
    public let expiresAt: Int?
    /// For a factor of the kind `webauthn`.
    public let webAuthn: WebAuthn?

    /// Reads the response. Options inside `publicKey`, as browsers take them, are taken out of it. Throws `.invalid`
    /// without an id.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        let object = try ErrorReading.object(response)
        guard let id = object.word("id") else { throw .invalid(reason: "a challenge without id") }
        self.id = id
        expiresAt = object["expires_at"]?.integer
        guard object["type"] == "webauthn" || object["webauthn"]?.object != nil else {
            webAuthn = nil
            return
        }
        guard let ceremony = object["webauthn"]?["type"]?.string.flatMap(PasskeyCredential.Ceremony.init(rawValue:))
        else { throw .invalid(reason: "a WebAuthn challenge that is neither create nor request") }
        let member = object["webauthn"]?["credential_options"]
        guard let options = (member?["publicKey"] ?? member)?.object, options.word("challenge") != nil else {
            throw .invalid(reason: "a WebAuthn challenge without options")
        }
        webAuthn = WebAuthn(ceremony: ceremony, options: options)
    }
}

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
