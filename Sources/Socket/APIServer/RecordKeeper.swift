public import BrokerCore
public import Records
internal import RingbackAPI
internal import RingbackBase
internal import SessionVault
internal import Synchronization

/// Turns the broker's facts into entries of the audit log and into metrics. Only here a fact gets its wording. It is
/// quick and never blocks, since the broker calls it in the middle of its turns.
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

    /// Takes a fact over; to be used as the broker's `record`.
    @Sendable public func note(_ fact: BrokerFact) {
        count(fact)
        telemetry.note(fact)
        switch fact {
        // Only counted. What they lead to has an entry of its own.
        case .signInChosen, .signInStarted, .refreshStarted, .refreshSucceeded: break
        // Other parts notify the user.
        case .signInWanted, .sessionEnding: break
        case .signInEnded(let account, let method, let outcome, let duration, let error, _):
            write("sign_in", account, error) { members in
                members["method"] = .string(method.rawValue)
                members["outcome"] = .string(outcome.rawValue)
                members["seconds"] = .integer(Int(duration.components.seconds))
            }
        case .callbackRefused(let account, let reason):
            write("callback_refused", account, .invalidCallback(reason)) {
                $0["reason"] = .string(RecordKeeper.bounded(reason.sentence))
            }
        case .sessionOpened(let account, let subject, let replacing): opened(account, subject, replacing)
        case .identityLinked(let account, let provider, let sight):
            write("identity_linked", account) { members in
                members["identity_provider"] = .string(RecordKeeper.bounded(provider))
                if sight != .asked { members["inferred"] = true }
                if case .former(let linkedAt) = sight { members["linked_at"] = .integer(linkedAt.seconds) }
            }
        case .identityUnlinked(let account, let provider, let isInferred):
            write("identity_unlinked", account) { members in
                members["identity_provider"] = .string(RecordKeeper.bounded(provider))
                if isInferred { members["inferred"] = true }
            }
        case .passkeyRegistered(let account, let id):
            write("passkey_registered", account) { $0["passkey"] = .string(RecordKeeper.bounded(id)) }
        case .passkeyRemoved(let account, let id):
            write("passkey_removed", account) { $0["passkey"] = .string(RecordKeeper.bounded(id)) }
        case .sessionClosed(let account, let subject): write("signed_out", account, subject: subject)
        case .sessionEnded(let account, let subject, let unheard, let error):
            write("session_ended", account, subject: subject) { members in
                members["provider_message"] = error.flatMap(RecordKeeper.providerMessage(of:)).map { .string($0) }
                guard let unheard else { return }
                members["unheard_host"] = .string(unheard.host)
                members["unheard_seconds"] = .integer(Int(unheard.age.components.seconds))
            }
        case .refreshFailed(let account, let error): failed("refresh_failed", account, error)
        case .downscopingFailed(let account, let error): failed("downscoping_failed", account, error)
        case .idTokenDropped(let account, let error):
            write("id_token_dropped", account, error) { members in
                if case .provider(.invalidResponse(let reason)) = error {
                    members["reason"] = .string(RecordKeeper.bounded(reason.sentence))
                }
            }
        case .scopesLost(let account, let scopes):
            write("scopes_lost", account) { $0["scope"] = .string(RecordKeeper.bounded(scopes.joined(separator: " "))) }
        case .revocationPostponed(let account, let error): write("revocation_postponed", account, error)
        case .revocationDelivered(let account): write("revocation_delivered", account)
        case .revocationNotOffered(let account): write("revocation_not_offered", account)
        case .revocationAbandoned(let account): write("revocation_abandoned", account)
        case .vaultOpened(let source): write("vault_unlocked", nil) { $0["key_source"] = .string(source.word) }
        case .vaultLocked: write("vault_locked", nil)
        case .vaultRefused(let error): write("unlock_refused", nil, error)
        case .vaultRekeyed(let former, let source):
            write("vault_rekeyed", nil) { members in
                members["former_key_source"] = .string(former.word)
                members["key_source"] = .string(source.word)
            }
        case .databaseTurned(.away(let reason)):
            write("database_away", nil) { $0["reason"] = .string(reason.sentence) }
        case .databaseTurned(.returned(let span)):
            write("database_returned", nil) { $0["seconds"] = .integer(Int(span.components.seconds)) }
        case .clientRegistered(let account, let issuer, let clientID):
            write("client_registered", account) { members in
                members["issuer"] = .string(RecordKeeper.bounded(issuer))
                members["client_id"] = .string(RecordKeeper.bounded(clientID))
            }
        case .registrationDeleted(let account, let clientID):
            write("registration_deleted", account) { members in
                members["client_id"] = clientID.map { .string(RecordKeeper.bounded($0)) }
            }
        case .registrationLeft(let account, let error): write("registration_left", account, error)
        case .linkListenerReplaced(let scheme, let program, let former):
            write("listener_replaced", nil) { members in
                members["scheme"] = .string(scheme)
                members["uid"] = program.map { .integer(Int($0.uid)) }
                members["pid"] = program.map { .integer(Int($0.pid)) }
                members["executable"] = program.flatMap { ProcessFacts.executable(of: $0.pid) }.map { .string($0) }
                members["former_pid"] = former.map { .integer(Int($0.pid)) }
            }
        case .applicationStarted(let scheme): write("application_started", nil) { $0["scheme"] = .string(scheme) }
        case .applicationNotStarted(let scheme, let reason):
            write("application_not_started", nil) { members in
                members["scheme"] = .string(scheme)
                members["reason"] = .string(RecordKeeper.bounded(reason))
            }
        }
    }

    private func failed(_ event: String, _ account: AccountName, _ error: BrokerError) {
        let failure = RepeatedFailures.Failure(
            event: event, account: account, code: RecordKeeper.code(of: error),
            providerCode: RecordKeeper.providerCode(of: error))
        guard let count = failures.withLock({ $0.note(failure, at: WallInstant(seconds: audit.now())) }) else { return }
        write(event, account, error) { members in
            if count > 1 { members["count"] = .integer(count) }
        }
    }

    private func opened(_ account: AccountName, _ subject: String?, _ replacing: String??) {
        if let former = replacing, former != subject {
            write("subject_switched", account, subject: subject) { members in
                members["former_subject"] = former.map { .string($0) }
            }
        } else {
            write("signed_in", account, subject: subject)
        }
    }

    private func write(
        _ event: String, _ account: AccountName?, _ error: BrokerError? = nil, subject: String? = nil,
        _ more: (inout JSONObject) -> Void = { _ in }
    ) {
        var members = JSONObject()
        members["account"] = account.map { .string($0.rawValue) }
        members["subject"] = subject.map { .string(RecordKeeper.bounded($0)) }
        more(&members)
        members["code"] = error.map { .string(RecordKeeper.code(of: $0)) }
        members["provider_code"] = error.flatMap(RecordKeeper.providerCode(of:)).map { .string($0) }
        if let message = error.flatMap(RecordKeeper.providerMessage(of:)) {
            members["provider_message"] = .string(message)
        }
        audit.write(event, members)
    }

    private func count(_ fact: BrokerFact) {
        switch fact {
        case .signInStarted(let account, let method): metrics.signInStarted(account.rawValue, method: method.rawValue)
        case .signInEnded(let account, let method, let outcome, let duration, let error, _):
            let method = method.rawValue
            switch outcome {
            case .completed: metrics.signInCompleted(account.rawValue, method: method, duration: duration)
            case .cancelled: metrics.signInCancelled(account.rawValue, method: method)
            case .failed, .expired:
                let code = error.map(RecordKeeper.code) ?? ErrorCode.flowExpired.rawValue
                metrics.signInFailed(account.rawValue, method: method, code: code)
            }
        case .refreshStarted(let account, _): metrics.refreshAttempted(account.rawValue)
        // Each attempt was counted, for a downscoped token too.
        case .refreshFailed(let account, let error), .downscopingFailed(let account, let error):
            metrics.refreshFailed(account.rawValue, code: RecordKeeper.code(of: error))
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

    static func code(of error: BrokerError) -> String {
        Problem(error, language: .english).code.rawValue
    }

    /// Text from outside, cut to what fits into an entry.
    static func bounded(_ text: String) -> String {
        text.utf8.count <= 1_000 ? text : String(text.unicodeScalars.prefix(1_000))
    }
}

/// Counts equal failed refreshes and equal failed requests for downscoped tokens, so that they make at most one line of
/// the audit log in five minutes. Attack: a program behind an exposed socket requests a scope that the provider refuses,
/// again and again. A line for each request would push the other entries out of the log.
struct RepeatedFailures: Sendable {
    struct Failure: Hashable {
        /// The event of its line.
        let event: String
        let account: AccountName
        let code: String
        let providerCode: String?
    }
    private struct Entry {
        /// When the last line was written.
        var writtenAt: WallInstant
        /// The failures since then.
        var count = 0
    }

    /// The time between two lines of equal failures.
    static let interval: Duration = .seconds(300)
    /// How many different failures are counted at most.
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

/// What was done with the hosts that share the vault, for the audit log.
enum HostRecord {
    case joined(name: String, owner: String)
    case invited(role: String, seconds: Int)
    case gaveKey(host: String)
    case removed(host: String)
}

extension RecordKeeper {
    func note(_ record: HostRecord) {
        let text = { (text: String) in JSON.string(RecordKeeper.bounded(text)) }
        switch record {
        case .joined(let name, let owner):
            audit.write("vault_joined", JSONObject([.init("host", text(name)), .init("owner", text(owner))]))
        case .invited(let role, let seconds):
            audit.write("host_invited", JSONObject([.init("role", text(role)), .init("seconds", .integer(seconds))]))
        case .gaveKey(let host): audit.write("key_shared", JSONObject([.init("host", text(host))]))
        case .removed(let host): audit.write("host_removed", JSONObject([.init("host", text(host))]))
        }
    }
}
