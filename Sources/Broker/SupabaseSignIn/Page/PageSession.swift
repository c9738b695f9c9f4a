internal import BrokerCore
internal import Cryptography
internal import RingbackBase
internal import SignInPage
internal import SupabaseAuth
internal import Synchronization

/// The state of one sign-in page: its secrets and the user's progress. It contains no password.
final class PageSession: Sendable {
    struct Challenge: Sendable {
        let id: String
        let factor: String
        let nextMessageAt: BootInstant
    }

    struct Opened: Sendable {
        /// The server's identifier; nil if its tokens have none.
        let id: String?
        /// The user forgot the password and is to choose a new one. Later tokens of the session may not say so.
        let isRecovery: Bool
    }

    /// The session of another user than the account's. It is not stored in the account.
    struct OtherUser: Sendable {
        let session: Session
        let opening: SessionOpening
    }

    struct State: Sendable {
        /// The page's URL with a slash at its end; empty until the page is served.
        var address = ""
        var flowID: String?
        /// Nil when the flow is not pending any more. This breaks the reference cycle: the flow refers to this object.
        var flow: Flow?
        /// When the page is closed, once the flow has ended.
        var closesAt: BootInstant?
        var isClosed = false
        var tickets: [Secret] = []
        /// The next link to each provider's page. Each works once.
        var links: [String: String] = [:]
        var screen = Screen.login
        var complaint: PageComplaint?
        var email = ""
        var phone = ""
        /// The last message, and when another one may be sent.
        var message: SupabaseFlow?
        var nextMessageAt: BootInstant?
        /// The action of a form that is running, and the digest of the form; nil if none is.
        var running: (form: [UInt8], done: Promise<Void>)?
        var used: [UInt8]?
        var challenge: Challenge?
        /// Nil until the sign-in is done. The steps after it are only for this session.
        var opened: Opened?
        var otherUser: OtherUser?
        /// The steps after the sign-in that the user has skipped or completed.
        var skipped: Set<Screen> = []
    }

    /// A label of a host name, with 100 random bits.
    let name = "rb-\(String(RandomToken.bytes(20).map { base32[Int($0 & 31)] }))"
    let words = PageWords.random()
    let secrets = PageGuard()
    let settings: SupabaseSettings
    private let state = Mutex(State())
    private let finished = Promise<Void>()

    init(settings: SupabaseSettings) { self.settings = settings }

    var snapshot: State { state.withLock { $0 } }
    var address: String { snapshot.address }
    /// The page's origin as in the header field `Origin`.
    var origin: String { String(address.dropLast()) }

    func edit<Result>(_ body: (inout State) -> Result) -> Result where Result: Sendable { state.withLock { body(&$0) } }

    // MARK: Start addresses

    func ticket(to flow: Flow) -> String {
        let ticket = RandomToken.base64URL(bits: 256)
        note(flow)
        return state.withLock { state in
            state.tickets.append(ticket)
            if state.tickets.count > PageSession.mostTickets { state.tickets.removeFirst() }
            return "\(state.address)\(PageSession.entry.dropFirst())\(ticket.revealed())"
        }
    }

    private func note(_ flow: Flow) {
        state.withLock { state in
            guard state.flowID == nil else { return }
            state.flowID = flow.id
            state.flow = flow
        }
    }

    /// Uses up a ticket. False if it is unknown or was used already.
    func spend(_ ticket: Secret) -> Bool {
        state.withLock { state in
            guard let index = state.tickets.firstIndex(of: ticket) else { return false }
            state.tickets.remove(at: index)
            return true
        }
    }

    static let entry = "/enter/"
    private static let mostTickets = 32

    // MARK: Links to providers

    /// The account's own provider first, then by the names that people know.
    func links(own: String?) -> [ScreenContent.ProviderLink] {
        let links = state.withLock { state in
            settings.open.subtracting(PageSession.notPages).map { provider in
                let key = state.links[provider] ?? RandomToken.identifier()
                state.links[provider] = key
                return ScreenContent.ProviderLink(provider: provider, path: PageSession.link + key)
            }
        }
        return links.sorted { left, right in
            guard (left.provider == own) == (right.provider == own) else { return left.provider == own }
            return (left.title.lowercased(), left.provider) < (right.title.lowercased(), right.provider)
        }
    }

    /// Uses up a link and returns its provider; nil if the link is unknown or was used already.
    func spendLink(_ key: String) -> String? {
        state.withLock { state in
            guard let provider = state.links.first(where: { $0.value == key })?.key else { return nil }
            state.links[provider] = nil
            return provider
        }
    }

    static let link = "/go/"
    /// Entries of the project's list of methods that are not providers with a page.
    private static let notPages: Set<String> = ["email", "phone", "anonymous_users"]

    // MARK: Messages

    func note(_ message: SupabaseFlow, at now: BootInstant) {
        state.withLock { state in
            state.message = message
            state.nextMessageAt = now + SupabaseFlow.resendInterval
            state.screen = .code
            state.complaint = nil
        }
    }

    // MARK: The sign-in

    /// Checks the session of a sign-in before the account takes it over, and notes it. A session of another user than
    /// the account's is kept until the user decides; the flow goes on.
    func admit(
        _ redemption: Redemption, of flow: Flow, in context: SignInContext
    ) async throws(RedemptionFailure) -> Redemption {
        guard case .session(let session, let opening) = redemption else { return redemption }
        endOtherUser(of: flow.account, in: context, unless: session)
        if !opening.switchesSubject, let held = await context.sessions.held(flow.account.name),
            !held.isSameUser(as: session)
        {
            edit { state in
                state.otherUser = OtherUser(session: session, opening: opening)
                state.screen = .login
                state.complaint = PageComplaint(screen: nil, field: nil, cause: .otherUser)
            }
            throw RedemptionFailure(PageRedeeming.otherUser, endsFlow: false)
        }
        edit { state in
            state.opened = Opened(id: session.project?.sessionID, isRecovery: session.isRecovery)
            state.otherUser = nil
            state.complaint = nil
        }
        return redemption
    }

    /// Ends the kept session of another user, since it will not be used.
    private func endOtherUser(of account: Account, in context: SignInContext, unless session: Session? = nil) {
        let other = edit { state in
            defer { state.otherUser = nil }
            return state.otherUser
        }
        guard let other else { return }
        if let session, session.project?.sessionID == other.session.project?.sessionID { return }
        context.endUnheld(other.session, of: account)
    }

    /// True while the sign-in is pending, and after it while a step is left on the page.
    func goesOn(_ flow: Flow, in context: SignInContext) async -> Bool {
        switch await context.view(flow.id, waiting: .zero)?.status {
        case .pending?: return true
        case .completed?:
            return await PageSteps(session: self, account: flow.account.name, sessions: context.sessions).next()
                != .done
        case .failed?, .cancelled?, .expired?, nil: return false
        }
    }

    // MARK: The end

    func finish() { finished.fulfil(()) }

    /// Serves the page until its flow has ended and the steps after the sign-in are done, or their time is over.
    func serve(_ flow: Flow, in context: SignInContext) async {
        note(flow)
        while await context.isPending(flow.id) {
            guard await context.view(flow.id, waiting: PageSession.watchInterval) != nil else { break }
        }
        edit { state in
            state.flow = nil
            state.closesAt = context.tools.clock.bootInstant + PageSession.restOfTime
        }
        endOtherUser(of: flow.account, in: context)
        if await goesOn(flow, in: context) {
            _ = await finished.wait(atMost: PageSession.restOfTime)
        }
        edit { $0.isClosed = true }
        await context.closeRedirect(address, of: flow.account.name)
    }

    /// The longest wait before the status is checked again.
    private static let watchInterval: Duration = .seconds(30)
    /// How long the page waits for a second factor or a new password after the sign-in.
    private static let restOfTime: Duration = .seconds(600)
}

struct PageComplaint: Sendable {
    enum Cause: Sendable, Equatable {
        /// `wait`: the seconds that the server requires before the next attempt, if it says so.
        case message(UserMessage, wait: Int? = nil)
        case otherUser
        /// The form belonged to no step, and what the user typed was not used.
        case unused
    }

    /// The screen whose form it was; nil if every screen shows it.
    let screen: Screen?
    let field: String?
    let cause: Cause
}

/// The steps after the sign-in: the second factor, and a new password after a recovery.
struct PageSteps: Sendable {
    let session: PageSession
    let account: AccountName
    let sessions: SessionManager

    func next() async -> Screen {
        let state = session.snapshot
        guard !state.isClosed, let opened = state.opened, let held = await held() else { return .done }
        let skipped = state.skipped
        if !skipped.contains(.factor), held.project?.assurance != .aal2, !PageSteps.factors(of: held).isEmpty {
            return .factor
        }
        return opened.isRecovery && !skipped.contains(.newPassword) ? .newPassword : .done
    }

    func factors() async -> [Factor] { await held().map(PageSteps.factors) ?? [] }

    /// The user who has signed in; nil without an address and a number, and if the account has another session by now.
    func user() async -> String? {
        let user = await held()?.user.flatMap(SupabaseUser.init(reading:))
        return [user?.email, user?.phone].compactMap(\.self).first { !$0.isEmpty }
    }

    /// The session that the page's own sign-in made, if the account still has it.
    private func held() async -> Session? {
        guard let opened = session.snapshot.opened, let held = await sessions.held(account) else { return nil }
        return held.project?.sessionID == opened.id ? held : nil
    }

    private static func factors(of session: Session) -> [Factor] {
        let user = session.user.flatMap(SupabaseUser.init(reading:))
        let kinds: Set = [FactorKind.totp.rawValue, FactorKind.phone.rawValue]
        return user?.factors.filter { $0.isVerified && kinds.contains($0.kind) } ?? []
    }
}

private let base32 = Array("abcdefghijklmnopqrstuvwxyz234567")

/// Two random words that the page and the program both show, so that the user can recognize an imitated page. They
/// differ: a word twice looks like a mistake.
enum PageWords {
    static func random() -> String {
        let bytes = RandomToken.bytes(2).map(Int.init)
        let first = bytes[0] % list.count
        return "\(list[first]) \(list[(first + 1 + bytes[1] % (list.count - 1)) % list.count])"
    }

    static let list = """
        acorn amber anchor apple arrow autumn badge bamboo basket beacon birch bottle branch bridge bronze butter \
        button cabin camel candle canyon carpet castle cedar cherry circle clover cobalt comet copper coral cotton \
        crane crystal daisy desert dolphin donkey dragon eagle ember engine falcon feather fiddle flint forest fossil \
        garden ginger glacier globe granite hammer harbor hazel helmet heron honey island ivory jacket jasmine jungle \
        kettle lantern lemon lilac linen lizard lobster magnet maple marble meadow melon mirror monkey mosaic needle \
        nickel oasis ocean olive onion orange orchid otter oyster paddle panda paper parrot pebble pepper pigeon \
        planet pocket pony prism puzzle quartz rabbit raven ribbon river rocket saddle salmon sandal shadow silver \
        spider spruce squash statue sugar summer sunset teapot tiger timber tulip tunnel turtle valley velvet violet \
        walnut willow window winter
        """.split(separator: " ").map(String.init)
}
