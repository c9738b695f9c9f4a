public import BrokerCore
internal import DesktopBus
internal import Synchronization

/// Which notice stands on the person's desktop: one per account at most, until it is answered. However many programs
/// wait, one notice says so; nothing is opened unless the person asks for it; a person who said no is left alone for
/// five minutes. What happens comes in one queue and is worked on in its order.
public actor NoticeBoard {
    /// A notice that somebody is meant to see.
    struct Standing {
        let subject: NoticeSubject
        /// Nil where nobody was there to show it.
        var shown: ShownNotice?
        /// Milliseconds since boot.
        let since: Int
        var attempts = 1
    }

    private enum Item: Sendable {
        case fact(BrokerFact)
        case news(NoticeEvent)
        /// To be said, and whether somebody was there to show it.
        case say(NoticeSubject, AccountName?, Promise<Bool>)
        case configured(isEnabled: Bool, Set<AccountName>)
        case leave(Promise<Void>)
    }

    /// After a denial or cancellation the account is left alone this long (milliseconds).
    static let quietTime = 300_000
    /// A sign-in is told of once, whichever way the news comes (milliseconds).
    private static let sameNews = 10_000
    /// A server that dies of a notice does not get it again and again.
    private static let maxAttempts = 5
    /// What a program that delivers a callback waits for the notice about it.
    private static let sayingTime: Duration = .seconds(3)

    private let desktop: Desktop
    private let signIns: SignIns
    private let words: NoticeWords
    private let clock: BrokerClock
    private let inbox: AsyncStream<Item>
    private let callbackReceiver: AsyncStream<Item>.Continuation
    /// Accounts whose next caller is in the queue already: a thousand callers are one.
    private let wanted = Mutex<Set<AccountName>>([])

    /// By account; nil stands for links that are nobody's.
    private(set) var standing: [AccountName?: Standing] = [:]
    private var quietUntil: [AccountName: Int] = [:]
    /// When the person asked for an account's page, which they may be looking at (milliseconds since boot).
    private var answeredAt: [AccountName: Int] = [:]
    private var isEnabled = true

    public init(desktop: Desktop, signIns: SignIns, words: NoticeWords, clock: BrokerClock = .system) {
        self.desktop = desktop
        self.signIns = signIns
        self.words = words
        self.clock = clock
        (inbox, callbackReceiver) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1_024))
    }

    // MARK: What happens

    /// Takes a fact over; meant to be told by the broker, in the middle of its turns.
    public nonisolated func note(_ fact: BrokerFact) {
        switch fact {
        case .signInWanted(let account):
            guard wanted.withLock({ $0.insert(account).inserted }) else { return }
            put(.fact(fact))
        case .sessionEnding, .sessionEnded, .sessionClosed, .sessionOpened, .signInEnded: put(.fact(fact))
        default: return
        }
    }

    /// The queue has room for more than happens while a notification server hangs; what it loses, nobody waits for.
    private nonisolated func put(_ item: Item) {
        guard case .dropped(let lost) = callbackReceiver.yield(item) else { return }
        switch lost {
        case .fact(.signInWanted(let account)): wanted.withLock { _ = $0.remove(account) }
        case .say(_, _, let isShown): isShown.fulfil(false)
        case .leave(let done): done.fulfil(())
        case .fact, .news, .configured: return
        }
    }

    /// What holds now: whether anything is shown, and of which accounts.
    public nonisolated func configure(isEnabled: Bool, accounts: [AccountName]) {
        put(.configured(isEnabled: isEnabled, Set(accounts)))
    }

    /// Tells the person what came of a callback that they brought by a link. True if a notice says it.
    public nonisolated func tell(
        _ verdict: CallbackVerdict, of account: AccountName?, message: String?
    ) async -> Bool {
        let subject: NoticeSubject =
            switch verdict {
            case .completed: .signedIn(as: nil)
            case .failed, .outdated: .signInFailed(message: message)
            case .noted: .changeConfirmed(message: message)
            case .ignored, .ended: .linkUnusable
            }
        let isShown = Promise<Bool>()
        put(.say(subject, subject == .linkUnusable ? nil : account, isShown))
        return await isShown.wait(atMost: NoticeBoard.sayingTime) ?? false
    }

    /// Takes down what nobody would answer to any more. For the daemon's end.
    public nonisolated func leave(atMost bound: Duration) async {
        let done = Promise<Void>()
        put(.leave(done))
        _ = await done.wait(atMost: bound)
    }

    /// Works until it is cancelled.
    public func run() async {
        await withDiscardingTaskGroup { group in
            let news = desktop.news()
            group.addTask { for await event in news { self.put(.news(event)) } }
            for await item in inbox {
                guard let (account, token) = await work(item) else { continue }
                // A provider and a desktop take their time; other notices do not wait for them.
                group.addTask { await self.show(account, token) }
            }
            group.cancelAll()
        }
    }

    /// Gives the account whose page is to be shown, if that is what came of it.
    private func work(_ item: Item) async -> (AccountName, String?)? {
        switch item {
        case .fact(let fact): await take(fact)
        case .news(let event): return await hear(event)
        case .say(let subject, let account, let isShown): isShown.fulfil(await say(subject, account))
        case .configured(let isEnabled, let accounts):
            self.isEnabled = isEnabled
            for account in standing.keys where account.map({ !accounts.contains($0) || !isEnabled }) ?? !isEnabled {
                await takeDown(account)
            }
        case .leave(let done):
            for (account, notice) in standing where notice.subject.isPrompt { await takeDown(account) }
            done.fulfil(())
        }
        return nil
    }

    private func take(_ fact: BrokerFact) async {
        switch fact {
        case .sessionOpened(let account, _, _), .sessionClosed(let account, _), .sessionEnded(let account, _),
            .signInEnded(let account, _, _, _, _):
            answeredAt[account] = nil
        default: break
        }
        switch fact {
        case .signInWanted(let account):
            wanted.withLock { _ = $0.remove(account) }
            // A program that comes later than the answer has nothing new to ask.
            if let answer = answeredAt[account], clock.boot() - answer < NoticeBoard.quietTime { return }
            // Every prompt offers the same sign-in; the first that stands is enough.
            if let notice = standing[account], notice.subject.isPrompt, notice.shown != nil { return }
            await prompt(.signInWanted, account)
        case .sessionEnding(let account, let end):
            if let notice = standing[account], notice.subject == .sessionEnding(at: end), notice.shown != nil { return }
            await prompt(.sessionEnding(at: end), account)
        case .sessionEnded(let account, _): await prompt(.sessionEnded, account)
        case .sessionClosed(let account, _): await takeDown(account)
        case .sessionOpened(let account, _, _):
            if standing[account]?.subject.isPrompt == true { await takeDown(account) }
        case .signInEnded(let account, let method, .completed, _, _):
            if NoticeBoard.endsElsewhere(method) { _ = await say(.signedIn(as: nil), account) }
        case .signInEnded(let account, _, .cancelled, _, _),
            .signInEnded(let account, _, .failed, _, .accessDenied?):
            quiet(account)
            if standing[account]?.subject.isPrompt == true { await takeDown(account) }
        default: return
        }
    }

    /// True for sign-ins that end in a browser or a mail program, away from whoever asked for them.
    private static func endsElsewhere(_ method: String) -> Bool { ["browser", "sso", "magic_link"].contains(method) }

    private func hear(_ event: NoticeEvent) async -> (AccountName, String?)? {
        switch event {
        case .answered(let id, let action, let token):
            guard let (account, notice) = standing.first(where: { $0.value.shown?.id == id }) else { return nil }
            // It has done its work, whether or not the server takes it away by itself.
            await takeDown(account)
            guard let account, notice.subject.isPrompt, [NoticeWords.signIn, NoticeWords.click].contains(action) else {
                return nil
            }
            answeredAt[account] = clock.boot()
            return (account, token)
        case .closed(let id, let closing):
            guard let (account, notice) = standing.first(where: { $0.value.shown?.id == id }) else { return nil }
            standing[account] = nil
            if let account, notice.subject.isPrompt, closing == .dismissed || closing == .expired { quiet(account) }
        case .serverCame: await showAgain { $0.shown == nil }
        case .serverGone(let server): await showAgain { $0.shown?.server.hasPrefix(server) == true }
        }
        return nil
    }

    /// What was said is not said again; what is asked is asked still.
    private func showAgain(_ isConcerned: (Standing) -> Bool) async {
        for (account, notice) in standing where isConcerned(notice) {
            guard notice.subject.isPrompt, notice.attempts < NoticeBoard.maxAttempts else {
                standing[account] = nil
                continue
            }
            var again = notice
            again.attempts += 1
            again.shown = await desktop.show(words.notice(notice.subject, account?.rawValue), nil)
            standing[account] = again
        }
    }

    // MARK: Showing

    private func quiet(_ account: AccountName) { quietUntil[account] = clock.boot() + NoticeBoard.quietTime }

    private func prompt(_ subject: NoticeSubject, _ account: AccountName) async {
        guard clock.boot() >= quietUntil[account] ?? .min else { return }
        _ = await place(subject, account)
    }

    /// True if somebody showed it.
    private func say(_ subject: NoticeSubject, _ account: AccountName?) async -> Bool {
        var subject = subject
        if case .signedIn = subject, let account {
            if case .signedIn? = standing[account]?.subject, isRecent(account) { return true }
            subject = .signedIn(as: await signIns.person(account))
        }
        if subject == .linkUnusable, standing[nil] != nil, isRecent(nil) { return true }
        return await place(subject, account)
    }

    private func isRecent(_ account: AccountName?) -> Bool {
        standing[account].map { clock.boot() - $0.since < NoticeBoard.sameNews && $0.shown != nil } ?? false
    }

    private func place(_ subject: NoticeSubject, _ account: AccountName?) async -> Bool {
        guard isEnabled else { return false }
        let former = standing[account]?.shown
        let shown = await desktop.show(words.notice(subject, account?.rawValue), former)
        standing[account] = Standing(subject: subject, shown: shown, since: clock.boot())
        // What is only said is worth nothing later.
        if shown == nil, !subject.isPrompt { standing[account] = nil }
        return shown != nil
    }

    private func takeDown(_ account: AccountName?) async {
        guard let notice = standing.removeValue(forKey: account), let shown = notice.shown else { return }
        await desktop.close(shown)
    }

    // MARK: Answering

    /// The person wants to sign in: the page of the sign-in that is pending, or of one that is begun now.
    private func show(_ account: AccountName, _ token: String?) async {
        if let page = await signIns.page(account), await desktop.open(page, token) { return }
        answeredAt[account] = nil
        put(.say(.pageNotOpened, account, Promise()))
    }
}
