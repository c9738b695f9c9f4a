internal import BrokerCore
internal import LocalHTTP
internal import OAuthSignIn
internal import RingbackAPI
internal import StrictJSON
internal import SupabaseSignIn

struct SignInResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .signIn, "Start a sign-in, or join an equal one that is pending",
            body: .members(members + membersAtProjects),
            statuses: [200, 201], .json(.beginning),
            errors: .ofAccount.and(.ofProvider).and([
                .methodUnsupported, .validationFailed, .stateConflict, .portInUse, .flowExpired, .invalidCredentials,
                .accessDenied, .userNotFound, .weakPassword, .emailAlreadyInUse, .sessionExpired, .signInRequired,
                .notFound, .invalidCallback,
            ]), SignInResource.signIn)
    ]

    /// Of every request that begins a flow.
    static let replace = Member.optional(
        "replace", .boolean, "Cancels a different sign-in of the account that is pending")

    private static let members: [Member] = [
        .optional(
            "method", .words(SupabaseMethod.ofSignIn.map(\.rawValue) + [OAuthMethod.device.rawValue]),
            "browser (the default); device (RFC 8628) where offered; at a project others"),
        .optional("scopes", .string, "Instead of the account's; separated by spaces"),
        .optional("params", .map(.string)), .optional("timeout", .range(1...3_600)),
        .optional("switch_subject", .boolean),
        replace,
        .optional("callback_port", .range(1...65_535)),
    ]

    /// The members that only sign-ins at Supabase projects have.
    private static let membersAtProjects: [Member] = [
        .optional("oauth_provider", .string), .optional("email", .string), .optional("phone", .string),
        .secret("password"), .secret("password_confirmation"), .optional("data", .anyObject),
        .optional("channel", .channel), .optional("captcha_token", .string), .optional("id_token", .string),
        .optional("nonce", .string), .optional("from_account", .string), .optional("user", .anyObject),
        .optional("access_token", .string), .secret("refresh_token"), .optional("domain", .string),
        .optional("provider_id", .string), .optional("persist", .boolean), .optional("create_user", .boolean),
        .optional("provider_token", .boolean),
    ]

    func signIn(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let isProject = try await call.ask { () throws(BrokerError) in try await broker.supabase.isProject(name) }
        var request = SignInRequest()
        request.method = try call.text("method").map { SignInMethod(rawValue: $0) } ?? .browser
        if isProject {
            // Methods with an endpoint of their own are not started here.
            guard let method = SupabaseMethod(request.method), SupabaseMethod.ofSignIn.contains(method) else {
                let names = SupabaseMethod.ofSignIn.map(\.rawValue).joined(separator: ", ")
                throw Problem(
                    .methodUnsupported, "\(name) has no sign-in method “\(request.method)”. It has: \(names).")
            }
            try call.refuseStrangers(to: method)
        } else if let method = OAuthMethod(request.method) {
            try call.refuseStrangers(to: method)
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
        let wanted = request
        let started = try await call.ask { () throws(BrokerError) in try await broker.begin(name, wanted) }
        return try await beginning(started, of: name, call)
    }
}

extension Resource {
    /// The response: the flow if something is awaited, the account if it was done at once.
    func beginning(
        _ started: (flow: FlowView?, isNew: Bool), of name: AccountName, _ call: Call
    ) async throws(Problem) -> ServerResponse {
        if let flow = started.flow {
            return ServerResponse(status: started.isNew ? 201 : 200, json: flow.json(in: call.language))
        }
        let view = try await call.ask { () throws(BrokerError) in try await broker.account(name) }
        return ServerResponse(json: view.json(in: call.language))
    }
}

extension Component {
    static let beginning = Component("Beginning", .either([.flow, .account]))
}

extension Schema {
    /// How a message to a phone is sent.
    static let channel: Schema = .words(["sms", "whatsapp"])
}
