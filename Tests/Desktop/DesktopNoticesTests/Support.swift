import BrokerCore
import Desktop
import RingbackBase
import Synchronization
import Testing

@testable import DesktopNotices

final class Hall: Sendable {
    enum Deed: Equatable, Sendable {
        case showed(Notice, replacing: UInt32?)
        case closed(UInt32)
        case opened(String, String?)
        case askedForPage(String)
    }

    struct State {
        var deeds: [Deed] = []
        var last: UInt32 = 0
        var hasServer = true
        var server = "1/:1.5"
        var opens = true
        var person: String? = "alice@example.org"
        var page: String? = "https://id.example.org/authorize"
        var pageWords: String?
        var boot = 1_000_000
        var seen = 0
        var signal = Promise<Void>()
    }

    let state = Mutex(State())
    /// The accounts in whose browsers pages were opened.
    let openedFor = Mutex<[AccountName]>([])
    /// The answers to questions of consent.
    let answers = Mutex<[String]>([])
    let snapshot: SignInNotices
    private let news: AsyncStream<NoticeEvent>.Continuation
    private let work: Task<Void, Never>
    static let work = name("work")
    static let home = name("home")
    static let other = name("other")

    private static func name(_ text: String) -> AccountName {
        guard let name = AccountName(text) else { preconditionFailure("a name of ours") }
        return name
    }

    init(language: Language = .english) {
        let (stream, continuation) = AsyncStream.makeStream(of: NoticeEvent.self)
        news = continuation
        // The closures are made before there is a hall.
        let hall = Hook()
        snapshot = SignInNotices(
            desktop: NoticeDesktop(
                show: { hall.value?.show($0, $1) }, close: { hall.value?.do(.closed($0.id)) },
                open: { page, account, token in
                    hall.value?.openedFor.withLock { $0.append(account) }
                    hall.value?.do(.opened(page, token))
                    return hall.value?.state.withLock { $0.opens } ?? false
                }, news: { stream }),
            signIns: SignIns(
                user: { _ in hall.value?.state.withLock { $0.person } },
                page: { account in
                    hall.value?.do(.askedForPage(account.rawValue))
                    return hall.value?.state.withLock { state in
                        state.page.map { SignIns.Page(url: $0, words: state.pageWords) }
                    }
                }),
            sentences: NoticeSentences(language: language, now: { WallInstant(seconds: 1_800_000_000) }),
            clock: BrokerClock(now: { 1_800_000_000 }, boot: { hall.value?.state.withLock { $0.boot } ?? 0 }),
            answerConsent: { id, decision, forSession in
                hall.value?.answers.withLock { $0.append("\(id) \(decision) \(forSession ? "session" : "once")") }
            })
        work = Task { [snapshot] in await snapshot.run() }
        hall.set(self)
        snapshot.configure(isEnabled: true, accounts: [Hall.work, Hall.home, Hall.other])
    }

    deinit { work.cancel() }

    private func show(_ notice: Notice, _ former: ShownNotice?) -> ShownNotice? {
        let shown: ShownNotice? = state.withLock { state in
            guard state.hasServer else { return nil }
            state.last += 1
            return ShownNotice(id: state.last, server: state.server)
        }
        self.do(.showed(notice, replacing: former?.id))
        return shown
    }

    private func `do`(_ deed: Deed) {
        state.withLock { state in
            state.deeds.append(deed)
            defer { state.signal = Promise() }
            return state.signal
        }.fulfil(())
    }

    func note(_ facts: BrokerFact...) { for fact in facts { snapshot.note(fact) } }
    func tell(_ event: NoticeEvent) { news.yield(event) }
    func pass(seconds: Int) { state.withLock { $0.boot += seconds * 1_000 } }

    func next() async -> Deed? {
        while true {
            let (deed, signal) = state.withLock { state -> (Deed?, Promise<Void>) in
                guard state.seen < state.deeds.count else { return (nil, state.signal) }
                state.seen += 1
                return (state.deeds[state.seen - 1], state.signal)
            }
            if let deed { return deed }
            guard await signal.wait(atMost: .seconds(20)) != nil else { return nil }
        }
    }

    func nextNotice(sourceLocation: SourceLocation = #_sourceLocation) async throws -> (id: UInt32, Notice) {
        guard case .showed(let notice, _) = await next() else {
            Issue.record("no notice", sourceLocation: sourceLocation)
            throw Missing()
        }
        return (state.withLock { $0.last }, notice)
    }

    /// Waits until the board has worked on everything so far, and sees that nothing came of it: what came first is done
    /// first, of facts and of news alike.
    func expectNothing(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        note(.sessionEnded(Hall.other, subject: nil))
        let (id, notice) = try await nextNotice(sourceLocation: sourceLocation)
        #expect(notice.summary.contains("other"), "\(notice)", sourceLocation: sourceLocation)
        tell(.answered(notice: id, action: "none of ours", activationToken: nil))
        let deed = await next()
        #expect(deed == .closed(id), "\(String(describing: deed))", sourceLocation: sourceLocation)
    }

    struct Missing: Error {}

    private final class Hook: Sendable {
        private struct Room { weak var hall: Hall? }
        private let room = Mutex(Room())
        var value: Hall? { room.withLock { $0.hall } }
        func set(_ hall: Hall) { room.withLock { $0.hall = hall } }
    }
}
