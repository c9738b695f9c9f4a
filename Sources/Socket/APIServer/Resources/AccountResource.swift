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
        .optional("provider_host", text: "The host of the issuer or of the endpoints, with an unusual port"),
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
