internal import Cryptography
internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// One issuer, without time and waiting: a request and the clock go in, a response comes out. Each endpoint is an
/// extension in a file of its own.
struct ProviderState {
    /// The URL that names the issuer, without a final slash.
    let issuer: String
    /// The prefix of every path.
    let prefix: String
    let options: SandboxOptions
    var users: [SandboxUser]
    var clients: [SandboxClient]
    var settings: SandboxSettings
    var ledger = Ledger()
    var keys = SigningKeys()
    var perturbations = Perturbations()
    var faults: [Fault] = []
    var counters = Counters()
    var log = RequestLog()
    /// The Supabase project below the issuer.
    var supabase: SupabaseProject
    /// Sign-in pages without a decision, by their unguessable name.
    var interactions: [String: Interaction] = [:]
    /// Pushed authorization requests that wait for the browser, by their reference.
    var pushed: [String: PushedRequest] = [:]
    /// Pending devices, by the code that only their clients know.
    var devices: [String: DeviceGrant] = [:]
    /// The `jti` of clients' assertions that were accepted, and when these expire.
    var usedAssertions: [String: Int] = [:]
    /// Clients that registered themselves, by their id.
    var registrations: [String: Registration] = [:]
    /// Seconds that the issuer's clock is ahead.
    var clockOffset = 0

    init(origin: String, prefix: String, options: SandboxOptions) {
        issuer = origin + prefix
        supabase = SupabaseProject(url: issuer)
        self.prefix = prefix
        self.options = options
        users = options.users
        clients = options.clients
        settings = options.settings
    }

    func url(_ endpoint: Endpoint) -> String { settings.endpointURLs[endpoint.rawValue] ?? issuer + endpoint.path }

    /// The correct response of an endpoint, with its perturbations.
    mutating func answer(_ request: SandboxRequest, _ endpoint: Endpoint, at now: Int) -> ServerResponse {
        if endpoint.isSupabase { return answerSupabase(request, endpoint, at: now) }
        guard endpoint.methods.contains(request.method) else {
            let allowed = endpoint.methods.joined(separator: ", ")
            return Responses.text("This is answered to \(allowed) only.", status: 405, fields: [("Allow", allowed)])
        }
        do {
            switch endpoint {
            case .discovery: return Responses.json(.object(metadata()))
            case .jwks:
                return Responses.json(try keys.published(for: settings.algorithm, omitsIDs: settings.omitsKeyIDs))
            case .authorize: return authorize(request, at: now)
            case .signIn: return signIn(request, at: now)
            case .token: return try token(request, at: now)
            case .userinfo: return try userinfo(request, at: now)
            case .revocation: return try revoke(request, at: now)
            case .pushedAuthorization: return try push(request, at: now)
            case .deviceAuthorization: return try authorizeDevice(request, at: now)
            case .device: return devicePage(request, at: now)
            case .endSession: return try endSession(request)
            case .registration: return try register(request, at: now)
            case .clientConfiguration: return try clientConfiguration(request, at: now)
            default: return Responses.text("There is nothing here.", status: 404)
            }
        } catch let refusal as ErrorResponse {
            return Responses.refusal(refusal)
        } catch {
            return Responses.refusal(
                ErrorResponse("server_error", "The sandbox could not make or use a key.", status: 500))
        }
    }

    private var grantTypes: [String] {
        let usual = ["authorization_code", "refresh_token"]
        let services = ["client_credentials"] + ProviderState.assertionGrants
        return usual + services + (settings.offersDevices ? [ProviderState.deviceGrantType] : [])
    }

    /// The provider metadata (OpenID Connect Discovery section 3, RFC 8414 section 2).
    private mutating func metadata() -> JSONObject {
        let authentications: JSON = .array(SandboxClient.Authentication.allCases.map { .string($0.rawValue) })
        let signatures: JSON = .array(SignatureAlgorithm.allCases.map { .string($0.rawValue) })
        var document = JSONObject([
            .init("issuer", .string(issuer)),
            .init("authorization_endpoint", .string(url(.authorize))),
            .init("token_endpoint", .string(url(.token))),
            .init("userinfo_endpoint", .string(url(.userinfo))),
            .init("jwks_uri", .string(url(.jwks))),
            .init("revocation_endpoint", .string(url(.revocation))),
            .init("end_session_endpoint", .string(url(.endSession))),
            .init("scopes_supported", .array(ProviderState.scopes.map { .string($0) })),
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
        perturbations.change(metadata: &document, issuer: issuer)
        return document
    }

    /// The scopes with a meaning here. Any other is granted as requested: it may mean something to a resource server.
    static let scopes = ["openid", "profile", "email", "offline_access"]

    /// Unguessable, and recognisable in a log: `at-…`, `rt-…`, `code-…`.
    func newToken(_ kind: String) -> String { "\(kind)-\(RandomToken.identifier(bits: 256))" }

    func user(named name: String) -> SandboxUser? { users.first { $0.name == name } }
    func client(_ id: String) -> SandboxClient? {
        clients.first { $0.id == id } ?? [SupabaseProject.upstreamClient].first { $0.id == id }
    }
}
