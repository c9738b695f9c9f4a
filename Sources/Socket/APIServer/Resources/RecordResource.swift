internal import BrokerCore
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import RingbackBase
internal import SessionVault

struct RecordResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .getAudit, "The newest entries of the audit log, oldest first; truncated: there are older ones",
            query: [
                .optional("since", .string, "Unix seconds, or a time as RFC 3339 writes it"),
                .optional("account", .string, "Only entries about this account"),
                .optional("limit", .integer, "Entries at most, up to 1000 (the default)"),
            ], .json(.audit), errors: [.validationFailed, .notFound], RecordResource.audit),
        Route(
            .getMetrics, "Metrics in Prometheus's text format", .text(MetricsText.mediaType), errors: [.notFound],
            RecordResource.metrics),
    ]

    /// The most entries of a response. The file in the state directory has all that are kept.
    static let mostEntries = 1_000

    func audit(_ call: Call) async throws(Problem) -> ServerResponse {
        let records = try kept()
        let since = try call.instant("since")?.seconds
        let limit = try call.count("limit", atMost: RecordResource.mostEntries) ?? RecordResource.mostEntries
        // The account need not exist: entries about a removed one are kept.
        let account = call.query("account")
        let found = await records.audit.entries(since: since, account: account, limit: limit)
        return ServerResponse(["entries": found.entries, "truncated": found.isTruncated])
    }

    func metrics(_ call: Call) async throws(Problem) -> ServerResponse {
        let records = try kept()
        let views = await broker.accounts()
        let pending = await broker.pendingRevocations()
        let vault = broker.vault.status
        let present = MetricsText.Present(
            accounts: AccountState.allCases.map { state in (state.rawValue, views.count { $0.state == state }) },
            pendingRevocations: pending.sorted { $0.key < $1.key }.map { ($0.key.rawValue, $0.value) },
            isVaultLocked: vault.isLocked, database: vault.database.map { ($0.awaySeconds, $0.unsent) },
            uptime: api.uptime, audit: records.audit.health)
        let text = MetricsText.text(of: records.metrics, present)
        let fields = HTTPFields([("Content-Type", MetricsText.mediaType), ("Cache-Control", "no-store")])
        return ServerResponse(status: 200, fields: fields, body: Array(text.utf8))
    }
}

extension VaultDatabase {
    /// 0 while it can be used. A database that went away is not 0 in its first second.
    fileprivate var awaySeconds: Int { away.map { max(Int($0.components.seconds), 1) } ?? 0 }
}

extension Component {
    fileprivate static let audit = Component(
        "Audit", .required("entries", as: .array(entry)), .required("truncated", as: .boolean))

    private static let entry: Schema = .object(told + texts + numbers + others)

    private static let told: [Member] = [
        .required("time", .integer), .required("time_text", .string), .required("event", .string),
    ]
    private static let others: [Member] = [
        .optional("verified", .boolean), .optional("inferred", .boolean), .optional("nested", .boolean),
        .optional("proof", .boolean),
        .optional("accounts", .array(.string)),
        .optional("allow_uids", .array(.integer)), .optional("tools", .array(.string)),
        .optional("methods", .array(.string)),
    ]
    private static let texts: [Member] = [
        "account", "subject", "former_subject", "operation", "route", "scope", "audience", "resource", "executable",
        "unit", "method", "outcome", "code", "provider_code", "key_source", "former_key_source", "issuer", "client_id",
        "identity_provider", "exposed_socket", "reason", "flatpak", "scheme", "on_host", "unheard_host", "origin",
        "tool", "host", "owner", "role", "program", "consent", "decision", "remember", "answered_by",
    ].map { .optional($0, .string) }
    private static let numbers: [Member] = [
        "uid", "pid", "count", "first", "last", "seconds", "linked_at", "expires_at", "former_pid", "unheard_seconds",
    ].map { .optional($0, .integer) }
}
