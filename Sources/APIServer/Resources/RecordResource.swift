internal import BrokerCore
internal import HTTPMessages
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import SessionVault
internal import StrictJSON

extension SocketAPI {
    /// So many entries have room in an answer; the file in the state directory has all that are kept.
    static let mostEntries = 1_000

    func audit(_ call: Call) async throws(Problem) -> ServerResponse {
        guard let records else { throw Problem(.notFound, "This daemon keeps no records.") }
        let since = try call.instant("since")
        let limit = try call.count("limit", atMost: SocketAPI.mostEntries) ?? SocketAPI.mostEntries
        // Not only accounts that there are: what a removed one did stays on record.
        let account = call.query("account")
        let found = await records.audit.entries(since: since, account: account, limit: limit)
        return ServerResponse(json: ["entries": .array(found.entries), "truncated": .bool(found.isTruncated)])
    }

    func metrics() async throws(Problem) -> ServerResponse {
        guard let records else { throw Problem(.notFound, "This daemon keeps no records.") }
        let views = await broker.accounts()
        let pending = await broker.pendingRevocations()
        let present = MetricsText.Present(
            accounts: AccountState.allCases.map { state in (state.rawValue, views.count { $0.state == state }) },
            pendingRevocations: pending.sorted { $0.key < $1.key }.map { ($0.key.rawValue, $0.value) },
            isVaultLocked: broker.vault.status.isLocked, uptime: uptime, audit: records.audit.health)
        let text = MetricsText.text(of: records.metrics, present)
        let fields = HTTPFields([("Content-Type", MetricsText.mediaType), ("Cache-Control", "no-store")])
        return ServerResponse(status: 200, fields: fields, body: Array(text.utf8))
    }
}
