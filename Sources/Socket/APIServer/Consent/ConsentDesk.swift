public import BrokerCore
public import RingbackBase
public import SessionVault
internal import Synchronization

/// Whether a program may use an account, by the account's `consent`, what is remembered, and the user's answers. It is for
/// honest programs: what a program is, is known only by its file.
public final class ConsentDesk: Sendable {
    /// The consent of an account, as it is configured.
    public struct Rule: Sendable, Equatable {
        public var mode: ConsentMode
        /// Paths of executables without links, and `unit:NAME`: these programs are allowed.
        public var programs: Set<String>

        public init(_ mode: ConsentMode, programs: Set<String> = []) {
            self.mode = mode
            self.programs = programs
        }

        func names(_ program: ProgramIdentity) -> Bool {
            program.executable.map(programs.contains) == true
                || program.unit.map { programs.contains("unit:\($0)") } == true
        }
    }

    struct Request: Sendable {
        var account: AccountName
        var use: ConsentUse
        var scope: String?
        var program: ProgramIdentity
        var origin: ProgramOrigin

        var party: Party { Party(account: account, executable: program.executable, scope: origin.scope) }
    }

    /// A program and an account, for which one question is open at a time.
    struct Party: Hashable, Sendable {
        let account: AccountName
        let executable: String?
        let scope: String?

        /// The same program anywhere.
        var anywhere: Party { Party(account: account, executable: executable, scope: nil) }
    }

    enum Ruling: Sendable, Equatable {
        case allowed, denied
        /// The user would have to be asked, and is not: the request does not want that, or there are too many questions.
        case required(isFlooded: Bool)
        case timedOut, cancelled
    }

    /// How long a decision holds.
    enum Remembering: Sendable, Equatable {
        case once
        case session
        /// For the session too, but no longer.
        case lasting(Duration)
        /// For the executable, after a restart too.
        case always

        static let longest = 30 * 86_400

        init?(_ text: String) {
            switch text {
            case "once": self = .once
            case "session": self = .session
            case "always": self = .always
            default:
                guard let seconds = TimeSpan.seconds(of: text), (1...Remembering.longest).contains(seconds) else {
                    return nil
                }
                self = .lasting(.seconds(seconds))
            }
        }
    }

    enum Refusal: Error, Equatable {
        case unknown
        /// The answer comes from the program that asked, or from its control group or session.
        case asker
        case sessionUnknown
        case notRootOwned
        case notKept(VaultError)
    }

    fileprivate enum Outcome: Sendable {
        /// `exposes`: what was allowed is to show the account to other programs, not to have its tokens.
        case allowed(exposes: Bool)
        case denied
        /// The rule is another one now.
        case changed
    }

    fileprivate struct Open {
        var question: ConsentQuestion
        let party: Party
        let outcome = Promise<Outcome>()
    }

    fileprivate struct State {
        var rules: [AccountName: Rule] = [:]
        var open: [Open] = []
        var remembered: [RememberedConsent] = []
        /// When the questions of the last hour were asked.
        var asked: [BootInstant] = []
        var deniedUntil: [Party: BootInstant] = [:]
        /// Whose question nobody answered, in whatever session.
        var unansweredUntil: [Party: BootInstant] = [:]
        /// Who may have a token with the next request: the question was about both.
        var passes: [Party: BootInstant] = [:]
        /// Whose first use was told, in whatever session.
        var users: Set<Party> = []
        var isFlooded = false
    }

    fileprivate enum Step {
        case ruled(Ruling)
        case wait(id: String, Promise<Outcome>)
    }

    static let mostOpen = 3
    static let mostInAnHour = 20
    static let quietTime: Duration = .seconds(300)
    private static let passTime: Duration = .seconds(5)
    fileprivate static let hour: Duration = .seconds(3_600)
    /// Of what is kept in memory for each program.
    fileprivate static let mostParties = 4_096
    fileprivate static let mostRemembered = 1_024

    private let state = Mutex(State())
    /// True while every account allows every program: the hot path looks at nothing else then.
    private let isIdle = Atomic(true)
    private let clock: BrokerClock
    private let file: StateFile?
    private let tell: @Sendable (ConsentNews) -> Void

    /// - Parameter file: where decisions for always are kept; nil keeps them in memory.
    public init(
        file: StateFile?, clock: BrokerClock = .system, tell: @escaping @Sendable (ConsentNews) -> Void
    ) {
        self.file = file
        self.clock = clock
        self.tell = tell
        // A record that cannot be read is as if nothing had been decided: the user is asked again.
        let bytes = (try? file?.read(atMost: RememberedConsent.maxSize)) ?? nil
        state.withLock { $0.remembered = bytes.map { RememberedConsent.decode($0) } ?? [] }
    }

    /// Takes over the accounts that have another consent than `allow`. Holds for the next request of any connection, and
    /// for requests that wait for an answer.
    public func configure(_ rules: [AccountName: Rule]) {
        let changed = state.withLock { state in
            let former = state.rules
            state.rules = rules.filter { $0.value.mode != .allow }
            state.unansweredUntil = [:]
            isIdle.store(state.rules.isEmpty, ordering: .releasing)
            let changed = state.open.filter { former[$0.question.account] != rules[$0.question.account] }
            // No request joins a closed question. The requests that waited for it ask again, by the new rule.
            state.open.removeAll { open in changed.contains { $0.question.id == open.question.id } }
            return changed
        }
        for open in changed {
            tell(.lapsed(open.question))
            open.outcome.fulfil(.changed)
        }
    }

    /// True if no program needs consent for the account: neither a question nor a notice.
    public func isFree(_ account: String) -> Bool {
        if isIdle.load(ordering: .acquiring) { return true }
        guard let name = AccountName(account) else { return true }
        return state.withLock { $0.rules[name] == nil }
    }

    // MARK: Requests

    /// Decides, and waits for the user's answer if there has to be one, at most `bound`.
    func admit(_ request: Request, within bound: Duration, mayAsk: Bool = true) async -> Ruling {
        let end = ContinuousClock.now + bound
        while true {
            let left = max(end - ContinuousClock.now, .zero)
            switch step(request, left, mayAsk: mayAsk) {
            case .ruled(let ruling): return ruling
            case .wait(let id, let outcome):
                let decided = await outcome.wait(atMost: left)
                leave(id)
                switch decided {
                case .denied: return .denied
                case .allowed(let exposes): if exposes == request.use.exposesAccount { return .allowed }
                case .changed: continue
                case nil: return Task.isCancelled ? .cancelled : .timedOut
                }
            }
        }
    }

    /// Lets the party's next request for a token pass, if it comes soon: a relay asks for a server and for the token with
    /// each request, which is to be one question.
    func letPass(_ request: Request) {
        state.withLock { state in
            if state.passes.count >= ConsentDesk.mostParties { state.passes = [:] }
            state.passes[request.party] = clock.bootInstant + ConsentDesk.passTime
        }
    }

    /// True if the program may use the account without a question.
    func allowsAtOnce(_ request: Request) -> Bool {
        if case .ruled(.allowed) = step(request, .zero, mayAsk: false) { true } else { false }
    }

    private func step(_ request: Request, _ left: Duration, mayAsk: Bool) -> Step {
        let (step, news) = state.withLock { state in state.step(request, left, mayAsk: mayAsk, by: clock) }
        if let news { tell(news) }
        return step
    }

    private func leave(_ id: String) {
        let lapsed: ConsentQuestion? = state.withLock { state in
            guard let index = state.open.firstIndex(where: { $0.question.id == id }) else { return nil }
            state.open[index].question.requests -= 1
            guard state.open[index].question.requests == 0 else { return nil }
            let lapsed = state.open.remove(at: index)
            if state.unansweredUntil.count >= ConsentDesk.mostParties { state.unansweredUntil = [:] }
            state.unansweredUntil[lapsed.party.anywhere] = clock.bootInstant + ConsentDesk.quietTime
            return lapsed.question
        }
        if let lapsed { tell(.lapsed(lapsed)) }
    }

    // MARK: Answers

    var questions: [ConsentQuestion] { state.withLock { $0.open.map(\.question) } }

    var remembered: [RememberedConsent] {
        state.withLock { state in
            state.forgetExpired(at: clock.bootInstant)
            return state.remembered
        }
    }

    /// Answers a question by a button of its notice. Nothing happens if it is over.
    public func answer(_ id: String, _ decision: ConsentDecision, forSession: Bool) {
        // Without a known session the answer holds once.
        if forSession, (try? answer(id, decision, .session, by: .notice, at: nil)) != nil { return }
        _ = try? answer(id, decision, .once, by: .notice, at: nil)
    }

    /// Answers a question, and returns it.
    ///
    /// - Parameter origin: where the program that answers belongs; nil for the notice.
    func answer(
        _ id: String, _ decision: ConsentDecision, _ remembering: Remembering, by answerer: ConsentAnswerer,
        at origin: ProgramOrigin?
    ) throws(Refusal) -> ConsentQuestion {
        let result = state.withLock { state -> Result<Open, Refusal> in
            do throws(Refusal) {
                return .success(try state.answer(id, decision, remembering, at: origin, by: clock, keep: keep))
            } catch {
                return .failure(error)
            }
        }
        let open = try result.get()
        tell(.decided(open.question, decision, remember: remembering.word, by: answerer))
        open.outcome.fulfil(decision == .allow ? .allowed(exposes: open.question.use.exposesAccount) : .denied)
        return open.question
    }

    /// Forgets a decision, and returns it. Nil if there is none with this id.
    ///
    /// - Parameters:
    ///   - executables: of the process that wants it and of its ancestors.
    ///   - origin: where that process belongs.
    func forget(
        _ id: String, by executables: Set<String> = [], at origin: ProgramOrigin
    ) throws(Refusal) -> RememberedConsent? {
        let result = state.withLock { state -> Result<RememberedConsent?, Refusal> in
            guard let found = state.remembered.first(where: { $0.id == id }) else { return .success(nil) }
            if found.decision == .deny {
                let isInScope = found.scope.map { [origin.group, origin.session].contains($0) } ?? false
                if isInScope || executables.contains(found.executable) { return .failure(.asker) }
            }
            let rest = state.remembered.filter { $0.id != id }
            do throws(Refusal) {
                if found.scope == nil { try keep(rest) }
            } catch {
                return .failure(error)
            }
            state.remembered = rest
            return .success(found)
        }
        return try result.get()
    }

    private func keep(_ consents: [RememberedConsent]) throws(Refusal) {
        guard let file else { return }
        do throws(VaultError) {
            try file.write(RememberedConsent.encode(consents))
        } catch {
            throw .notKept(error)
        }
    }
}

extension ConsentDesk.State {
    fileprivate mutating func step(
        _ request: ConsentDesk.Request, _ left: Duration, mayAsk: Bool, by clock: BrokerClock
    ) -> (ConsentDesk.Step, ConsentNews?) {
        guard let rule = rules[request.account], rule.mode != .allow, !rule.names(request.program) else {
            return (.ruled(.allowed), nil)
        }
        switch rule.mode {
        case .allow: return (.ruled(.allowed), nil)
        case .deny: return (.ruled(.denied), nil)
        case .notify:
            if users.count >= ConsentDesk.mostParties { users = [] }
            let user = ConsentDesk.Party(account: request.account, executable: request.program.executable, scope: nil)
            let isFirst = users.insert(user).inserted
            return (.ruled(.allowed), isFirst ? .used(request.account, request.use, request.program) : nil)
        case .ask: return ask(request, left, mayAsk: mayAsk, by: clock)
        }
    }

    private mutating func ask(
        _ request: ConsentDesk.Request, _ left: Duration, mayAsk: Bool, by clock: BrokerClock
    ) -> (ConsentDesk.Step, ConsentNews?) {
        let (now, party) = (clock.bootInstant, request.party)
        forgetExpired(at: now)
        if let decision = remembered.last(where: { $0.covers(request) })?.decision {
            return (.ruled(decision == .allow ? .allowed : .denied), nil)
        }
        if deniedUntil[party] != nil { return (.ruled(.denied), nil) }
        guard mayAsk else { return (.ruled(.required(isFlooded: false)), nil) }
        if !request.use.exposesAccount, passes.removeValue(forKey: party) != nil { return (.ruled(.allowed), nil) }
        guard left > .zero else { return (.ruled(.timedOut), nil) }
        let end = clock.wallInstant + left
        if let index = open.firstIndex(where: { $0.party == party }) {
            open[index].question.requests += 1
            open[index].question.expiresAt = max(open[index].question.expiresAt, end)
            return (.wait(id: open[index].question.id, open[index].outcome), nil)
        }
        // Otherwise a program that asks again and again uses up the questions of all others.
        if unansweredUntil[party.anywhere] != nil { return (.ruled(.timedOut), nil) }
        guard open.count < ConsentDesk.mostOpen, asked.count < ConsentDesk.mostInAnHour else {
            let news: ConsentNews? = isFlooded ? nil : .flooded(request.account, request.program)
            isFlooded = true
            return (.ruled(.required(isFlooded: true)), news)
        }
        isFlooded = false
        asked.append(now)
        let question = ConsentQuestion(
            id: RememberedConsent.newID(), request.account, request.use, scope: request.scope,
            program: request.program, origin: request.origin, requestedAt: clock.wallInstant, expiresAt: end)
        let new = ConsentDesk.Open(question: question, party: party)
        open.append(new)
        return (.wait(id: question.id, new.outcome), .requested(question))
    }

    fileprivate mutating func answer(
        _ id: String, _ decision: ConsentDecision, _ remembering: ConsentDesk.Remembering, at origin: ProgramOrigin?,
        by clock: BrokerClock, keep: ([RememberedConsent]) throws(ConsentDesk.Refusal) -> Void
    ) throws(ConsentDesk.Refusal) -> ConsentDesk.Open {
        guard let index = open.firstIndex(where: { $0.question.id == id }) else { throw .unknown }
        let (question, party) = (open[index].question, open[index].party)
        if let origin, origin.isShared(with: question.origin) { throw .asker }
        if let new = try remembering.consent(question, decision, by: clock) {
            let all = remembered.filter { !$0.isReplaced(by: new) } + [new]
            if new.scope == nil { try keep(all) }
            remembered = Array(all.suffix(ConsentDesk.mostRemembered))
        }
        if decision == .deny {
            if deniedUntil.count >= ConsentDesk.mostParties { deniedUntil = [:] }
            deniedUntil[party] = clock.bootInstant + ConsentDesk.quietTime
        } else {
            deniedUntil[party] = nil
        }
        unansweredUntil[party.anywhere] = nil
        return open.remove(at: index)
    }

    fileprivate mutating func forgetExpired(at now: BootInstant) {
        asked.removeAll { now - $0 >= ConsentDesk.hour }
        remembered.removeAll { $0.expiry.map { $0.boot <= now } ?? false }
        deniedUntil = deniedUntil.filter { $0.value > now }
        unansweredUntil = unansweredUntil.filter { $0.value > now }
        passes = passes.filter { $0.value > now }
    }
}

extension RememberedConsent {
    fileprivate func covers(_ request: ConsentDesk.Request) -> Bool {
        request.account == account && request.program.executable == executable
            && request.use.exposesAccount == exposes
            && (scope.map { $0 == request.origin.scope } ?? request.program.isRootOwned)
    }
}

extension ConsentDesk.Remembering {
    /// Nil for a decision that is not remembered.
    func consent(
        _ question: ConsentQuestion, _ decision: ConsentDecision, by clock: BrokerClock
    ) throws(ConsentDesk.Refusal) -> RememberedConsent? {
        if self == .once { return nil }
        guard let executable = question.program.executable else { throw .sessionUnknown }
        if self == .always {
            guard question.program.isRootOwned else { throw .notRootOwned }
            return RememberedConsent(decision, on: question, of: executable, scope: nil, lifetime: nil, by: clock)
        }
        guard let scope = question.origin.scope else { throw .sessionUnknown }
        let lifetime: Duration? = if case .lasting(let duration) = self { duration } else { nil }
        return RememberedConsent(decision, on: question, of: executable, scope: scope, lifetime: lifetime, by: clock)
    }

    var word: String {
        switch self {
        case .once: "once"
        case .session: "session"
        case .always: "always"
        case .lasting(let duration): "\(duration.wholeSeconds)s"
        }
    }
}
