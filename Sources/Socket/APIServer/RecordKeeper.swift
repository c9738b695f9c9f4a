public import BrokerCore
internal import LocalHTTP
public import Records
internal import RingbackAPI
internal import RingbackBase
internal import SessionVault
internal import Synchronization

/// Turns the broker's facts into audit entries and metrics. Never blocks: the broker calls it in its turns.
public final class RecordKeeper: Sendable {
    public let audit: AuditLog
    public let metrics: Metrics
    let telemetry: Telemetry
    private let failures = Mutex(RepeatedFailures())

    public init(audit: AuditLog, metrics: Metrics = Metrics()) {
        self.audit = audit
        self.metrics = metrics
        telemetry = Telemetry(now: audit.now)
    }

    @Sendable public func note(_ fact: BrokerFact) {
        count(fact)
        telemetry.note(fact)
        switch fact {
        // Only counted. What they lead to has an entry of its own.
        case .signInChosen, .signInStarted, .refreshStarted, .refreshSucceeded: break
        // Other parts notify the user.
        case .signInWanted, .sessionEnding: break
        case .signInEnded(let account, let method, let outcome, let duration, let error, _):
            write(
                "sign_in", account, error,
                with: [
                    "method": method.rawValue, "outcome": outcome.rawValue,
                    "seconds": Int(duration.components.seconds),
                ])
        case .callbackRefused(let account, let reason):
            write("callback_refused", account, .invalidCallback(reason), with: ["reason": bounded(reason.sentence)])
        case .sessionOpened(let account, let subject, let replacing): opened(account, subject, replacing)
        case .identityLinked(let account, let provider, let sight):
            let linkedAt: Int? = if case .former(let instant) = sight { instant.seconds } else { nil }
            write(
                "identity_linked", account,
                with: [
                    "identity_provider": bounded(provider), "inferred": sight == .asked ? nil : true,
                    "linked_at": linkedAt,
                ])
        case .identityUnlinked(let account, let provider, let isInferred):
            write(
                "identity_unlinked", account,
                with: ["identity_provider": bounded(provider), "inferred": isInferred ? true : nil])
        case .passkeyRegistered(let account, let id):
            write("passkey_registered", account, with: ["passkey": bounded(id)])
        case .passkeyRemoved(let account, let id): write("passkey_removed", account, with: ["passkey": bounded(id)])
        case .sessionClosed(let account, let subject): write("signed_out", account, subject: subject)
        case .sessionEnded(let account, let subject, let unheard, let error):
            write(
                "session_ended", account, subject: subject,
                with: [
                    "provider_message": error.flatMap(RecordKeeper.providerMessage(of:)),
                    "unheard_host": unheard?.host,
                    "unheard_seconds": unheard.map { Int($0.age.components.seconds) },
                ])
        case .refreshFailed(let account, let error): failed("refresh_failed", account, error)
        case .downscopingFailed(let account, let error): failed("downscoping_failed", account, error)
        case .idTokenDropped(let account, let error):
            let reason: Reason? = if case .provider(.invalidResponse(let reason)) = error { reason } else { nil }
            write("id_token_dropped", account, error, with: ["reason": reason.map { bounded($0.sentence) }])
        case .scopesLost(let account, let scopes):
            write("scopes_lost", account, with: ["scope": bounded(scopes.joined(separator: " "))])
        case .clockDiffers(let account, let host, let seconds):
            write("clock_differs", account, with: ["host": bounded(host), "seconds": seconds])
        case .revocationPostponed(let account, let error): write("revocation_postponed", account, error)
        case .revocationDelivered(let account): write("revocation_delivered", account)
        case .revocationNotOffered(let account): write("revocation_not_offered", account)
        case .revocationAbandoned(let account): write("revocation_abandoned", account)
        case .vaultOpened(let source): write("vault_unlocked", nil, with: ["key_source": source.word])
        case .vaultLocked: write("vault_locked", nil)
        case .vaultRefused(let error): write("unlock_refused", nil, error)
        case .vaultRekeyed(let former, let source):
            write("vault_rekeyed", nil, with: ["former_key_source": former.word, "key_source": source.word])
        case .databaseTurned(.away(let reason)): write("database_away", nil, with: ["reason": reason.sentence])
        case .databaseTurned(.returned(let span)):
            write("database_returned", nil, with: ["seconds": Int(span.components.seconds)])
        case .clientRegistered(let account, let issuer, let clientID):
            write("client_registered", account, with: ["issuer": bounded(issuer), "client_id": bounded(clientID)])
        case .registrationDeleted(let account, let clientID):
            write("registration_deleted", account, with: ["client_id": clientID.map(bounded)])
        case .registrationLeft(let account, let error): write("registration_left", account, error)
        case .linkListenerReplaced(let scheme, let program, let former):
            write(
                "listener_replaced", nil,
                with: [
                    "scheme": scheme, "uid": program.map { Int($0.uid) }, "pid": program.map { Int($0.pid) },
                    "executable": program.flatMap { ProcessFacts.executable(of: $0.pid) },
                    "former_pid": former.map { Int($0.pid) },
                ])
        case .consent(let news): note(news)
        case .applicationStarted(let scheme): write("application_started", nil, with: ["scheme": scheme])
        case .applicationNotStarted(let scheme, let reason):
            write("application_not_started", nil, with: ["scheme": scheme, "reason": bounded(reason)])
        }
    }

    private func note(_ news: ConsentNews) {
        func note(_ event: String, _ question: ConsentQuestion, with more: JSONObject = [:]) {
            let members: JSONObject = [
                "consent": question.id, "operation": question.use.rawValue, "scope": question.scope.map(bounded),
                "program": question.program.text,
            ]
            write(event, question.account, with: JSONObject(members.members + more.members))
        }
        switch news {
        case .used(let account, let use, let program):
            write("account_used", account, with: ["operation": use.rawValue, "program": program.text])
        case .requested(let question): note("consent_requested", question)
        case .decided(let question, let decision, let remember, let answerer):
            let answer: JSONObject = [
                "decision": decision.rawValue, "remember": remember, "answered_by": answerer.text,
            ]
            var who = JSONObject()
            if case .program(_, let uid, let pid) = answerer { who = ["uid": Int(uid), "pid": Int(pid)] }
            note("consent_decided", question, with: JSONObject(answer.members + who.members))
        case .lapsed(let question): note("consent_unanswered", question)
        case .flooded(let account, let program):
            write("consents_flooded", account, with: ["program": program.text])
        }
    }

    private func failed(_ event: String, _ account: AccountName, _ error: BrokerError) {
        let failure = RepeatedFailures.Failure(
            event: event, account: account, code: RecordKeeper.code(of: error),
            providerCode: RecordKeeper.providerCode(of: error))
        guard let count = failures.withLock({ $0.note(failure, at: WallInstant(seconds: audit.now())) }) else { return }
        write(event, account, error, with: ["count": count > 1 ? count : nil])
    }

    private func opened(_ account: AccountName, _ subject: String?, _ replacing: String??) {
        if let former = replacing, former != subject {
            write("subject_switched", account, subject: subject, with: ["former_subject": former])
        } else {
            write("signed_in", account, subject: subject)
        }
    }

    private func write(
        _ event: String, _ account: AccountName?, _ error: BrokerError? = nil, subject: String? = nil,
        with more: JSONObject = [:]
    ) {
        let who: JSONObject = ["account": account?.rawValue, "subject": subject.map(bounded)]
        let failure: JSONObject = [
            "code": error.map(RecordKeeper.code), "provider_code": error.flatMap(RecordKeeper.providerCode(of:)),
            "provider_message": error.flatMap(RecordKeeper.providerMessage(of:)),
        ]
        audit.write(event, JSONObject(who.members + more.members + failure.members))
    }

    private func bounded(_ text: String) -> String { RecordKeeper.bounded(text) }

    private func count(_ fact: BrokerFact) {
        switch fact {
        case .signInStarted(let account, let method):
            metrics.count(.signInsStarted, account.rawValue, method: method.rawValue)
        case .signInEnded(let account, let method, let outcome, let duration, let error, _):
            let method = method.rawValue
            switch outcome {
            case .completed: metrics.signInCompleted(account.rawValue, method: method, duration: duration)
            case .cancelled: metrics.count(.signInsCancelled, account.rawValue, method: method)
            case .failed, .expired:
                let code = error.map(RecordKeeper.code) ?? ErrorCode.flowExpired.rawValue
                metrics.count(.signInsFailed, account.rawValue, method: method, code: code)
            }
        case .refreshStarted(let account, _): metrics.count(.refreshesAttempted, account.rawValue)
        // Each attempt was counted, for a downscoped token too.
        case .refreshFailed(let account, let error), .downscopingFailed(let account, let error):
            metrics.count(.refreshesFailed, account.rawValue, code: RecordKeeper.code(of: error))
        default: break
        }
    }

    private static func providerCode(of error: BrokerError) -> String? {
        switch error {
        case .provider(.refused(let code, _)), .provider(.failing(_, let code, _, _)), .serviceRefused(_, let code, _),
            .refreshRefused(_, _, .answered(let code, _)):
            return code
        case .clientForgotten(_, _, let code, _, _), .refreshRefused(_, _, .client(let code, _)): return code
        default: return nil
        }
    }

    /// What the provider said, checked and without the request's secrets.
    private static func providerMessage(of error: BrokerError) -> String? {
        Problem(error, language: .english).extensions["provider_message"]?.string
    }

    static func code(of error: BrokerError) -> String { Problem(error, language: .english).code.rawValue }

    /// Text from outside, cut to what fits into an entry.
    static func bounded(_ text: String) -> String {
        text.utf8.count <= 1_000 ? text : String(text.unicodeScalars.prefix(1_000))
    }
}

/// Counts equal failed refreshes and downscopings: one line of the audit log in five minutes. Attack: a program behind
/// an exposed socket requests a scope that the provider refuses, again and again, and pushes the other entries out.
struct RepeatedFailures: Sendable {
    struct Failure: Hashable {
        let event: String
        let account: AccountName
        let code: String
        let providerCode: String?
    }
    private struct Entry {
        var writtenAt: WallInstant
        var count = 0
    }

    static let interval: Duration = .seconds(300)
    static let most = 1_024
    private var entries: [Failure: Entry] = [:]

    /// Returns for how many failures a line is to be written, this one included; nil for no line now.
    mutating func note(_ failure: Failure, at now: WallInstant) -> Int? {
        if var entry = entries[failure], now >= entry.writtenAt, now - entry.writtenAt < RepeatedFailures.interval {
            entry.count += 1
            entries[failure] = entry
            return nil
        }
        let count = (entries[failure]?.count ?? 0) + 1
        // Failures of removed accounts stay here until the limit is reached.
        if entries.count >= RepeatedFailures.most { entries = [:] }
        entries[failure] = Entry(writtenAt: now)
        return count
    }
}

extension ConsentAnswerer {
    fileprivate var text: String {
        switch self {
        case .notice: "the notice"
        case .program(let program, _, _): program.text
        }
    }
}

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
        let text = MetricsText.text(
            of: records.metrics,
            accounts: AccountState.allCases.map { state in (state.rawValue, views.count { $0.state == state }) },
            pendingRevocations: pending.sorted { $0.key < $1.key }.map { ($0.key.rawValue, $0.value) },
            isVaultLocked: vault.isLocked, database: vault.database.map { ($0.awaySeconds, $0.unsent) },
            uptime: api.uptime, audit: records.audit.health)
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
