internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

/// The endpoints of one issuer (RFC 6749 section 1.1), without time and waiting: a request and the clock go in, a
/// response comes out. Most are extensions in files of their own.
struct AuthorizationServer {
    var issuer: Issuer
    var clients: Clients
    var registrations: [String: Registration] = [:]
    /// Sign-in pages without a decision, by their unguessable name.
    var interactions: [String: Interaction] = [:]
    /// Those that wait for the browser, by their reference.
    var pushedRequests: [String: PushedRequest] = [:]
    /// Pending devices, by the code that only their clients know.
    var devices: [String: DeviceGrant] = [:]

    init(origin: String, prefix: String, options: SandboxOptions) {
        issuer = Issuer(origin: origin, prefix: prefix, options: options)
        clients = Clients(options.clients)
    }

    /// The correct response of an endpoint, with its perturbations.
    mutating func answer(_ request: SandboxRequest, _ endpoint: Endpoint, at now: Int) -> ServerResponse {
        guard endpoint.methods.contains(request.method) else {
            return Responses.only(endpoint.methods.joined(separator: ", "))
        }
        var response = Responses.catching {
            switch endpoint {
            case .discovery: return issuer.metadata()
            case .jwks: return Responses.json(try issuer.publishedKeys())
            case .authorize: return try authorize(request, at: now)
            case .signIn: return signIn(request, at: now)
            case .token: return try token(request, at: now)
            case .userinfo: return try issuer.userinfo(request, at: now)
            case .revocation:
                let (parameters, client) = try authenticate(request, at: now)
                return try issuer.revoke(parameters, client)
            case .pushedAuthorization: return try push(request, at: now)
            case .deviceAuthorization: return try authorizeDevice(request, at: now)
            case .device: return devicePage(request, at: now)
            case .endSession: return issuer.endSession(request, clients)
            case .registration: return try register(request, at: now)
            case .clientConfiguration: return try configureClient(request, at: now)
            default: return Responses.nothing
            }
        }
        if let nonce = issuer.nonceForNext(endpoint) { response.fields.set("DPoP-Nonce", nonce) }
        return response
    }

    mutating func authenticate(_ request: SandboxRequest, at now: Int) throws -> (Parameters, SandboxClient) {
        let parameters = try request.formParameters()
        return (parameters, try clients.authenticate(request, parameters, issuer.name, at: now))
    }

    /// The token endpoint (RFC 6749 section 3.2).
    mutating func token(_ request: SandboxRequest, at now: Int) throws -> ServerResponse {
        issuer.counters.tokenRequests[request.grantType ?? "none", default: 0] += 1
        let parameters = try request.formParameters()
        let client = try clients.authenticateService(request, parameters, issuer.name, at: now)
        issuer.proofs.current = try issuer.provenKey(request, .token, at: now)
        try require(!issuer.perturbations.take(.tokenInvalidGrant), "invalid_grant", "the grant is refused")
        issuer.ledger.forgetOldTokens(at: now)
        switch parameters["grant_type"] {
        case "authorization_code": return try issuer.exchange(parameters, client, at: now)
        case "refresh_token": return try issuer.refresh(parameters, client, at: now)
        case AuthorizationServer.deviceGrant: return try deviceToken(parameters, client, at: now)
        case "client_credentials": return try issuer.clientCredentials(parameters, client, at: now)
        case Issuer.jwtBearer:
            let assertion = try parameters.required("assertion")
            if let own = try clients.issuer(of: assertion, for: [issuer.name, issuer.url(.token)], at: now) {
                return issuer.answer(parameters, own.client, subject: own.subject, at: now)
            }
            return try issuer.tradeAssertion(parameters, client, at: now)
        case Issuer.samlBearer: return try issuer.tradeAssertion(parameters, client, at: now)
        case Issuer.tokenExchange: return try issuer.exchangeToken(parameters, client, at: now)
        case nil: throw OAuthError("invalid_request", "grant_type is missing")
        default: throw OAuthError("unsupported_grant_type", "this grant type is not supported")
        }
    }
}

/// What the Supabase project asks of its external provider.
extension AuthorizationServer {
    /// The client that the project is here.
    static let projectClient = SandboxClient(id: "supabase")

    /// The user of an authorization code, and the tokens that any client would get for it; nil if it is refused.
    mutating func redeem(
        _ code: String, verifier: String, redirectURI: String, at now: Int
    ) -> (user: SandboxUser, tokens: JSON)? {
        guard !code.isEmpty, let family = issuer.ledger.codes[code]?.family else { return nil }
        let form = FormEncoding.encode([
            ("grant_type", "authorization_code"), ("code", code), ("redirect_uri", redirectURI),
            ("code_verifier", verifier), ("client_id", AuthorizationServer.projectClient.id),
        ])
        let request = ServerRequest(
            method: "POST", target: Endpoint.token.path,
            fields: HTTPFields([("Content-Type", "application/x-www-form-urlencoded")]), body: Array(form.utf8),
            peer: .local(uid: 0, pid: 0))
        let user = issuer.ledger.families[family].user
        guard let answer = try? token(SandboxRequest(request, path: Endpoint.token.path), at: now),
            answer.status == 200, case .bytes(let body) = answer.body, let tokens = try? JSON(parsing: body)
        else { return nil }
        return (user, tokens)
    }

    /// The claims of an ID token that is valid now; nil if this issuer did not sign it, or no longer vouches for it.
    func claims(ofIDToken text: String, at now: Int) -> JSONObject? {
        guard let token = JSONWebToken(parsing: text), issuer.keys.haveSigned(token),
            token.claims["iss"]?.string == issuer.name, let expiry = token.claims["exp"]?.integer, now < expiry
        else { return nil }
        return token.claims
    }
}

/// The endpoints of an issuer: their paths, and their names in switches, counters and the log.
enum Endpoint: String, CaseIterable, Sendable {
    case discovery, jwks, authorize
    case signIn = "sign_in"
    case token, userinfo, revocation
    /// RFC 9126.
    case pushedAuthorization = "par"
    case endSession = "end_session"
    /// RFC 8628.
    case deviceAuthorization = "device_authorization"
    /// The page where its code is entered.
    case device
    /// RFC 7591.
    case registration
    /// RFC 7592.
    case clientConfiguration = "client_configuration"
    // A Supabase project's, a group of paths each.
    case supabaseAuthorize = "supabase_authorize"
    case supabaseCallback = "supabase_callback"
    case supabaseToken = "supabase_token"
    case supabaseSignUp = "supabase_signup"
    case supabaseOTP = "supabase_otp"
    case supabaseRecover = "supabase_recover"
    case supabaseResend = "supabase_resend"
    case supabaseVerify = "supabase_verify"
    case supabaseUser = "supabase_user"
    case supabaseReauthenticate = "supabase_reauthenticate"
    case supabaseLogout = "supabase_logout"
    case supabaseIdentities = "supabase_identities"
    case supabaseFactors = "supabase_factors"
    case supabasePasskeys = "supabase_passkeys"
    case supabaseSSO = "supabase_sso"
    case supabaseSettings = "supabase_settings"
    case supabaseHealth = "supabase_health"
    case supabaseJWKS = "supabase_jwks"
    case supabaseOther = "supabase_other"
    case supabaseREST = "supabase_rest"
    case supabaseFunctions = "supabase_functions"

    private var place: (path: String, methods: [String]) {
        switch self {
        case .discovery: ("/.well-known/openid-configuration", ["GET"])
        case .jwks: ("/jwks", ["GET"])
        case .authorize: ("/authorize", ["GET", "POST"])
        case .signIn: ("/sign-in", ["POST"])
        case .token: ("/token", ["POST"])
        case .userinfo: ("/userinfo", ["GET", "POST"])
        case .revocation: ("/revoke", ["POST"])
        case .pushedAuthorization: ("/par", ["POST"])
        case .deviceAuthorization: ("/device_authorization", ["POST"])
        case .device: ("/device", ["GET", "POST"])
        case .endSession: ("/logout", ["GET", "POST"])
        case .registration: ("/register", ["POST"])
        case .clientConfiguration: ("/register/client", ["GET", "PUT", "DELETE"])
        case .supabaseREST: (Endpoint.restRoot, [])
        case .supabaseFunctions: (Endpoint.functionsRoot, [])
        default: (Endpoint.supabaseRoot, [])
        }
    }

    var path: String { place.path }
    var methods: [String] { place.methods }

    init?(path: String) {
        let isOurs = { (endpoint: Endpoint) in !endpoint.isSupabase && endpoint.path == path }
        guard let found = Endpoint(supabasePath: path) ?? Endpoint.allCases.first(where: isOurs) else { return nil }
        self = found
    }

    static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
}

/// What issues tokens: its name, its users and settings, its keys, and what it has issued so far. The endpoints that
/// need nothing else are extensions in files of their own.
struct Issuer {
    /// The URL that names the issuer, without a final slash.
    let name: String
    let prefix: String
    var users: [SandboxUser]
    var settings: SandboxSettings
    var ledger = Ledger()
    var keys = SigningKeys()
    var perturbations = Perturbations()
    var proofs = Proofs()
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
        return usual + services + (settings.offersDevices ? [AuthorizationServer.deviceGrant] : [])
    }

    /// The provider metadata (OpenID Connect Discovery section 3, RFC 8414 section 2).
    mutating func metadata() -> ServerResponse {
        let authentications = SandboxClient.Authentication.allCases.map(\.rawValue)
        let signatures = SignatureAlgorithm.allCases.map(\.rawValue)
        let pushed = settings.pushedRequests
        var document: JSONObject = [
            "issuer": name, "authorization_endpoint": url(.authorize), "token_endpoint": url(.token),
            "userinfo_endpoint": url(.userinfo), "jwks_uri": url(.jwks), "revocation_endpoint": url(.revocation),
            "end_session_endpoint": url(.endSession), "scopes_supported": Issuer.scopes,
            "response_types_supported": ["code"], "response_modes_supported": ["query", "form_post"],
            "grant_types_supported": grantTypes,
            "authorization_grant_profiles_supported": [Issuer.identityAssertionProfile],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [settings.algorithm.rawValue],
            "token_endpoint_auth_methods_supported": authentications,
            "revocation_endpoint_auth_methods_supported": authentications,
            "token_endpoint_auth_signing_alg_values_supported": signatures,
            "revocation_endpoint_auth_signing_alg_values_supported": signatures,
            "code_challenge_methods_supported": ["S256"],
            "claims_supported": ["sub", "name", "preferred_username", "email", "email_verified", "auth_time"],
            "authorization_response_iss_parameter_supported": true, "claims_parameter_supported": false,
            "request_parameter_supported": false, "request_uri_parameter_supported": false,
            "registration_endpoint": settings.registration == .off ? nil : url(.registration),
            "device_authorization_endpoint": settings.offersDevices ? url(.deviceAuthorization) : nil,
            "pushed_authorization_request_endpoint": pushed == .off ? nil : url(.pushedAuthorization),
            "require_pushed_authorization_requests": pushed == .off ? nil : pushed == .required,
            "dpop_signing_alg_values_supported": settings.proofs == .off ? nil : ["ES256"],
        ]
        perturbations.change(.metadata, &document)
        return Responses.json(document)
    }

    mutating func publishedKeys() throws -> JSONObject {
        try keys.published(for: settings.algorithm, omitsIDs: settings.omitsKeyIDs)
    }
}
