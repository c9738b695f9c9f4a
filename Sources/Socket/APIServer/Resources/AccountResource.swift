internal import BrokerCore
internal import LocalHTTP
internal import OAuthSignIn
internal import RingbackAPI
internal import RingbackBase
internal import SupabaseSignIn

struct AccountResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(.listAccounts, "Every account, by name", .json(.accounts), AccountResource.listAccounts),
        Route(.getAccount, "One account", .json(.account), errors: .ofAccount, AccountResource.getAccount),
    ]

    func listAccounts(_ call: Call) async throws(Problem) -> ServerResponse {
        let views = await broker.accounts()
        return ServerResponse(json: ["accounts": .array(views.map { $0.json(in: call.language) })])
    }

    func getAccount(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let view = try await call.ask { () throws(BrokerError) in try await broker.account(name) }
        return ServerResponse(json: view.json(in: call.language))
    }
}

extension AccountView {
    /// The account as the API shows it.
    func json(in language: Language) -> JSON {
        var object = JSONObject([
            .init("name", .string(name.rawValue)), .init("provider", .string(provider)),
            .init("state", .string(state.rawValue)), .init("source", .string(source)),
        ])
        if isDefault { object["default"] = true }
        if isStale { object["stale"] = true }
        object["grant"] = grant.map { .string($0) }
        object["subject"] = subject.map { .string($0) }
        object["user"] = user.map { .object($0) }
        object["aal"] = assurance.map { .string($0) }
        object["migration"] = migratesFrom.map { ["from": .string($0), "to": .string(subject ?? "")] }
        object["next_aal"] = nextAssurance.map { .string($0) }
        object["expires_at"] = expiresAt.map { .integer($0.seconds) }
        object["flow"] = flow.map { ["id": .string($0.id), "method": .string($0.method.rawValue)] }
        if !lostScopes.isEmpty { object["lost_scope"] = .string(lostScopes.joined(separator: " ")) }
        object["revocation"] = revocation.map { .string($0.word) }
        object["notice"] = notice.map { .string($0.sentence) }
        object["error"] = error.map { Problem($0, language: language).json }
        return .object(object)
    }
}

extension Component {
    static let account = Component("Account", accountMembers)
    static let accounts = Component("Accounts", .required("accounts", as: .array(.component(.account))))

    static let accountMembers: [Member] = .members(
        .required("name", "provider", "source"), .required("state", as: .oneOf(AccountState.self)),
        .optional("default", "stale", as: .boolean),
        .optional("grant", "subject", "aal", "next_aal", "notice", "lost_scope"), .optional("user", as: .anyObject),
        .optional("migration", as: .migration), .optional("expires_at", as: .integer),
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
