internal import HTTPMessages
internal import SessionVault
internal import SupabaseAuth

/// Sessions that are over here and that their providers have yet to hear of. The vault keeps each until its provider
/// has heard, so that neither an outage nor a restart leaves a signed-out session alive unnoticed.
actor Revocations {
    struct Entry {
        let account: AccountName
        let closed: Closed
        var failures = 0
        /// How often the provider itself said no.
        var refusals = 0
        var dueAt = BootInstant(milliseconds: 0)
        var isRunning = false
        /// The vault never held it: it is known here alone.
        var isUnsealed = false
    }

    private(set) var entries: [String: Entry] = [:]
    /// Those that are done with, in this life: the vault may be slow to let them go.
    private var heard: Set<String> = []
    private var unsealedCount = 0
    /// Until the vault has told of those of an earlier life.
    private var hasLoaded = false
    private let sessionManager: SessionManager
    private let vault: any Vault
    private let http: any HTTPClient
    private let directory: ProviderDirectory
    private let clock: BrokerClock
    private let record: @Sendable (BrokerFact) -> Void

    /// The first wait, and the longest.
    private static let shortest: Duration = .seconds(15)
    private static let longest: Duration = .seconds(3_600)
    /// A provider that says no this often will not say yes. One that is away has said nothing.
    private static let patience = 8
    private static let idlePause: Duration = .seconds(30)

    init(
        sessionManager: SessionManager, vault: any Vault, http: any HTTPClient, directory: ProviderDirectory,
        clock: BrokerClock,
        record: @escaping @Sendable (BrokerFact) -> Void
    ) {
        self.sessionManager = sessionManager
        self.vault = vault
        self.http = http
        self.directory = directory
        self.clock = clock
        self.record = record
    }

    /// How many wait, by account.
    func counts() -> [AccountName: Int] {
        entries.values.reduce(into: [:]) { $0[$1.account, default: 0] += 1 }
    }

    /// Accounts came or went: some of what the vault keeps may have its account back.
    func lookAgain() { hasLoaded = false }

    /// The vault was locked: what is still to be said is read from it when it opens again.
    func forget() {
        entries = entries.filter { $0.value.isRunning || $0.value.isUnsealed }
        hasLoaded = false
    }

    /// Tells the provider of a sign-out; if it does not hear, it is told again later.
    func deliver(_ closed: Closed) async {
        if closed.retirement == nil { unsealedCount += 1 }
        let id = closed.retirement ?? "unsealed \(unsealedCount)"
        // Whoever looked for what is due may have found it in the vault first.
        guard !heard.contains(id), entries[id]?.isRunning != true else { return }
        entries[id] = Entry(
            account: closed.account.name, closed: closed, isRunning: true, isUnsealed: closed.retirement == nil)
        await tell(id, closed)
    }

    /// Tells the provider of the end of a session that nothing is to be left of, here either: not again later.
    func tellOnce(_ closed: Closed) async {
        let provider = closed.account.sessionProvider(http: http, directory: directory, clock: clock)
        do throws(BrokerError) {
            if try await provider.revoke(closed.session) { record(.revocationDelivered(closed.account.name)) }
        } catch {
            record(.revocationAbandoned(closed.account.name))
        }
    }

    private func tell(_ id: String, _ closed: Closed) async {
        let provider = closed.account.sessionProvider(http: http, directory: directory, clock: clock)
        do throws(BrokerError) {
            if try await provider.revoke(closed.session) { record(.revocationDelivered(closed.account.name)) }
        } catch {
            return postpone(id, closed.account.name, error)
        }
        await finish(id)
    }

    private func postpone(_ id: String, _ name: AccountName, _ error: BrokerError) {
        guard var entry = entries[id] else { return }
        entry.isRunning = false
        entry.failures += 1
        if error.refusesRevocation { entry.refusals += 1 }
        let half = min(Revocations.shortest * (1 << min(entry.failures - 1, 10)), Revocations.longest) / 2
        entry.dueAt = clock.bootInstant + half + half * Double.random(in: 0...1)
        entries[id] = entry
        record(.revocationPostponed(name, error))
    }

    /// What was retired is gone from the vault, whether or not its provider has heard.
    func drop(_ id: String) {
        heard.insert(id)
        entries[id] = nil
    }

    private func finish(_ id: String) async {
        heard.insert(id)
        // A vault that cannot let it go tells of it again after the next start: a token is revoked twice, no harm.
        if entries.removeValue(forKey: id)?.isUnsealed == false { try? await vault.discard(id) }
    }

    /// Delivers what is due. Says how long there is nothing to do.
    func runDue() async -> Duration {
        if !hasLoaded { await load() }
        let now = clock.bootInstant
        for (id, found) in entries where found.dueAt <= now && !found.isRunning {
            guard let account = await current(found), let entry = entries[id], !entry.isRunning, entry.dueAt <= now
            else { continue }
            if entry.refusals >= Revocations.patience {
                record(.revocationAbandoned(entry.account))
                await finish(id)
                continue
            }
            entries[id]?.isRunning = true
            let closed = Closed(account: account, session: entry.closed.session, retirement: entry.closed.retirement)
            sessionManager.work.start { [self] in await tell(id, closed) }
        }
        return Revocations.idlePause
    }

    /// The account as it is configured now, if it is still the one that the session was bound to: its client secret may
    /// be another one since.
    private func current(_ entry: Entry) async -> Account? {
        guard let account = try? await sessionManager.account(entry.account),
            account.slot == entry.closed.account.slot
        else { return nil }
        return account
    }

    private func load() async {
        guard await sessionManager.isOpen, let retired = try? await vault.retired() else { return }
        hasLoaded = true
        for entry in retired where entries[entry.id] == nil {
            if heard.contains(entry.id) {
                try? await vault.discard(entry.id)
                continue
            }
            guard let name = AccountName(entry.slot.account), let account = try? await sessionManager.account(name),
                account.slot == entry.slot, let session = try? SessionRecord.decode(entry.text, by: clock)
            else { continue }
            // While the account was looked for, its own sign-out may have begun to tell.
            guard entries[entry.id] == nil, !heard.contains(entry.id) else { continue }
            entries[entry.id] = Entry(
                account: name, closed: Closed(account: account, session: session, retirement: entry.id))
        }
    }
}

extension BrokerError {
    /// The provider's own no, which it will repeat. One that asks to wait is none.
    fileprivate var refusesRevocation: Bool {
        switch self {
        case .provider(.refused): true
        case .project(let problem): problem.code != .rateLimited && !problem.isTrouble
        default: false
        }
    }
}
