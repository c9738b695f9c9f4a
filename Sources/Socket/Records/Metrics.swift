internal import Synchronization

/// Counters for `GET /v1/metrics`. No text from a caller or a provider becomes a label: all values are of closed sets.
public final class Metrics: Sendable {
    public enum Counter: String, Sendable, CaseIterable {
        case signInsStarted = "sign_ins_started_total"
        case signInsCompleted = "sign_ins_completed_total"
        case signInsFailed = "sign_ins_failed_total"
        case signInsCancelled = "sign_ins_cancelled_total"
        case refreshesAttempted = "refreshes_attempted_total"
        case refreshesFailed = "refreshes_failed_total"

        var help: String {
            switch self {
            case .signInsStarted: "Sign-ins that were started."
            case .signInsCompleted: "Sign-ins that ended with a session."
            case .signInsFailed: "Sign-ins that failed or ran out of time, by code."
            case .signInsCancelled: "Sign-ins that were cancelled."
            case .refreshesAttempted: "Requests made to renew a token."
            case .refreshesFailed: "Requests that did not renew a token, by code."
            }
        }
    }
    struct Labels: Hashable, Comparable, Sendable {
        let account: String
        var method: String?
        var code: String?

        var pairs: [(String, String)] {
            [("account", account)] + (method.map { [("method", $0)] } ?? []) + (code.map { [("code", $0)] } ?? [])
        }

        static func < (left: Labels, right: Labels) -> Bool {
            (left.account, left.method ?? "", left.code ?? "") < (right.account, right.method ?? "", right.code ?? "")
        }
    }
    /// How long sign-ins took. The buckets are added up to cumulative ones only in the output.
    struct Durations: Sendable {
        /// The upper bounds of the buckets in seconds.
        static let bounds = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600]
        var buckets = [Int](repeating: 0, count: Durations.bounds.count)
        var count = 0
        var sum: Duration = .zero

        mutating func add(_ duration: Duration) {
            count += 1
            sum += duration
            if let place = Durations.bounds.firstIndex(where: { duration <= .seconds($0) }) { buckets[place] += 1 }
        }
    }
    struct Counts: Sendable {
        var numbers: [Counter: [Labels: Int]] = [:]
        var durations: [Labels: Durations] = [:]
        var issuedTokens: [String: Int] = [:]
    }
    private let counts = Mutex(Counts())
    private let issuedTokens = Mutex<[String: IssuedTokens]>([:])
    public init() {}

    public func count(_ counter: Counter, _ account: String, method: String? = nil, code: String? = nil) {
        let labels = Labels(account: account, method: method, code: code)
        counts.withLock { $0.numbers[counter, default: [:]][labels, default: 0] += 1 }
    }

    public func signInCompleted(_ account: String, method: String, duration: Duration) {
        count(.signInsCompleted, account, method: method)
        let labels = Labels(account: account, method: method)
        counts.withLock { $0.durations[labels, default: Durations()].add(duration) }
    }

    public final class IssuedTokens: Sendable {
        fileprivate let count = Atomic<Int>(0)
        public func add() { count.wrappingAdd(1, ordering: .relaxed) }
    }

    public func issuedTokens(of account: String) -> IssuedTokens {
        issuedTokens.withLock { counters in
            if let known = counters[account] { return known }
            let counter = IssuedTokens()
            counters[account] = counter
            return counter
        }
    }

    func snapshot() -> Counts {
        var copy = counts.withLock { $0 }
        // An account without issued tokens has no line.
        copy.issuedTokens = issuedTokens.withLock { counters in
            counters.mapValues { $0.count.load(ordering: .relaxed) }.filter { $0.value > 0 }
        }
        return copy
    }
}

/// The text format of the metrics: Prometheus exposition format 0.0.4.
public struct MetricsText: Sendable {
    public static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

    /// - Parameters:
    ///   - database: of a shared vault: for how many seconds it has been away, and how many changes it lacks.
    ///   - uptime: seconds since the daemon's start.
    public static func text(
        of metrics: Metrics, accounts: [(state: String, count: Int)],
        pendingRevocations: [(account: String, count: Int)], isVaultLocked: Bool,
        database: (away: Int, unsent: Int)? = nil, uptime: Int, audit: AuditLog.Health?
    ) -> String {
        let counts = metrics.snapshot()
        var text = MetricsText()
        for counter in Metrics.Counter.allCases {
            text.family(counter.rawValue, "counter", counter.help)
            for (labels, count) in counts.numbers[counter, default: [:]].sorted(by: { $0.key < $1.key }) {
                text.sample(labels.pairs, count)
            }
        }
        text.family("sign_in_duration_seconds", "histogram", "From the start of a sign-in to its session.")
        for (labels, durations) in counts.durations.sorted(by: { $0.key < $1.key }) {
            text.histogram(durations, labels.pairs)
        }
        text.family("issued_tokens_total", "counter", "Tokens that were issued.")
        for (account, count) in counts.issuedTokens.sorted(by: { $0.key < $1.key }) {
            text.sample([("account", account)], count)
        }
        // The state is part of the metric's name, because labels are only account, method and code.
        for (state, count) in accounts {
            text.family("accounts_\(state)", "gauge", "Accounts whose state is \(state).")
            text.sample([], count)
        }
        text.family("pending_revocations", "gauge", "Revocations that the provider has not confirmed yet.")
        for (account, count) in pendingRevocations { text.sample([("account", account)], count) }
        text.family("vault_locked", "gauge", "1 while the vault is locked.")
        text.sample([], isVaultLocked ? 1 : 0)
        if let database {
            text.family(
                "vault_database_away_seconds", "gauge",
                "Seconds since the vault's database went away; 0 if it is there.")
            text.sample([], database.away)
            text.family(
                "vault_database_unsent", "gauge", "Changes of this host that the vault's database does not have yet.")
            text.sample([], database.unsent)
        }
        if let audit {
            text.family("audit_write_failures_total", "counter", "Attempts to write the audit log that failed.")
            text.sample([], audit.failures)
            text.family("audit_entries_lost_total", "counter", "Entries of the audit log that were given up.")
            text.sample([], audit.lost)
        }
        text.family("uptime_seconds", "gauge", "Seconds since the daemon's start.")
        text.sample([], uptime)
        return text.output
    }

    private var output = ""
    private var name = ""

    private mutating func family(_ name: String, _ type: String, _ help: String) {
        self.name = "ringback_\(name)"
        output += "# HELP \(self.name) \(help)\n# TYPE \(self.name) \(type)\n"
    }

    private mutating func sample(_ labels: [(String, String)], _ value: Int, suffix: String = "") {
        output += "\(name)\(suffix)\(MetricsText.braced(labels)) \(value)\n"
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
        let escapes: [Unicode.Scalar: String] = ["\\": "\\\\", "\"": "\\\"", "\n": "\\n"]
        return text.unicodeScalars.map { escapes[$0] ?? String($0) }.joined()
    }
}
