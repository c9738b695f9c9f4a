/// The text format of the metrics: Prometheus exposition format 0.0.4.
public struct MetricsText: Sendable {
    /// The media type of the text.
    public static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

    /// Values that are determined when the text is written.
    public struct Present: Sendable {
        /// The number of accounts in each state, for all states.
        public var accounts: [(state: String, count: Int)]
        /// Revocations that the provider has not confirmed yet, by account.
        public var pendingRevocations: [(account: String, count: Int)]
        public var isVaultLocked: Bool
        /// Of a vault that hosts share: for how many seconds its database has been away, 0 if it is not, and how many
        /// changes it does not have yet.
        public var database: (away: Int, unsent: Int)?
        /// Seconds since the daemon's start.
        public var uptime: Int
        public var audit: AuditLog.Health?

        public init(
            accounts: [(state: String, count: Int)], pendingRevocations: [(account: String, count: Int)],
            isVaultLocked: Bool, database: (away: Int, unsent: Int)? = nil, uptime: Int, audit: AuditLog.Health?
        ) {
            self.accounts = accounts
            self.pendingRevocations = pendingRevocations
            self.isVaultLocked = isVaultLocked
            self.database = database
            self.uptime = uptime
            self.audit = audit
        }
    }

    /// All metrics as text.
    public static func text(of metrics: Metrics, _ present: Present) -> String {
        let counts = metrics.snapshot()
        var text = MetricsText()
        text.signIns(counts)
        text.family("refreshes_attempted_total", "counter", "Requests made to renew a token.")
        for (account, count) in counts.refreshes.sorted(by: { $0.key < $1.key }) {
            text.sample([("account", account)], count)
        }
        text.family("refreshes_failed_total", "counter", "Requests that did not renew a token, by code.")
        text.failures(counts.failedRefreshes)
        text.family("issued_tokens_total", "counter", "Tokens that were issued.")
        for (account, count) in counts.issuedTokens.sorted(by: { $0.key < $1.key }) {
            text.sample([("account", account)], count)
        }
        text.present(present)
        return text.output
    }

    private var output = ""
    private var name = ""

    private mutating func signIns(_ counts: Metrics.Counts) {
        family("sign_ins_started_total", "counter", "Sign-ins that were started.")
        signIns(counts.started)
        family("sign_ins_completed_total", "counter", "Sign-ins that ended with a session.")
        signIns(counts.completed)
        family("sign_ins_failed_total", "counter", "Sign-ins that failed or ran out of time, by code.")
        failures(counts.failed)
        family("sign_ins_cancelled_total", "counter", "Sign-ins that were cancelled.")
        signIns(counts.cancelled)
        family("sign_in_duration_seconds", "histogram", "From the start of a sign-in to its session.")
        for (key, durations) in counts.durations.sorted(by: {
            ($0.key.account, $0.key.method) < ($1.key.account, $1.key.method)
        }) {
            histogram(durations, [("account", key.account), ("method", key.method)])
        }
    }

    private mutating func present(_ present: Present) {
        // The state is part of the metric's name, because labels are only account, method and code.
        for (state, count) in present.accounts {
            family("accounts_\(state)", "gauge", "Accounts whose state is \(state).")
            sample([], count)
        }
        family("pending_revocations", "gauge", "Revocations that the provider has not confirmed yet.")
        for (account, count) in present.pendingRevocations { sample([("account", account)], count) }
        family("vault_locked", "gauge", "1 while the vault is locked.")
        sample([], present.isVaultLocked ? 1 : 0)
        if let database = present.database {
            family(
                "vault_database_away_seconds", "gauge",
                "Seconds since the vault's database went away; 0 if it is there.")
            sample([], database.away)
            family(
                "vault_database_unsent", "gauge", "Changes of this host that the vault's database does not have yet.")
            sample([], database.unsent)
        }
        if let audit = present.audit {
            family("audit_write_failures_total", "counter", "Attempts to write the audit log that failed.")
            sample([], audit.failures)
            family("audit_entries_lost_total", "counter", "Entries of the audit log that were given up.")
            sample([], audit.lost)
        }
        family("uptime_seconds", "gauge", "Seconds since the daemon's start.")
        sample([], present.uptime)
    }

    // MARK: The format

    private mutating func family(_ name: String, _ type: String, _ help: String) {
        self.name = "ringback_\(name)"
        output += "# HELP \(self.name) \(help)\n# TYPE \(self.name) \(type)\n"
    }

    private mutating func sample(_ labels: [(String, String)], _ value: Int, suffix: String = "") {
        output += "\(name)\(suffix)\(MetricsText.braced(labels)) \(value)\n"
    }

    private mutating func signIns(_ counts: [Metrics.SignIn: Int]) {
        for (key, count) in counts.sorted(by: { ($0.key.account, $0.key.method) < ($1.key.account, $1.key.method) }) {
            sample([("account", key.account), ("method", key.method)], count)
        }
    }

    private mutating func failures(_ counts: [Metrics.Failure: Int]) {
        let sorted = counts.sorted {
            ($0.key.account, $0.key.method ?? "", $0.key.code) < ($1.key.account, $1.key.method ?? "", $1.key.code)
        }
        for (key, count) in sorted {
            let method = key.method.map { [("method", $0)] } ?? []
            sample([("account", key.account)] + method + [("code", key.code)], count)
        }
    }

    private mutating func histogram(_ durations: Metrics.Durations, _ labels: [(String, String)]) {
        var sum = 0
        for (bound, count) in zip(Metrics.Durations.bounds, durations.buckets) {
            sum += count
            sample(labels + [("le", String(bound))], sum, suffix: "_bucket")
        }
        sample(labels + [("le", "+Inf")], durations.count, suffix: "_bucket")
        let (seconds, attoseconds) = durations.sum.components
        let milliseconds = String(1_000 + attoseconds / 1_000_000_000_000_000).dropFirst()
        output += "\(name)_sum\(MetricsText.braced(labels)) \(seconds).\(milliseconds)\n"
        sample(labels, durations.count, suffix: "_count")
    }

    private static func braced(_ labels: [(String, String)]) -> String {
        guard !labels.isEmpty else { return "" }
        return "{" + labels.map { "\($0)=\"\(escaped($1))\"" }.joined(separator: ",") + "}"
    }

    private static func escaped(_ text: String) -> String {
        var output = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": output += "\\\\"
            case "\"": output += "\\\""
            case "\n": output += "\\n"
            default: output.unicodeScalars.append(scalar)
            }
        }
        return output
    }
}
