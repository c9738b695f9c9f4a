public import RingbackBase

/// The kinds of second factors that Ringback knows. A server may have newer ones.
public enum FactorKind: String, Sendable, CaseIterable {
    case totp, phone
    case webAuthn = "webauthn"
}

public struct Factor: Sendable, Equatable {
    /// A UUID.
    public let id: String
    /// A ``FactorKind``, or another kind of a newer server.
    public let kind: String
    /// Only a verified factor has an effect.
    public let isVerified: Bool
    public let name: String?
    /// With a plus sign.
    public let phone: String?
    /// In the socket API's form, from which it can be read again. The times are RFC 3339.
    public let json: JSONObject

    /// Reads a factor of a user document; nil without `id` and `factor_type`.
    public init?(reading document: JSONObject) {
        guard let id = document.word("id"), let kind = document.word("factor_type") else { return nil }
        self.id = id
        self.kind = kind
        isVerified = document["status"]?.string == "verified"
        name = document.word("friendly_name")
        phone = document.word("phone").map(SupabaseUser.outward)
        json = JSONObject([
            "id": .string(id), "factor_type": .string(kind), "status": .string(isVerified ? "verified" : "unverified"),
            "friendly_name": .optional(name), "phone": .optional(phone),
            "created_at": .optional(document.word("created_at")), "updated_at": .optional(document.word("updated_at")),
        ])
    }
}

/// A second factor that was added.
public struct FactorEnrolment: SupabaseResponse, Equatable {
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

    /// Throws `.invalid` if a member is missing.
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

public struct FactorChallenge: SupabaseResponse, Equatable {
    /// The options for an authenticator.
    public struct WebAuthn: Sendable, Equatable {
        /// `create` for a factor that is not verified yet, else `request`.
        public let ceremony: PasskeyCredential.Ceremony
        /// `PublicKeyCredentialCreationOptions` or `PublicKeyCredentialRequestOptions` as JSON (Web Authentication
        /// level 3, section 5.1), without a wrapper.
        public let options: JSONObject
    }

    public let id: String
    /// Unix seconds; 300 s after the request.
    public let expiresAt: Int?
    /// For a factor of the kind `webauthn`.
    public let webAuthn: WebAuthn?

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
        guard let options = object["webauthn"]?["credential_options"]?.authenticatorOptions else {
            throw .invalid(reason: "a WebAuthn challenge without options")
        }
        webAuthn = WebAuthn(ceremony: ceremony, options: options)
    }
}

extension JSON {
    /// Nil without a `challenge`. Options inside `publicKey`, as in the browser's API, are unwrapped.
    fileprivate var authenticatorOptions: JSONObject? {
        (self["publicKey"] ?? self).object.flatMap { $0.word("challenge") == nil ? nil : $0 }
    }
}

/// A passkey of a user. The server keeps its public key, the device its private one.
public struct Passkey: SupabaseObject {
    /// A UUID.
    public let id: String
    /// In the socket API's form. The times are RFC 3339.
    public let json: JSONObject

    public init?(reading document: JSONObject) {
        guard let id = document.word("id") else { return nil }
        self.id = id
        json = document.words("id", "friendly_name", "created_at", "last_used_at")
    }

    public static var absences: (object: String, list: String) { ("a passkey without id", "no list of passkeys") }
}

/// A WebAuthn challenge for a passkey. It can be used once.
public struct PasskeyChallenge: SupabaseResponse, Equatable {
    public let id: String
    /// `PublicKeyCredentialRequestOptions` or `PublicKeyCredentialCreationOptions` as JSON, without a wrapper.
    public let options: JSONObject
    /// Unix seconds; 300 s after the request. Nil if the server does not say.
    public let expiresAt: Int?

    /// Throws `.invalid` if a member is missing.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        let object = try ErrorReading.object(response)
        guard let id = object.word("challenge_id") else { throw .invalid(reason: "a challenge without id") }
        guard let options = object["options"]?.authenticatorOptions else {
            throw .invalid(reason: "a challenge without options")
        }
        self.id = id
        self.options = options
        expiresAt = object["expires_at"]?.integer
    }

    /// In the socket API's form.
    public var json: JSONObject {
        JSONObject([
            "challenge_id": .string(id), "options": .object(options), "expires_at": expiresAt.map { .integer($0) },
        ])
    }
}
