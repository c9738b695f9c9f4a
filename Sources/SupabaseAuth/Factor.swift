public import HTTPMessages
public import Secrets
public import StrictJSON

/// A second factor of a user.
public struct Factor: Sendable, Equatable {
    /// The UUID that identifies it in requests.
    public let id: String
    /// `totp`, `phone`, `webauthn`.
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
        guard kind == "totp" else {
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

/// The response to ``SupabaseProject/challenge(factor:channel:bearer:)``.
public struct FactorChallenge: Sendable, Equatable {
    /// The id that the verification needs.
    public let id: String
    /// Unix seconds; 300 s after the request.
    public let expiresAt: Int?
    /// For WebAuthn: `create` or `request`, which the verification repeats.
    public let webAuthnType: String?
    /// For WebAuthn: the content of `publicKey` as W3C defines it.
    public let webAuthnOptions: JSONObject?

    /// Reads the response. Throws `.invalid` without an id.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        let object = try ErrorReading.object(response)
        guard let id = object.word("id") else { throw .invalid(reason: "a challenge without id") }
        self.id = id
        expiresAt = object["expires_at"]?.integer
        webAuthnType = object["webauthn"]?["type"]?.string
        let options = object["webauthn"]?["credential_options"]
        webAuthnOptions = (options?["publicKey"] ?? options)?.object
    }
}
