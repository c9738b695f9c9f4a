public import BrokerCore
internal import Desktop
internal import Synchronization

/// The notifications on the user's desktop: at most one for each account. It stays until the user chooses an action or
/// closes it. Several waiting programs cause one notification. Nothing is opened unless the user asks for it. After the
/// user has declined, the account is not prompted for again for five minutes. All events are handled one after another
/// from one queue.
public actor SignInNotices {
    struct NoticeState {
        let subject: NoticeSubject
        /// Nil if it could not be shown.
        var shown: ShownNotice?
        /// When it was first shown.
        let since: BootInstant
        var attempts = 1
    }

    private enum Item: Sendable {
        case fact(BrokerFact)
        case news(NoticeEvent)
        /// A notification that asks for nothing; the promise says whether it was shown.
        case say(NoticeSubject, AccountName?, Promise<Bool>)
        case configured(isEnabled: Bool, Set<AccountName>, labels: [String: String])
        case leave(Promise<Void>)
    }

    /// The time without prompts for an account after a denial or cancellation.
    static let quietTime: Duration = .seconds(300)
    /// Two reports of the same sign-in within this time cause one notification.
    private static let duplicateInterval: Duration = .seconds(10)
    /// How often a prompt is shown. It prevents an endless loop if showing it makes the server crash.
    private static let maxAttempts = 5
    /// How long a program that delivers a callback waits for its notification.
    private static let sayingTime: Duration = .seconds(3)

    private let desktop: NoticeDesktop
    private let signIns: SignIns
    private let sentences: NoticeSentences
    private let clock: BrokerClock
    private let inbox: AsyncStream<Item>
    private let callbackReceiver: AsyncStream<Item>.Continuation
    /// Accounts with a `signInWanted` in the queue. Further callers of the same account are not queued.
    private let wanted = Mutex<Set<AccountName>>([])

    /// The questions of consent, by their ids. `shown` is nil while the notice is not shown.
    private var questions: [String: (question: ConsentQuestion, shown: ShownNotice?, attempts: Int)] = [:]
    private let answerConsent: @Sendable (_ id: String, ConsentDecision, _ forSession: Bool) -> Void

    /// By account; nil is for a link that belongs to no account.
    private(set) var standing: [AccountName?: NoticeState] = [:]
    private var quietUntil: [AccountName: BootInstant] = [:]
    /// When the user last asked for the account's sign-in page, which may still be open.
    private var answeredAt: [AccountName: BootInstant] = [:]
    private var isEnabled = true
    private var labels: [String: String] = [:]

    public init(
        desktop: NoticeDesktop, signIns: SignIns, sentences: NoticeSentences, clock: BrokerClock = .system,
        answerConsent: @escaping @Sendable (_ id: String, ConsentDecision, _ forSession: Bool) -> Void = { _, _, _ in }
    ) {
        self.answerConsent = answerConsent
        self.desktop = desktop
        self.signIns = signIns
        self.sentences = sentences
        self.clock = clock
        (inbox, callbackReceiver) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1_024))
    }

    /// Queues a fact of the broker. Does not block; the broker calls it from within its own methods.
    public nonisolated func note(_ fact: BrokerFact) {
        switch fact {
        case .signInWanted(let account, _): if wanted.withLock({ $0.insert(account).inserted }) { put(.fact(fact)) }
        case .sessionEnding, .sessionEnded, .sessionClosed, .sessionOpened, .signInEnded, .consent: put(.fact(fact))
        default: return
        }
    }

    /// Queues an item. If the queue is full because a notification server hangs, the oldest item is dropped and whoever
    /// waits for it is released.
    private nonisolated func put(_ item: Item) {
        guard case .dropped(let lost) = callbackReceiver.yield(item) else { return }
        switch lost {
        case .fact(.signInWanted(let account, _)): wanted.withLock { _ = $0.remove(account) }
        case .say(_, _, let isShown): isShown.fulfil(false)
        case .leave(let done): done.fulfil(())
        case .fact, .news, .configured: return
        }
    }

    /// - Parameter labels: what accounts are called, by their names, where they are not called by these.
    public nonisolated func configure(isEnabled: Bool, accounts: [AccountName], labels: [String: String] = [:]) {
        put(.configured(isEnabled: isEnabled, Set(accounts), labels: labels))
    }

    /// Notifies the user of the result of a callback that came as a link. True if a notification was shown.
    public nonisolated func tell(_ verdict: CallbackVerdict, of account: AccountName?, message: String?) async -> Bool {
        let subject: NoticeSubject =
            switch verdict {
            case .completed: .signedIn(as: nil)
            case .failed, .outdated: .signInFailed(message: message)
            case .noted: .changeConfirmed(message: message)
            case .ignored, .ended, .expired: .linkUnusable
            }
        let isShown = Promise<Bool>()
        put(.say(subject, subject == .linkUnusable ? nil : account, isShown))
        return await isShown.wait(atMost: SignInNotices.sayingTime) ?? false
    }

    /// Notifies the user that a server refused two tokens of the account in a row. Does not block.
    public nonisolated func tellOfRefusal(by server: String, of account: AccountName) {
        put(.say(.tokensRefused(by: server), account, Promise()))
    }

    /// Closes all prompts. Called when the daemon ends, because it can no longer handle their actions.
    public nonisolated func leave(atMost bound: Duration) async {
        let done = Promise<Void>()
        put(.leave(done))
        _ = await done.wait(atMost: bound)
    }

    /// Handles the queue until it is cancelled.
    public func run() async {
        await withDiscardingTaskGroup { group in
            let news = desktop.news()
            group.addTask { for await event in news { self.put(.news(event)) } }
            for await item in inbox {
                guard let (account, token) = await work(item) else { continue }
                // Opening a page may take long; other notifications do not wait for it.
                group.addTask { await self.show(account, token) }
            }
            group.cancelAll()
        }
    }

    /// Returns the account whose sign-in page is to be opened, if any.
    private func work(_ item: Item) async -> (AccountName, String?)? {
        switch item {
        case .fact(let fact): await take(fact)
        case .news(let event): return await hear(event)
        case .say(let subject, let account, let isShown): isShown.fulfil(await say(subject, account))
        case .configured(let isEnabled, let accounts, let labels):
            self.isEnabled = isEnabled
            self.labels = labels
            for id in questions.keys where !isEnabled { await takeDown(question: id) }
            for account in standing.keys where account.map({ !accounts.contains($0) || !isEnabled }) ?? !isEnabled {
                await takeDown(account)
            }
        case .leave(let done):
            for (account, notice) in standing where notice.subject.isPrompt { await takeDown(account) }
            for id in questions.keys { await takeDown(question: id) }
            done.fulfil(())
        }
        return nil
    }

    private func take(_ fact: BrokerFact) async {
        switch fact {
        case .sessionOpened(let account, _, _), .sessionClosed(let account, _), .sessionEnded(let account, _, _, _),
            .signInEnded(let account, _, _, _, _, _):
            answeredAt[account] = nil
        default: break
        }
        switch fact {
        case .signInWanted(let account, let program):
            wanted.withLock { _ = $0.remove(account) }
            // The user has asked for the page already; a later program needs no further prompt.
            if let answer = answeredAt[account], clock.bootInstant - answer < SignInNotices.quietTime { return }
            // All prompts offer the same sign-in, so one that is shown is enough.
            if let notice = standing[account], notice.subject.isPrompt, notice.shown != nil { return }
            await prompt(.signInWanted(by: program), account)
        case .sessionEnding(let account, let end):
            let subject = NoticeSubject.sessionEnding(at: end)
            if let notice = standing[account], notice.subject == subject, notice.shown != nil { return }
            await prompt(subject, account)
        case .sessionEnded(let account, _, _, _): await prompt(.sessionEnded, account)
        case .sessionClosed(let account, _): await takeDown(account)
        case .sessionOpened(let account, _, _):
            if standing[account]?.subject.isPrompt == true { await takeDown(account) }
        // The program that asked for the sign-in shows the result itself.
        case .signInEnded(let account, _, .completed, _, _, endsElsewhere: true):
            _ = await say(.signedIn(as: nil), account)
        case .signInEnded(let account, _, .cancelled, _, _, _),
            .signInEnded(let account, _, .failed, _, .accessDenied?, _):
            quiet(account)
            if standing[account]?.subject.isPrompt == true { await takeDown(account) }
        case .consent(let news): await take(news)
        default: return
        }
    }

    private func take(_ news: ConsentNews) async {
        switch news {
        case .used(let account, _, let program):
            // A prompt is more important.
            if standing[account]?.subject.isPrompt != true { _ = await say(.accountUsed(by: program), account) }
        case .requested(let question):
            guard isEnabled else { return }
            questions[question.id] = (question, await desktop.show(worded(question), nil), 1)
        case .decided(let question, _, _, _), .lapsed(let question): await takeDown(question: question.id)
        case .flooded(_, let program): _ = await say(.consentsFlooded(by: program), nil)
        }
    }

    private func worded(_ question: ConsentQuestion) -> Notice {
        worded(.consentWanted(question.use, scope: question.scope, by: question.program), question.account)
    }

    private func takeDown(question id: String) async {
        guard let shown = questions.removeValue(forKey: id)?.shown else { return }
        await desktop.close(shown)
    }

    /// True if the notice was a question's.
    private func answer(_ notice: UInt32, _ action: String) async -> Bool {
        guard let id = questions.first(where: { $0.value.shown?.id == notice })?.key else { return false }
        switch action {
        case NoticeSentences.allowOnce: answerConsent(id, .allow, false)
        case NoticeSentences.allowSession: answerConsent(id, .allow, true)
        case NoticeSentences.deny: answerConsent(id, .deny, false)
        default: return true
        }
        await takeDown(question: id)
        return true
    }

    private func hear(_ event: NoticeEvent) async -> (AccountName, String?)? {
        switch event {
        case .answered(let id, let action, let token):
            if await answer(id, action) { return nil }
            guard let (account, notice) = standing.first(where: { $0.value.shown?.id == id }) else { return nil }
            // The notification is closed here because some servers leave it open after an action.
            await takeDown(account)
            guard let account, notice.subject.isPrompt,
                [NoticeSentences.signIn, NoticeSentences.click].contains(action)
            else {
                return nil
            }
            answeredAt[account] = clock.bootInstant
            return (account, token)
        case .closed(let id, let closing):
            // The question stays open: it can be answered elsewhere.
            if let question = questions.first(where: { $0.value.shown?.id == id })?.key { questions[question] = nil }
            guard let (account, notice) = standing.first(where: { $0.value.shown?.id == id }) else { return nil }
            standing[account] = nil
            if let account, notice.subject.isPrompt, closing == .dismissed || closing == .expired { quiet(account) }
        case .serverCame: await showAgain { $0 == nil }
        case .serverGone(let server): await showAgain { $0?.server.hasPrefix(server) == true }
        }
        return nil
    }

    /// Shows prompts again, for example on a new notification server. Other notifications are not repeated.
    private func showAgain(_ isConcerned: (ShownNotice?) -> Bool) async {
        for (id, entry) in questions where isConcerned(entry.shown) {
            guard entry.attempts < SignInNotices.maxAttempts else {
                questions[id] = nil
                continue
            }
            questions[id] = (entry.question, await desktop.show(worded(entry.question), nil), entry.attempts + 1)
        }
        for (account, notice) in standing where isConcerned(notice.shown) {
            guard notice.subject.isPrompt, notice.attempts < SignInNotices.maxAttempts else {
                standing[account] = nil
                continue
            }
            var again = notice
            again.attempts += 1
            again.shown = await desktop.show(worded(notice.subject, account), nil)
            standing[account] = again
        }
    }

    private func quiet(_ account: AccountName) { quietUntil[account] = clock.bootInstant + SignInNotices.quietTime }

    private func prompt(_ subject: NoticeSubject, _ account: AccountName) async {
        if let end = quietUntil[account], clock.bootInstant < end { return }
        _ = await place(subject, account)
    }

    private func say(_ subject: NoticeSubject, _ account: AccountName?) async -> Bool {
        var subject = subject
        if case .signedIn = subject, let account {
            if case .signedIn? = standing[account]?.subject, isRecent(account) { return true }
            subject = .signedIn(as: await signIns.user(account))
        }
        if subject == .linkUnusable, standing[nil] != nil, isRecent(nil) { return true }
        if case .tokensRefused = subject, let notice = standing[account], notice.shown != nil {
            // A prompt is more important.
            guard !notice.subject.isPrompt, notice.subject != subject else { return false }
        }
        return await place(subject, account)
    }

    private func isRecent(_ account: AccountName?) -> Bool {
        standing[account].map { clock.bootInstant - $0.since < SignInNotices.duplicateInterval && $0.shown != nil }
            ?? false
    }

    private func place(_ subject: NoticeSubject, _ account: AccountName?) async -> Bool {
        guard isEnabled else { return false }
        let former = standing[account]?.shown
        let shown = await desktop.show(worded(subject, account), former)
        standing[account] = NoticeState(subject: subject, shown: shown, since: clock.bootInstant)
        // A notification that asks for nothing is not shown later.
        if shown == nil, !subject.isPrompt { standing[account] = nil }
        return shown != nil
    }

    private func worded(_ subject: NoticeSubject, _ account: AccountName?) -> Notice {
        sentences.notice(subject, account?.rawValue, label: account.flatMap { labels[$0.rawValue] })
    }

    private func takeDown(_ account: AccountName?) async {
        guard let notice = standing.removeValue(forKey: account), let shown = notice.shown else { return }
        await desktop.close(shown)
    }

    private func show(_ account: AccountName, _ token: String?) async {
        if let page = await signIns.page(account) {
            if let words = page.words {
                // The two words are shown before the page is opened.
                let isShown = Promise<Bool>()
                put(.say(.ownPage(words: words), account, isShown))
                _ = await isShown.wait(atMost: SignInNotices.sayingTime)
            }
            if await desktop.open(page.url, account, token) { return }
        }
        answeredAt[account] = nil
        put(.say(.pageNotOpened, account, Promise()))
    }
}
