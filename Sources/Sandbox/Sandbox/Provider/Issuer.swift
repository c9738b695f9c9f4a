internal import Cryptography
internal import LocalHTTP
internal import StrictJSON

/// What issues tokens: its name, its users and settings, its keys, and what it has issued so far. The endpoints that need
/// nothing else are extensions in files of their own.
struct Issuer {
    /// The URL that names the issuer, without a final slash.
    let name: String
    /// The prefix of every path.
    let prefix: String
    var users: [SandboxUser]
    var settings: SandboxSettings
    var ledger = Ledger()
    var keys = SigningKeys()
    var perturbations = Perturbations()
    var counters = Counters()

    init(origin: String, prefix: String, options: SandboxOptions) {
        name = origin + prefix
        self.prefix = prefix
        users = options.users
        settings = options.settings
    }

    func url(_ endpoint: Endpoint) -> String { settings.endpointURLs[endpoint.rawValue] ?? name + endpoint.path }

    func user(named name: String) -> SandboxUser? { users.first { $0.name == name } }

    /// Unguessable, and recognisable in a log: `at-…`, `rt-…`, `code-…`.
    static func newToken(_ kind: String) -> String { "\(kind)-\(RandomToken.identifier(bits: 256))" }

    /// The scopes with a meaning here. Any other is granted as requested: it may mean something to a resource server.
    private static let scopes = ["openid", "profile", "email", "offline_access"]

    private var grantTypes: [String] {
        let usual = ["authorization_code", "refresh_token"]
        let services = ["client_credentials"] + Issuer.assertionGrants
        return usual + services + (settings.offersDevices ? [DeviceGrants.grantType] : [])
    }

    /// The provider metadata (OpenID Connect Discovery section 3, RFC 8414 section 2).
    mutating func metadata() -> ServerResponse {
        let authentications: JSON = .array(SandboxClient.Authentication.allCases.map { .string($0.rawValue) })
        let signatures: JSON = .array(SignatureAlgorithm.allCases.map { .string($0.rawValue) })
        var document = JSONObject([
            .init("issuer", .string(name)),
            .init("authorization_endpoint", .string(url(.authorize))),
            .init("token_endpoint", .string(url(.token))),
            .init("userinfo_endpoint", .string(url(.userinfo))),
            .init("jwks_uri", .string(url(.jwks))),
            .init("revocation_endpoint", .string(url(.revocation))),
            .init("end_session_endpoint", .string(url(.endSession))),
            .init("scopes_supported", .array(Issuer.scopes.map { .string($0) })),
            .init("response_types_supported", ["code"]),
            .init("response_modes_supported", ["query", "form_post"]),
            .init("grant_types_supported", .array(grantTypes.map { .string($0) })),
            .init("subject_types_supported", ["public"]),
            .init("id_token_signing_alg_values_supported", [.string(settings.algorithm.rawValue)]),
            .init("token_endpoint_auth_methods_supported", authentications),
            .init("revocation_endpoint_auth_methods_supported", authentications),
            .init("token_endpoint_auth_signing_alg_values_supported", signatures),
            .init("revocation_endpoint_auth_signing_alg_values_supported", signatures),
            .init("code_challenge_methods_supported", ["S256"]),
            .init("claims_supported", ["sub", "name", "preferred_username", "email", "email_verified", "auth_time"]),
            .init("authorization_response_iss_parameter_supported", true),
            .init("claims_parameter_supported", false),
            .init("request_parameter_supported", false),
            .init("request_uri_parameter_supported", false),
        ])
        if settings.registration != .off { document["registration_endpoint"] = .string(url(.registration)) }
        if settings.offersDevices { document["device_authorization_endpoint"] = .string(url(.deviceAuthorization)) }
        if settings.pushedRequests != .off {
            document["pushed_authorization_request_endpoint"] = .string(url(.pushedAuthorization))
            document["require_pushed_authorization_requests"] = .bool(settings.pushedRequests == .required)
        }
        perturbations.change(metadata: &document, issuer: name)
        return Responses.json(.object(document))
    }

    /// The key set (RFC 7517).
    mutating func publishedKeys() throws(CryptographyError) -> JSON {
        try keys.published(for: settings.algorithm, omitsIDs: settings.omitsKeyIDs)
    }
}
