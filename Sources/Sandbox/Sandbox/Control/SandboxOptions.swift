internal import RingbackBase

/// The options at a sandbox's start. What may change while it runs is in ``SandboxSettings``.
public struct SandboxOptions: Sendable {
    /// The users who can sign in, in the order of the sign-in page. At least one.
    public var users: [SandboxUser]
    public var clients: [SandboxClient]
    /// Path prefixes of the issuers, `""` for the root. Each has its own keys, tokens, log and control endpoint.
    public var issuerPaths: [String]
    /// Gets a text for each mail and each message to a phone, and for each that the response only pretends to have sent.
    public var announce: @Sendable (String) -> Void = { _ in }
    public var settings: SandboxSettings

    public init(
        users: [SandboxUser] = [SandboxUser(name: "alice"), SandboxUser(name: "bob"), SandboxUser(name: "carol")],
        clients: [SandboxClient] = [.demo], issuerPaths: [String] = ["", "/tenant-a", "/tenant-b", "/supabase"],
        settings: SandboxSettings = SandboxSettings()
    ) {
        self.users = users
        self.clients = clients
        self.issuerPaths = issuerPaths
        self.settings = settings
    }
}

/// A user who can sign in, without a password: this is a sandbox.
public struct SandboxUser: Sendable, Equatable {
    /// Names the user on the sign-in page and in the control endpoint.
    public let name: String
    /// The `sub` claim.
    public let subject: String
    public let displayName: String
    public let email: String

    /// A user whose claims are made from the name: `alice` is Alice, alice@example.org, with the subject `alice`.
    public init(name: String) {
        self.name = name
        subject = name
        displayName = name.prefix(1).uppercased() + name.dropFirst()
        email = "\(name)@example.org"
    }

    /// True for a name that fits a form value, a subject and an address: `[a-z0-9][a-z0-9._-]{0,63}`.
    public static func isName(_ text: String) -> Bool {
        let letters = "abcdefghijklmnopqrstuvwxyz0123456789".utf8
        guard let first = text.utf8.first, letters.contains(first), text.utf8.count <= 64 else { return false }
        return text.utf8.allSatisfy { letters.contains($0) || "._-".utf8.contains($0) }
    }
}

/// The algorithms an ID token can be signed with (RFC 7518 section 3.1, RFC 8037).
public enum SandboxAlgorithm: String, Sendable, CaseIterable, SettingValue {
    case rs256 = "RS256"
    case ps256 = "PS256"
    case es256 = "ES256"
    case edDSA = "EdDSA"
}

/// The switches of an issuer. Durations are seconds.
public struct SandboxSettings: Sendable, Equatable {
    /// When a sign-in yields a refresh token.
    public enum RefreshTokens: String, Sendable, CaseIterable, SettingValue {
        case always
        /// Only if the scope was asked for (OpenID Connect Core section 11).
        case offlineAccess = "offline_access"
        /// Only if the user was asked for consent to that scope, too. Without `prompt=consent` the scope is ignored.
        case offlineConsent = "offline_consent"
        case never
    }

    /// Whether clients may, or must, push their authorization requests (RFC 9126).
    public enum PushedRequests: String, Sendable, CaseIterable, SettingValue { case off, offered, required }

    /// Whether tokens are bound to keys of clients (RFC 9449).
    public enum Proofs: String, Sendable, CaseIterable, SettingValue { case off, offered, required }

    /// What is bound. Refresh tokens are those of public clients.
    public enum ProofBinding: String, Sendable, CaseIterable, SettingValue {
        case all
        case refreshTokens = "refresh_tokens"
    }

    /// Whether proofs need a nonce: none, one that stays, or one that is good once.
    public enum ProofNonces: String, Sendable, CaseIterable, SettingValue { case off, constant, once }

    /// Whether clients may register themselves (RFC 7591): all, or those with the initial access token.
    public enum Registration: String, Sendable, CaseIterable, SettingValue { case off, open, token }

    public var accessTokenLifetime = 3_600
    public var idTokenLifetime = 3_600
    /// RFC 6749 section 4.1.2 recommends at most ten minutes. With one minute, clients that are too slow are found.
    public var codeLifetime = 60
    public var refreshTokenLifetime: Int?
    /// Token responses state in `refresh_expires_in` how long the refresh token lasts, if it ends (as Keycloak does).
    public var statesRefreshLifetime = false
    public var omitsExpiresIn = false
    public var refreshTokens = RefreshTokens.always
    /// Each refresh replaces the refresh token, and using a replaced one ends its whole family (RFC 9700 4.14.2).
    public var rotates = true
    /// For so long a replaced refresh token gets the token that replaced it, and does not end the family.
    public var reuseGrace = 0
    public var renewsIDToken = true
    /// A refresh with fewer scopes brings a refresh token of these scopes alone, against RFC 6749 section 6.
    public var downscopesRefreshTokens = false
    public var pushedRequests = PushedRequests.off
    /// The status of a successful response to a pushed request; some servers send 200.
    public var pushedStatus = 201
    public var proofs = Proofs.off
    public var proofBinding = ProofBinding.all
    public var proofNonces = ProofNonces.off
    /// The authorization endpoint wants `response_type` beside a reference to a pushed request, as some servers do.
    public var requiresResponseType = false
    /// Sign-ins on another device are offered (RFC 8628).
    public var offersDevices = true
    /// How long clients are told to wait between two token requests.
    public var deviceInterval = 5
    public var deviceCodeLifetime = 600
    /// Members of the device authorization response in place of the correct ones; null leaves one out.
    var deviceResponse = JSONObject()
    public var registration = Registration.open
    /// The token that ``Registration/token`` requires.
    public var initialAccessToken = "initial-access-token"
    public var registeredAuthentication: SandboxClient.Authentication?
    /// How long their secrets are valid after the registration; nil for ever.
    public var registeredSecretLifetime: Int?
    /// The issuers whose assertions about users are accepted, each with its key set.
    var assertionIssuers = JSONObject()
    public var algorithm = SandboxAlgorithm.rs256
    /// The name of the user who is signed in without a page; nil shows the page.
    public var autoApprovedUser: String?
    public var requiresNonce = false
    public var omitsKeyIDs = false
    /// URLs in the metadata by endpoint, in place of this server's: for a proxy that changes responses.
    public var endpointURLs: [String: String] = [:]
    /// Milliseconds that every request to an endpoint waits first, by the endpoint's name.
    public var latency: [String: Int] = [:]

    public init() {}

    /// Demands PAR, DPoP and a new nonce of every client, or lets go of all three.
    public mutating func setStrict(_ isStrict: Bool) {
        pushedRequests = isStrict ? .required : .off
        proofs = isStrict ? .required : .off
        proofNonces = isStrict ? .once : .off
    }

    /// Sets the same latency, in milliseconds, for every endpoint.
    public mutating func setLatency(_ milliseconds: Int) {
        for endpoint in Endpoint.allCases { latency[endpoint.rawValue] = milliseconds }
    }
}

extension SandboxSettings: NamedSettings {
    /// All but `auto_approve`, which depends on the users.
    static var all: [Setting<SandboxSettings>] {
        [
            .init("access_token_lifetime", \.accessTokenLifetime), .init("id_token_lifetime", \.idTokenLifetime),
            .init("code_lifetime", \.codeLifetime), .init("refresh_token_lifetime", \.refreshTokenLifetime),
            .init("refresh_expires_in", \.statesRefreshLifetime), .init("omit_expires_in", \.omitsExpiresIn),
            .init("refresh_tokens", \.refreshTokens), .init("rotation", \.rotates),
            .init("reuse_grace", \.reuseGrace), .init("id_token_on_refresh", \.renewsIDToken),
            .init("downscope_refresh_tokens", \.downscopesRefreshTokens), .init("algorithm", \.algorithm),
            .init("device_grant", \.offersDevices), .init("device_interval", \.deviceInterval),
            .init("device_code_lifetime", \.deviceCodeLifetime), .init("device_answer", \.deviceResponse),
            .init("registration", \.registration), .init("initial_access_token", \.initialAccessToken),
            .init("registered_authentication", \.registeredAuthentication),
            .init("registered_secret_lifetime", \.registeredSecretLifetime),
            .init("assertion_issuers", \.assertionIssuers),
            .init("pushed_requests", \.pushedRequests), .init("dpop", \.proofs),
            .init("dpop_binds", \.proofBinding), .init("dpop_nonce", \.proofNonces),
            .init("pushed_status", \.pushedStatus) { try $0.integer() == 200 ? 200 : 201 },
            .init("require_response_type", \.requiresResponseType), .init("require_nonce", \.requiresNonce),
            .init("omit_kid", \.omitsKeyIDs),
            .merged("latency", \.latency) { try $0.byEndpoint { try $0.integer() } },
            .init("endpoints", \.endpointURLs) { try $0.byEndpoint { try $0.string() } },
        ]
    }
}
