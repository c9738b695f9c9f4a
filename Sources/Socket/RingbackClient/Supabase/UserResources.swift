internal import RingbackAPI
package import RingbackBase

public struct Factor: Sendable, Equatable {
    /// How the factor is verified. Open, since the daemon may be newer than the app.
    public struct Kind: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }

        /// By the code that an authenticator app shows.
        public static let totp: Kind = "totp"
        public static let phone: Kind = "phone"
        /// By a security key or a passkey.
        public static let webAuthn: Kind = "webauthn"
    }

    public var id: String
    public var kind: Kind
    /// True if the factor was verified. Unverified factors have no effect.
    public var isVerified: Bool
    public var name: String?
    /// With its plus sign.
    public var phone: String?
    public var createdAt: WallInstant?

    package init(reading json: JSON) throws(RingbackError) {
        id = try json.text("id", of: "factor")
        kind = Kind(rawValue: json["factor_type"]?.string ?? "")
        isVerified = json["status"]?.string == "verified"
        name = json["friendly_name"]?.string
        phone = json["phone"]?.string
        createdAt = WallInstant(text: json["created_at"])
    }
}

/// A factor that was just added. It takes effect once its first code or credential was verified. Anyone who knows the
/// secret can compute the codes, so descriptions and reflection leave it out.
public struct FactorEnrolment: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    public var factor: Factor
    /// `otpauth://totp/…`, to be shown as a QR code; nil for a phone and an authenticator.
    public var uri: String?
    /// For typing, in base 32; nil for a phone and an authenticator.
    public var secret: String?
    public var description: String { "FactorEnrolment(factor: \(factor.id))" }
    public var customMirror: Mirror { Mirror(self, children: ["factor": factor]) }

    package init(reading json: JSON) throws(RingbackError) {
        factor = try Factor(reading: json)
        uri = json["totp"]?["uri"]?.string
        secret = json["totp"]?["secret"]?.string
    }
}

/// A provider's account that is linked to a user, at a Supabase project.
public struct Identity: Sendable, Equatable {
    /// What ``BrokerClient/unlink(_:identity:)`` takes.
    public var id: String
    /// `google`, `apple`, `email`, …
    public var provider: String
    public var email: String?
    public var createdAt: WallInstant?
    public var lastSignInAt: WallInstant?

    package init(reading json: JSON) throws(RingbackError) {
        id = try json.text("identity_id", of: "identity")
        provider = json["provider"]?.string ?? ""
        email = json["email"]?.string ?? json["identity_data"]?["email"]?.string
        createdAt = WallInstant(text: json["created_at"])
        lastSignInAt = WallInstant(text: json["last_sign_in_at"])
    }

    static func list(_ answer: JSON) throws(RingbackError) -> [Identity] {
        try answer.list("identities", Identity.init(reading:))
    }
}

/// Changes of a user. A new address takes effect after its confirmation, a new number after its code.
public struct UserChanges: Sendable {
    public var email: String?
    public var phone: String?
    public var channel: MessageChannel?
    public var password: String?
    /// The code that ``BrokerClient/reauthenticate(_:)`` sent, if the project wants one to change the password.
    public var nonce: String?
    /// The present password, if the project wants it to change the password.
    public var currentPassword: String?
    /// A JSON object, merged into the user's metadata.
    public var data: String?
    public init() {}

    func body() throws(RingbackError) -> JSONObject {
        var changes: JSONObject?
        if let data { changes = try JSONText.object(data) }
        return [
            "email": email, "phone": phone, "channel": channel?.rawValue, "password": password, "nonce": nonce,
            "current_password": currentPassword, "data": changes,
        ]
    }
}

public struct UserUpdate: Sendable {
    public var user: User
    /// The flow that waits for the codes of another address or number; nil if none is awaited.
    public var confirmation: Flow?
}

public enum MessageChannel: String, Sendable {
    case sms
    case whatsapp
}

package enum JSONText {
    package static func object(_ text: String) throws(RingbackError) -> JSONObject {
        guard let json = try? JSON(parsing: Array(text.utf8)), let object = json.object else {
            throw RingbackError("validation_failed", "A JSON object is expected.")
        }
        return object
    }
}

/// What a user has allowed an OAuth client of a Supabase project.
public struct Consent: Sendable, Equatable {
    /// What ``BrokerClient/revokeConsent(_:client:)`` takes.
    public var clientID: String
    public var clientName: String?
    public var clientURI: String?
    public var scopes: [String]
    public var grantedAt: WallInstant?

    package init(reading json: JSON) throws(RingbackError) {
        clientID = try json.text("client_id", of: "consent")
        clientName = json["client_name"]?.string
        clientURI = json["client_uri"]?.string
        scopes = (json["scopes"]?.array ?? []).compactMap(\.string)
        grantedAt = WallInstant(text: json["granted_at"])
    }
}

extension BrokerClient {
    /// The OAuth clients that the user has allowed at the project. Throws `method_unsupported` without an OAuth server.
    public func consents(_ account: String) async throws(RingbackError) -> [Consent] {
        try await project(.listConsents, account) { answer throws(RingbackError) in
            try answer.list("consents", Consent.init(reading:))
        }
    }

    /// Revokes the consent for a client, whose sessions of the user end. Throws `not_found` if there is no consent.
    public func revokeConsent(_ account: String, client: String) async throws(RingbackError) {
        try await project(.revokeConsent, account, [client]) { _ in }
    }
}
