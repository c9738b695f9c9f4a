internal import BrokerCore
internal import LocalHTTP
internal import OAuthSignIn
internal import RingbackAPI
internal import RingbackBase
internal import SupabaseAuth
internal import SupabaseSignIn

struct SignInResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .signIn, "Start a sign-in, or join an equal one that is pending",
            body: members + membersAtProjects,
            statuses: [200, 201], .json(.beginning),
            errors: .ofAccount.and(.ofProvider).and([
                .methodUnsupported, .validationFailed, .stateConflict, .portInUse, .flowExpired, .invalidCredentials,
                .accessDenied, .userNotFound, .weakPassword, .emailAlreadyInUse, .sessionExpired, .signInRequired,
                .notFound, .invalidCallback,
            ]), SignInResource.signIn)
    ]

    static let replace: [Member] = .optional(
        "replace", as: .boolean, text: "Cancels a different sign-in of the account that is pending")

    private static let members: [Member] = .members(
        .optional(
            "method", as: .words(SupabaseMethod.ofSignIn.map(\.rawValue) + [OAuthMethod.device.rawValue]),
            text: "browser (the default); device (RFC 8628) where offered; at a project others"),
        .optional("scopes", text: "Instead of the account's; separated by spaces"),
        .optional("params", as: .map(.string)), .optional("timeout", as: .range(1...3_600)),
        .optional("switch_subject", as: .boolean), replace, .optional("callback_port", as: .range(1...65_535)))

    private static let membersAtProjects: [Member] = .members(
        .optional(
            "oauth_provider", "email", "phone", "captcha_token", "id_token", "nonce", "from_account", "access_token",
            "domain", "provider_id"),
        .optional("data", "user", as: .anyObject), .optional("channel", as: .channel),
        .optional("persist", "create_user", "provider_token", as: .boolean),
        .secret("password", "password_confirmation", "refresh_token"))

    func signIn(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let isProject = try await call.ask(broker.supabase.isProject)
        var request = SignInRequest()
        request.method = try call.text("method").map { SignInMethod(rawValue: $0) } ?? .browser
        if isProject {
            // Methods with an endpoint of their own are not started here.
            guard let method = SupabaseMethod(request.method), SupabaseMethod.ofSignIn.contains(method) else {
                let names = SupabaseMethod.ofSignIn.map(\.rawValue).joined(separator: ", ")
                throw Problem(
                    .methodUnsupported, "\(name) has no sign-in method “\(request.method)”. It has: \(names).")
            }
            try call.refuseStrangers(to: method.method, taking: method.fields)
        } else if let method = OAuthMethod(request.method) {
            try call.refuseStrangers(to: method.method, taking: method.fields)
        }
        request.scopes = try call.scopes()
        request.parameters = try call.authorizationParameters()
        request.timeout = try call.number("timeout", in: 1...3_600).map { .seconds($0) }
        request.switchesSubject = try call.truth("switch_subject")
        request.callbackPort = try call.number("callback_port", in: 1...65_535)
        request.replaces = try call.truth("replace")
        request.process = call.process
        if isProject {
            request.project = try call.projectSignIn()
        } else if request.method == OAuthMethod.session.method {
            request.details = try call.secret("refresh_token").map(HandedInSession.init)
        }
        return try await beginning(call) { name throws(BrokerError) in try await broker.begin(name, request) }
    }
}

extension Resource {
    /// Begins a flow for the account of the path. Responds with it if something is awaited, else with the account.
    func beginning(
        _ call: Call, _ begin: (AccountName) async throws(BrokerError) -> (flow: FlowView?, isNew: Bool)
    ) async throws(Problem) -> ServerResponse {
        let started = try await call.ask(begin)
        guard let flow = started.flow else { return ServerResponse(try await call.account(broker.account)) }
        return ServerResponse(status: started.isNew ? 201 : 200, flow.json(in: call.language))
    }
}

extension Component {
    static let beginning = Component("Beginning", .either([.flow, .account]))
}

extension Schema {
    static let channel: Schema = .words(["sms", "whatsapp"])
}

/// A field of another method is rejected: if it were ignored, the caller would believe that it has an effect.
extension Call {
    func projectSignIn() throws(Problem) -> SupabaseSignInFields {
        var fields = SupabaseSignInFields()
        fields.oauthProvider = try text("oauth_provider")
        fields.email = try text("email")
        fields.phone = try text("phone")
        fields.password = try newPassword()
        fields.data = try object("data")
        fields.channel = try text("channel")
        fields.captcha = try secret("captcha_token")
        fields.idToken = try secret("id_token")
        fields.fromAccount = try text("from_account")
        fields.appleUser = try object("user")
        fields.nonce = try secret("nonce")
        fields.accessToken = try secret("access_token")
        fields.refreshToken = try secret("refresh_token")
        fields.domain = try text("domain")
        fields.providerID = try text("provider_id")
        if has("persist") { fields.isPersistent = try truth("persist") }
        if has("create_user") { fields.createsUser = try truth("create_user") }
        fields.keepsProviderToken = try truth("provider_token")
        return fields
    }

    static let allProjectFields = SupabaseMethod.allCases.reduce(into: Set<String>()) { $0.formUnion($1.fields) }

    func refuseStrangers(to method: SignInMethod, taking fields: Set<String>) throws(Problem) {
        for name in Call.allProjectFields.sorted() where has(name) && !fields.contains(name) {
            throw invalid(name, "a sign-in by \(method) has no such field")
        }
    }

    func field(_ name: String) throws(FieldError) -> String? {
        do throws(Problem) { return try text(name) } catch { throw FieldError.notString(name) }
    }

    func scopes() throws(Problem) -> [String]? {
        let scopes = try text("scopes")?.split(separator: " ").map(String.init)
        if scopes?.isEmpty == true {
            throw invalid("scopes", "must not be empty; leave it out for the account's own scopes")
        }
        return scopes
    }

    func authorizationParameters() throws(Problem) -> [(String, String)] {
        let parameters = try texts("params")
        if let reserved = parameters.first(where: { SignInRequest.reservedParameters.contains($0.0) })?.0 {
            throw invalid("params.\(reserved)", "Ringback sets this parameter itself")
        }
        return parameters
    }
}

extension OAuthMethod {
    fileprivate var fields: Set<String> {
        switch self {
        case .browser: ["scopes", "params", "callback_port"]
        case .device: ["scopes", "params"]
        case .session: ["refresh_token"]
        }
    }
}

extension SupabaseMethod {
    var fields: Set<String> {
        switch self {
        case .browser: ["oauth_provider", "scopes", "params", "persist", "provider_token", "callback_port"]
        case .password: ["email", "phone", "password", "captcha_token", "persist"]
        case .signUp:
            ["email", "phone", "password", "password_confirmation", "data", "channel", "captcha_token", "persist"]
        case .otp: ["email", "phone", "data", "channel", "captcha_token", "persist", "create_user"]
        case .magicLink: ["email", "data", "captcha_token", "persist", "create_user"]
        case .idToken:
            [
                "oauth_provider", "id_token", "nonce", "access_token", "from_account", "user", "data",
                "captcha_token", "persist",
            ]
        case .passkey: ["captcha_token", "persist"]
        case .anonymous: ["data", "captcha_token", "persist"]
        case .sso: ["domain", "provider_id", "captcha_token", "persist", "provider_token", "callback_port"]
        case .page: ["persist"]
        case .session: ["access_token", "refresh_token", "persist"]
        case .link: ["oauth_provider", "scopes", "params", "id_token", "nonce", "access_token"]
        // Their endpoints read their own fields.
        case .recovery, .userUpdate: []
        }
    }
}

/// If an unknown member were ignored, a misspelt password would not be changed, and a misspelt limit would not hold.
extension Call {
    /// Rejects a member that the route does not read, even if it is null, and names the most similar known member.
    func refuseUnknownMembers() throws(Problem) {
        guard !wholeBody.names.isEmpty, let known = route.bodyMembers,
            let stranger = wholeBody.names.first(where: { !known.contains($0) })
        else { return }
        let meant = NearestWord.find(for: stranger, among: known).map { "; did you mean \($0)?" } ?? "."
        let list = known.isEmpty ? "It has none." : "It has: \(known.joined(separator: ", "))."
        throw Problem(.validationFailed, "\(Call.shown(stranger)): this request has no such member\(meant) \(list)")
    }

    /// A name from the caller, shortened for a sentence that may be shown on a terminal.
    static func shown(_ name: String) -> String {
        let letters = name.unicodeScalars.filter { $0.properties.generalCategory != .control }
        let start = String(String.UnicodeScalarView(letters.prefix(64)))
        return letters.count > 64 ? start + "…" : start
    }

    func newPassword() throws(Problem) -> Secret? {
        let password = try secret("password")
        guard let again = try secret("password_confirmation") else { return password }
        guard password == again else { throw invalid("password_confirmation", "must be the same as password") }
        return password
    }
}
