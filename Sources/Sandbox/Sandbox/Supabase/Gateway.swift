internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

extension SupabaseCall {
    /// The gateway's response in place of the server's; nil lets the request pass. Browsers and mail links have no key.
    func gatewayResponse(_ endpoint: Endpoint) -> ServerResponse? {
        let isOpen: [Endpoint] = [.supabaseAuthorize, .supabaseCallback, .supabaseVerify, .supabaseJWKS]
        guard !settings.apiKeys.isEmpty, !isOpen.contains(endpoint) else { return nil }
        let key = field("apikey") ?? query("apikey")
        if let key, settings.apiKeys.contains(key) { return nil }
        let message = key == nil ? "No API key found in request" : "Invalid authentication credentials"
        return SupabaseResponses.json(["message": message], status: 401)
    }

    func checkCaptcha(_ route: SupabaseRoute) throws {
        guard let right = settings.captcha, method == "POST" else { return }
        let isSignIn = route.path == "token" && ["password", "web3"].contains(query("grant_type"))
        guard route.isGuarded || isSignIn else { return }
        let token = try body().object("gotrue_meta_security")?["captcha_token"]?.string ?? ""
        let reason = token.isEmpty ? "no captcha_token found" : "invalid-input-response"
        try require(token == right, 400, "captcha_failed", "captcha protection: request disallowed (\(reason))")
    }
}

/// An error of a Supabase endpoint, in the words of the real server.
/// It has two forms, the older one and that of the API version 2024-01-01; the ID-token grant has a third one.
struct SupabaseError: Error, Equatable {
    var status: Int
    var code: String
    var message: String
    /// What a weak password lacks: `length`, `characters`, `pwned`.
    var reasons: [String] = []
    /// The third form: `error` and `error_description`, no code, always 400.
    var isOAuth = false
    /// Only the errors of the REST endpoint have some. They have a form of their own.
    var details: String?

    init(_ status: Int, _ code: String, _ message: String, details: String? = nil) {
        self.status = status
        self.code = code
        self.message = message
        self.details = details
    }

    init(_ message: String, status: Int = 400) { self.init(status, "validation_failed", message) }

    init(oauth error: String, _ description: String) {
        self.init(400, error, description)
        isOAuth = true
    }

    static let failure = SupabaseError(500, "unexpected_failure", "Unexpected failure, please check server logs")
    static let serverIsOff = SupabaseError(404, "feature_disabled", "OAuth server is disabled")

    /// `error` in a redirect, which depends on whether it comes from `/callback`; nil for `error_code` alone.
    func redirectError(isCallback: Bool) -> String? {
        if isCallback, ["signup_disabled", "user_banned", "provider_email_needs_verification"].contains(code) {
            return "access_denied"
        }
        switch status {
        case 400: return "invalid_request"
        case 401: return "unauthorized_client"
        case 403: return "access_denied"
        case 500: return "server_error"
        case 503: return "temporarily_unavailable"
        default: return isCallback ? "server_error" : nil
        }
    }
}

func require(_ isMet: Bool, _ status: Int, _ code: String, _ message: String, details: String? = nil) throws {
    if !isMet { throw SupabaseError(status, code, message, details: details) }
}

func require(_ isMet: Bool, _ message: String, status: Int = 400) throws {
    if !isMet { throw SupabaseError(message, status: status) }
}

func require(_ isMet: Bool, oauth error: String, _ description: String) throws {
    if !isMet { throw SupabaseError(oauth: error, description) }
}

func unwrap<Value>(_ value: Value?, _ status: Int, _ code: String, _ message: String) throws -> Value {
    guard let value else { throw SupabaseError(status, code, message) }
    return value
}

func unwrap<Value>(_ value: Value?, _ message: String, status: Int = 400) throws -> Value {
    guard let value else { throw SupabaseError(message, status: status) }
    return value
}

/// Responses with the header fields of the real server, and no others.
enum SupabaseResponses {
    static func json(_ object: JSONObject, status: Int = 200, fields: [(String, String)] = []) -> ServerResponse {
        json(value: object, status: status, fields: fields)
    }

    static func json(
        value: some JSONConvertible, status: Int = 200, fields: [(String, String)] = []
    ) -> ServerResponse {
        ServerResponse(
            status: status, fields: HTTPFields([("Content-Type", "application/json")] + fields),
            body: value.jsonValue.serialized())
    }

    static func empty(_ status: Int) -> ServerResponse { ServerResponse(status: status) }

    static func redirect(to location: String, status: Int) -> ServerResponse {
        ServerResponse(status: status, fields: HTTPFields([("Location", location)]))
    }

    static func unknownPath() -> ServerResponse {
        ServerResponse(
            status: 404, fields: HTTPFields([("Content-Type", "text/plain; charset=utf-8")]),
            body: Array("404 page not found\n".utf8))
    }

    /// - Parameter version: the value of `X-Supabase-Api-Version` in the request.
    static func refusal(_ refusal: SupabaseError, version: String?) -> ServerResponse {
        if refusal.isOAuth {
            return json(["error": refusal.code, "error_description": refusal.message], status: 400)
        }
        let isCurrent = isCurrent(version)
        var body: JSONObject = [
            "code": isCurrent ? refusal.code.jsonValue : refusal.status.jsonValue,
            (isCurrent ? "message" : "msg"): refusal.message,
            "weak_password": refusal.reasons.isEmpty ? nil : ["reasons": refusal.reasons] as JSONObject,
        ]
        var fields = [("x-sb-error-code", refusal.code)]
        if isCurrent {
            fields.append(("X-Supabase-Api-Version", "2024-01-01"))
        } else {
            body["error_code"] = .string(refusal.code)
            if refusal.status >= 500 { body["error_id"] = .string(SupabaseText.uuid()) }
        }
        return json(body, status: refusal.status, fields: fields)
    }

    static func restRefusal(_ refusal: SupabaseError) -> ServerResponse {
        let body: JSONObject = [
            "code": refusal.code, "details": refusal.details?.jsonValue ?? JSON.null, "hint": JSON.null,
            "message": refusal.message,
        ]
        let fields = refusal.status == 401 ? [("WWW-Authenticate", "Bearer")] : []
        return json(body, status: refusal.status, fields: fields)
    }

    /// `YYYY-MM-DD`, from 2024-01-01 on; anything else selects the older shape.
    static func isCurrent(_ version: String?) -> Bool {
        guard let version else { return false }
        let parts = version.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == [4, 2, 2], parts.joined().utf8.allSatisfy(\.isDigit),
            let month = Int(parts[1]), let day = Int(parts[2]), (1...12).contains(month), (1...31).contains(day)
        else { return false }
        return version >= "2024-01-01"
    }
}

extension SupabaseSettings {
    static let listedProviders = [
        "apple", "azure", "bitbucket", "discord", "facebook", "snapchat", "figma", "fly", "github", "gitlab", "google",
        "keycloak", "kakao", "linkedin", "linkedin_oidc", "notion", "spotify", "slack", "slack_oidc", "workos",
        "twitch", "twitter", "zoom",
    ]

    func publicResponse() -> ServerResponse {
        var members: JSONObject = ["anonymous_users": allowsAnonymous, "email": allowsEmail, "phone": allowsPhone]
        for name in SupabaseSettings.listedProviders { members[name] = .bool(providers.contains(name)) }
        return SupabaseResponses.json([
            "external": members, "disable_signup": !allowsSignUp, "mailer_autoconfirm": autoconfirm,
            "phone_autoconfirm": phoneAutoconfirm, "sms_provider": "twilio", "saml_enabled": !ssoDomains.isEmpty,
            "saml_private_key_next_configured": false, "passkeys_enabled": allowsPasskeys,
        ])
    }

    /// `/.well-known/openid-configuration`. Only the project's name and keys, since its own OAuth server is off.
    func metadata(_ authURL: String) -> ServerResponse {
        SupabaseResponses.json(
            [
                "issuer": authURL, "jwks_uri": authURL + "/.well-known/jwks.json",
                "authorization_endpoint": authURL + "/oauth/authorize", "token_endpoint": authURL + "/oauth/token",
                "userinfo_endpoint": authURL + "/oauth/userinfo", "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "id_token_signing_alg_values_supported": [algorithm.rawValue],
                "code_challenge_methods_supported": ["S256", "plain"],
            ], fields: [("Cache-Control", "public, max-age=600")])
    }
}

/// A request to a project, as its endpoints read it, with the settings that apply to it.
struct SupabaseCall {
    let request: SandboxRequest
    let settings: SupabaseSettings
    let projectURL: String
    let now: Int
    /// The path below `/auth/v1`, `/rest/v1` or `/functions/v1`, decoded.
    let parts: [String]
    /// The query, without what the server cannot read.
    let pairs: [FormEncoding.Pair]

    init(_ request: SandboxRequest, settings: SupabaseSettings, projectURL: String, at now: Int) {
        self.request = request
        self.settings = settings
        self.projectURL = projectURL
        self.now = now
        pairs = SupabaseURL.pairs(of: request.rawQuery)
        let below = request.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst(3)
        parts = below.map { piece in
            // A plus sign in a path is not a space.
            let text = piece.split(separator: "+", omittingEmptySubsequences: false).joined(separator: "%2B")
            return (try? FormEncoding.parse(text))?.first?.name ?? String(piece)
        }
    }

    var method: String { request.method }
    var authURL: String { projectURL + "/auth/v1" }
    func instant() -> SupabaseInstant { .next(now) }

    /// The first value of a query parameter; nil without one and for an empty one.
    func query(_ name: String) -> String? {
        pairs.first { $0.name == name }.flatMap { $0.value.isEmpty ? nil : $0.value }
    }

    func field(_ name: String) -> String? { request.fields[name] }
    var version: String? { field("X-Supabase-Api-Version") }
    var address: String { field("X-Forwarded-For")?.split(separator: ",").first.map(String.init) ?? "127.0.0.1" }

    /// The token of `Authorization: Bearer …`, whatever the scheme's letter case.
    var bearer: String? {
        guard let line = field("Authorization") else { return nil }
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, words[0].lowercased() == "bearer", !words[1].isEmpty else { return nil }
        return String(words[1])
    }

    var redirectTarget: String {
        let rules = settings.redirectRules
        let asked = field("redirect_to") ?? query("redirect_to") ?? ""
        if rules.accepts(asked) { return asked }
        let referrer = field("Referer") ?? ""
        return rules.accepts(referrer) ? referrer : settings.siteURL
    }

    /// The JSON body, which needs no `Content-Type`.
    func body() throws -> SupabaseBody {
        let value: JSON
        do {
            value = try JSON(parsing: request.body)
        } catch {
            let reason = request.body.isEmpty ? "unexpected end of JSON input" : "\(error)"
            throw SupabaseError(400, "bad_json", "Could not parse request body as JSON: \(reason)")
        }
        let refusal = "Could not parse request body as JSON: it is not an object"
        return SupabaseBody(members: try unwrap(value.object, 400, "bad_json", refusal))
    }
}

/// The members of a JSON body. A wrong type refuses the request, an absent member counts as empty.
struct SupabaseBody {
    var members: JSONObject
    func text(_ name: String) throws -> String { try read(name, "string", \.string) ?? "" }
    func flag(_ name: String) throws -> Bool? { try read(name, "bool", \.bool) }
    func object(_ name: String) throws -> JSONObject? { try read(name, "map", \.object) }
    func data() throws -> JSONObject { try object("data") ?? JSONObject() }

    private func read<Value>(_ name: String, _ type: String, _ path: KeyPath<JSON, Value?>) throws -> Value? {
        guard let value = members[name], value != .null else { return nil }
        return try unwrap(
            value[keyPath: path], 400, "bad_json",
            "Could not parse request body as JSON: json: cannot unmarshal \(name) into a value of type \(type)")
    }

    /// A challenge and its method, both or neither.
    func challenge() throws -> SupabaseChallenge? {
        try SupabaseChallenge(
            value: text("code_challenge"), method: text("code_challenge_method"), isBrowserRequest: false)
    }
}

/// The PKCE challenge with which a flow begins (RFC 7636).
struct SupabaseChallenge: Equatable {
    let value: String
    let isPlain: Bool

    init?(value: String, method: String, isBrowserRequest: Bool) throws {
        if value.isEmpty, method.isEmpty { return nil }
        try require(!value.isEmpty && !method.isEmpty, "PKCE flow requires code_challenge_method and code_challenge")
        guard ["s256", "plain"].contains(method.lowercased()) else {
            // The endpoints that send mail do not handle an unknown method.
            throw isBrowserRequest ? SupabaseError("Invalid code_challenge_method") : SupabaseError.failure
        }
        try require((43...128).contains(value.utf8.count), "code challenge has to be between 43 and 128 characters")
        try require(
            value.utf8.allSatisfy(\.isUnreserved),
            "code challenge can only contain alphanumeric characters, hyphens, periods, underscores and tildes")
        self.value = value
        isPlain = method.lowercased() == "plain"
    }

    func isMet(by verifier: String) -> Bool {
        value == (isPlain ? verifier : Base64URL.encode(Digest.sha256(verifier)))
    }
}
