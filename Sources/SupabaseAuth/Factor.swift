public import HTTPMessages
public import Secrets
public import StrictJSON

/// A second factor of a user.
public struct Factor: Sendable, Equatable {
    /// The UUID that challenges and removals take.
    public let id: String
    /// `totp`, `phone`, `webauthn`.
    public let kind: String
    /// Only a verified one counts.
    public let isVerified: Bool
    public let name: String?
    /// With its plus sign.
    public let phone: String?
    /// As the server writes them (RFC 3339).
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

    /// The factor as the socket shows it; read again, it is the same.
    public var json: JSONObject {
        JSONObject([
            "id": .string(id), "factor_type": .string(kind), "status": .string(isVerified ? "verified" : "unverified"),
            "friendly_name": .optional(name), "phone": .optional(phone), "created_at": .optional(createdAt),
            "updated_at": .optional(updatedAt),
        ])
    }
}

/// The answer to ``SupabaseProject/enroll(_:bearer:)``.
public struct FactorEnrolment: Sendable, Equatable {
    /// What an authenticator app is given. Whoever has seen it can make the codes.
    public struct TOTP: Sendable, Equatable {
        /// `otpauth://totp/…`, for a code in the terminal.
        public let uri: Secret
        /// For typing, in base 32.
        public let secret: Secret
        /// The same as a picture: the text of an SVG document, some 320 kB.
        public let picture: Secret?
    }

    public let id: String
    /// `totp`, `phone`, `webauthn`.
    public let kind: String
    public let name: String?
    /// With its plus sign.
    public let phone: String?
    /// For `totp`.
    public let totp: TOTP?

    /// Reads the answer.
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

/// The response to ``SupabaseProject/challenge(factor:channel:party:bearer:)``.
public struct FactorChallenge: Sendable, Equatable {
    /// What an authenticator is asked.
    public struct WebAuthn: Sendable, Equatable {
        /// `create` for a factor that is not verified yet, else `request`.
        public let ceremony: PasskeyCredential.Ceremony
        /// `PublicKeyCredentialCreationOptions` or `PublicKeyCredentialRequestOptions` as JSON (Web Authentication level
        /// 3, section 5.1), without a wrapper.
        public let options: JSONObject
    }

    /// What verification takes.
    public let id: String
    /// Unix seconds; 300 s after it was asked for.
    public let expiresAt: Int?
    /// For a factor of the kind `webauthn`.
    public let webAuthn: WebAuthn?

    /// Reads the response. Options within `publicKey`, as the browser's own interface has them, are taken out of it.
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
