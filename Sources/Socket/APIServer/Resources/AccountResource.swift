internal import BrokerCore
internal import LocalHTTP
internal import OAuthSignIn
internal import RingbackAPI
internal import RingbackBase
internal import SupabaseSignIn

struct AccountResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .listAccounts, "Every account, by name",
            .json("Accounts", .required("accounts", as: .array(.component(.account))))
        ) { (broker, call) throws(Problem) in
            ["accounts": await broker.accounts().map { $0.json(in: call.language) }]
        },
        Route(.getAccount, "One account", .json(.account), errors: .ofAccount) { (broker, call) throws(Problem) in
            try await call.account(broker.account)
        },
    ]
}

extension AccountView {
    func json(in language: Language) -> JSONObject {
        [
            "name": name.rawValue, "provider": provider, "provider_host": providerHost, "state": state.rawValue,
            "source": source,
            "default": isDefault ? true : nil, "browser": page.browser,
            "display_name": page.displayName, "interactive": page.opensAtOnce ? "open" : nil,
            "stale": isStale ? true : nil, "grant": grant, "through": kind.upstream?.rawValue,
            "sign_in": grant == nil && !kind.needsSignIn ? false : nil, "subject": subject,
            "same_user_as": sameUser.isEmpty ? nil : sameUser.map(\.rawValue), "user": user, "aal": assurance,
            "migration": migratesFrom.map { ["from": $0, "to": subject ?? ""] as JSONObject },
            "next_aal": nextAssurance, "expires_at": expiresAt?.seconds, "ends_at": endsAt?.seconds,
            "refreshable": isRefreshable ? nil : false,
            "flow": flow.map { ["id": $0.id, "method": $0.method.rawValue] as JSONObject },
            "lost_scope": lostScopes.isEmpty ? nil : lostScopes.joined(separator: " "),
            "revocation": revocation?.word, "notice": notice?.sentence,
            "error": error.map { Problem($0, language: language).json },
        ]
    }
}

extension [AccountView] {
    var states: JSONObject {
        JSONObject(AccountState.allCases.map { state in .init(state.rawValue, .integer(count { $0.state == state })) })
    }
}

extension Component {
    static let account = Component("Account", accountMembers)

    static let accountMembers: [Member] = .members(
        .required("name", "provider", "source"), .required("state", as: .oneOf(AccountState.self)),
        .optional("default", "stale", as: .boolean),
        .optional(
            "same_user_as", as: .array(.string),
            text: "Other accounts that hold a session of the same user at the same provider"),
        .optional("browser", as: .array(.string), text: "The program that opens the sign-in page; {url}: the address"),
        .optional("sign_in", as: .boolean, text: "false: the MCP server takes requests without a token"),
        .optional(
            "interactive", as: .words(["open"]),
            text: "A tool that waits on a terminal opens the sign-in page at once"),
        .optional(
            "provider_host",
            text: "The host of the issuer, of the endpoints or of the MCP server, with an unusual port"),
        .optional("display_name", text: "The app's name, to be shown beside the provider's host"),
        .optional("through", text: "The account through whose sign-in this one gets its tokens"),
        .optional("grant", "subject", "aal", "next_aal", "notice", "lost_scope"), .optional("user", as: .anyObject),
        .optional("migration", as: .migration), .optional("expires_at", as: .integer),
        .optional(
            "ends_at", as: .integer,
            text: "When the session ends unless it is refreshed before, where the provider says so"),
        .optional("refreshable", as: .boolean, text: "false: the session has no refresh token"),
        .optional("flow", as: .object([.required("id", .string), .required("method", .string)])),
        .optional("error", as: .component(.problem)),
        .optional(
            "revocation", as: .words(["revoked", "not_offered", "pending", "refused"]),
            text: "pending or refused: the provider has not revoked a session that was signed out"))
}

extension RevocationState {
    var word: String {
        switch self {
        case .revoked: "revoked"
        case .notOffered: "not_offered"
        case .pending: "pending"
        case .refused: "refused"
        }
    }
}

extension Schema {
    static let migration: Schema = .object([.required("from", .string), .required("to", .string)])
}

/// Registers clients for accounts to be added, and deletes them. The secrets stay in the vault: no response has them.
struct RegistrationResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .register, "Register a client (RFC 7591) for an account that is to be added",
            body: .members(
                .required("account", "issuer"), .optional("scopes", text: "Separated by spaces"),
                .optional("redirect_uri", text: "The redirect URI of the account; {port} stands for any port"),
                .optional(
                    "token_endpoint_auth_method", as: .words(RegistrationOrder.authentications),
                    text: "Without it, chosen from what the provider offers"),
                .optional("ca_file", text: "A path"),
                .optional("replace", as: .boolean, text: "The account may exist: its client is to be replaced"),
                .secret("initial_access_token")), statuses: [201],
            .json(
                "Registration", .required("account", "issuer", "client_id", "token_endpoint_auth_method", "scopes"),
                .required("client_secret_registered", "managed", as: .boolean),
                .optional("client_secret_expires_at", as: .integer),
                .required("redirect_uris", "redirect_uris_requested", as: .array(.string))), errors: .ofRegistration,
            RegistrationResource.register),
        Route(
            .deleteRegistration, "Delete a registration, at the provider and in the vault",
            query: .members(
                .optional(
                    "issuer",
                    text:
                        "Where a registration is that no account uses; without it, the one that the account itself uses"
                ),
                .optional("client_id", text: "Which one at the issuer; without it, one that could not be used"),
                .optional("ca_file", text: "Certificates to trust instead of the system's")),
            .json(
                "RegistrationDeleted", .required("account", "issuer"), .optional("client_id"),
                .required("deleted_at_provider", as: .boolean)),
            errors: .ofRegistration.and([.accountNotFound, .notFound]),
            RegistrationResource.deleteRegistration),
    ]

    func register(_ call: Call) async throws(Problem) -> ServerResponse {
        let order = try await registrationOrder(call)
        let view = try await call.ask { () throws(BrokerError) in try await Registrations(of: broker).register(order) }
        return ServerResponse(status: 201, registration(view))
    }

    func deleteRegistration(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        guard let issuer = call.query("issuer") else { return try await deleteOwnRegistration(name, call) }
        guard !issuer.isEmpty else { throw call.invalid("issuer", "it is empty") }
        let trust = try await trust(call, call.query("ca_file"))
        let isTold = try await call.ask { () throws(BrokerError) in
            try await Registrations(of: broker).delete(
                name, issuer: issuer, clientID: call.query("client_id"), trust: trust)
        }
        return ServerResponse([
            "account": name.rawValue, "issuer": issuer, "client_id": call.query("client_id"),
            "deleted_at_provider": isTold,
        ])
    }

    /// The registration of an account that is configured. Afterwards the account cannot sign in any more.
    private func deleteOwnRegistration(_ name: AccountName, _ call: Call) async throws(Problem) -> ServerResponse {
        for member in ["client_id", "ca_file"] where call.query(member) != nil {
            throw call.invalid(member, "it belongs to issuer")
        }
        let deleted = try await call.ask { () throws(BrokerError) in
            try await Registrations(of: broker).deleteOwn(name)
        }
        return ServerResponse([
            "account": name.rawValue, "issuer": deleted.issuer, "client_id": deleted.clientID,
            "deleted_at_provider": deleted.isTold,
        ])
    }

    private func registrationOrder(_ call: Call) async throws(Problem) -> RegistrationOrder {
        guard let text = try call.text("account"), let name = AccountName(text) else {
            throw call.invalid("account", "must be a name: small letters, digits, “.”, “_” and “-”, at most 64")
        }
        guard let issuer = try call.text("issuer"), !issuer.isEmpty else {
            throw call.invalid("issuer", "it is required")
        }
        var order = RegistrationOrder(account: name, issuer: issuer)
        order.scopes = (try call.text("scopes") ?? "").split(separator: " ").map(String.init)
        order.replaces = try call.truth("replace")
        order.redirectURI = try call.text("redirect_uri")
        order.authentication = try call.text("token_endpoint_auth_method")
        if let way = order.authentication, !RegistrationOrder.authentications.contains(way) {
            let words = RegistrationOrder.authentications.joined(separator: ", ")
            throw call.invalid("token_endpoint_auth_method", "must be one of: \(words)")
        }
        order.initialAccessToken = try call.secret("initial_access_token")
        // It is sent in a header field.
        if let token = order.initialAccessToken, !token.revealed().utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) {
            throw call.invalid("initial_access_token", "it has characters that are not allowed in a token")
        }
        order.trust = try await trust(call, try call.text("ca_file"))
        return order
    }

    private func trust(_ call: Call, _ path: String?) async throws(Problem) -> ServerTrust {
        guard let path else { return .system }
        do throws(UntrustedFile) { return try daemon.certificates(path) } catch {
            throw call.invalid("ca_file", error.reason)
        }
    }

    private func registration(_ view: RegistrationView) -> JSONObject {
        [
            "account": view.account.rawValue, "issuer": view.issuer, "client_id": view.clientID,
            "token_endpoint_auth_method": view.authentication, "client_secret_registered": view.hasSecret,
            "client_secret_expires_at": view.secretExpiresAt?.seconds, "redirect_uris": view.redirectURIs,
            "redirect_uris_requested": view.askedRedirectURIs, "scopes": view.scopes.joined(separator: " "),
            "managed": view.isManaged,
        ]
    }
}

/// A file that must not be trusted. The reason is the end of a sentence.
public struct UntrustedFile: Error, Sendable {
    public let reason: String
    public init(reason: String) { self.reason = reason }
}
