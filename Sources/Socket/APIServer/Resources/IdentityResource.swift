internal import BrokerCore
internal import LocalHTTP
internal import RingbackAPI
internal import StrictJSON
internal import SupabaseAuth
internal import SupabaseSignIn

/// The identities of a user at a Supabase project, and the OAuth clients that the user has allowed there.
struct IdentityResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .listIdentities, "The user's identities", .json(.identities), errors: .ofSession,
            IdentityResource.listIdentities),
        Route(
            .linkIdentity, "Link an identity, in the browser or by an ID token",
            body: .members([
                .optional("oauth_provider", .string), .optional("id_token", .string), .optional("nonce", .string),
                .optional("access_token", .string), .optional("scopes", .string), .optional("params", .map(.string)),
                .optional("timeout", .range(1...3_600)), SignInResource.replace,
            ]), statuses: [200, 201], .json(.beginning), errors: .ofFlow, IdentityResource.linkIdentity),
        Route(
            .unlinkIdentity, "Unlink an identity", .json(.identities), errors: .ofSession,
            IdentityResource.unlinkIdentity),
        Route(
            .listConsents, "The OAuth clients of the project that the user has allowed", .json(.consents),
            errors: .ofSession, IdentityResource.listConsents),
        Route(
            .revokeConsent, "Revoke the consent for a client: the project ends its sessions of this user",
            .json(.revokedConsent), errors: .ofSession, IdentityResource.revokeConsent),
    ]

    func listIdentities(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let user = try await call.ask { () throws(BrokerError) in try await broker.supabase.user(name) }
        return ServerResponse(json: ["identities": user["identities"] ?? .array([])])
    }

    func linkIdentity(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        try call.refuseStrangers(to: SupabaseMethod.link)
        var request = SignInRequest(.link)
        request.parameters = try call.authorizationParameters()
        request.timeout = try call.number("timeout", in: 1...3_600).map { .seconds($0) }
        request.scopes = try call.scopes()
        request.replaces = try call.truth("replace")
        request.project = try call.projectSignIn()
        let wanted = request
        let started = try await call.ask { () throws(BrokerError) in try await broker.begin(name, wanted) }
        return try await beginning(started, of: name, call)
    }

    func unlinkIdentity(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let id = call.parameters["id"] ?? ""
        let user = try await call.ask { () throws(BrokerError) in try await broker.supabase.unlink(name, identity: id) }
        return ServerResponse(json: ["identities": user["identities"] ?? .array([])])
    }

    func listConsents(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let consents = try await call.ask { () throws(BrokerError) in try await broker.supabase.consents(name) }
        return ServerResponse(json: ["consents": .array(consents.map { .object($0.json) })])
    }

    func revokeConsent(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let id = call.parameters["id"] ?? ""
        try await call.ask { () throws(BrokerError) in try await broker.supabase.revokeConsent(name, client: id) }
        return ServerResponse(json: ["account": .string(name.rawValue), "revoked": .string(id)])
    }
}

extension Component {
    fileprivate static let identities = Component("Identities", [.required("identities", .array(.anyObject))])
    fileprivate static let consent = Component(
        "Consent",
        [
            .required("client_id", .string), .optional("client_name", .string), .optional("client_uri", .string),
            .required("scopes", .array(.string)), .optional("granted_at", .string),
        ])
    fileprivate static let consents = Component("Consents", [.required("consents", .array(.component(.consent)))])
    fileprivate static let revokedConsent = Component(
        "RevokedConsent", [.required("account", .string), .required("revoked", .string)])
}
