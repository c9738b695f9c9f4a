internal import BrokerCore
internal import RingbackBase
internal import SignInPage
internal import SupabaseAuth

/// Handles the requests to a sign-in page: shows the screen and performs its forms, by the sign-in methods of the API.
struct PageConductor: Sendable {
    let provider: SupabaseProvider
    let session: PageSession
    let context: SignInContext

    var account: Account { provider.account }
    var clock: BrokerClock { context.tools.clock }
    var steps: PageSteps { PageSteps(session: session, account: account.name, sessions: context.sessions) }

    func answer(_ request: HTTPRequest) async -> HTTPResponse {
        let language = PageLanguage(preferredBy: request.fields)
        if request.method == "GET", request.url.hasPrefix(PageSession.entry) {
            guard session.spend(Secret(String(request.url.dropFirst(PageSession.entry.count)))) else {
                return show(.elsewhere, in: language, status: 410)
            }
            return see("/", [("Set-Cookie", session.secrets.cookieField)])
        }
        guard let id = session.snapshot.flowID, let view = await context.view(id, waiting: .zero) else {
            return show(.elsewhere, in: language, status: 404)
        }
        switch session.secrets.judge(request, at: session.origin) {
        case .refused(let status): return HTTPResponse(status: status)
        case .stranger: return show(.elsewhere, in: language, status: 403)
        case .form(let form): return await perform(form, at: request.url)
        case .page: return await page(request.url, view, language)
        }
    }

    // MARK: Pages

    private func page(_ path: String, _ view: FlowView, _ language: PageLanguage) async -> HTTPResponse {
        switch view.status {
        case .pending:
            // The flow may have ended after its status was read.
            guard let flow = session.snapshot.flow else { return see("/") }
            return await pendingPage(path, flow, language)
        case .completed:
            let state = session.snapshot
            var next = state.running == nil ? await steps.next() : .wait
            if next == .done {
                session.finish()
                if state.complaint != nil { next = .unused }
            }
            guard path == next.rawValue else { return see(next.rawValue) }
            return await show(next, in: language)
        case .failed, .expired, .cancelled:
            guard path == Screen.ended.rawValue else { return see(Screen.ended.rawValue) }
            var content = content(of: .ended, in: language)
            content.ending = PageConductor.ending(of: view, in: language)
            return show(content, in: language, status: 200)
        }
    }

    private func pendingPage(_ path: String, _ flow: Flow, _ language: PageLanguage) async -> HTTPResponse {
        let state = session.snapshot
        let isRunning = state.running != nil
        if path.hasPrefix(PageSession.link) { return await go(to: path, flow) }
        guard let screen = Screen(rawValue: path) else { return see("/") }
        switch screen {
        case .wait: return isRunning ? await show(.wait, in: language) : see(state.screen.rawValue)
        case _ where isRunning: return see(Screen.wait.rawValue)
        case .code where state.message != nil, .resend where state.message != nil: break
        case _ where screen.isFree: break
        default: return see("/")
        }
        return await show(screen, in: language)
    }

    private func go(to path: String, _ flow: Flow) async -> HTTPResponse {
        guard let word = session.spendLink(String(path.dropFirst(PageSession.link.count))) else { return see("/") }
        var fields = SupabaseSignInFields()
        fields.oauthProvider = word
        let start = FlowStart(provider: provider, context: context, request: flow.request.choosing(fields))
        do throws(BrokerError) {
            let request = try await start.page()
            guard await context.add(request, to: flow) else { return see(Screen.ended.rawValue) }
            return HTTPResponse(status: 302, fields: HTTPFields([("Location", request.authorizationURL)]))
        } catch {
            complain(of: error, on: .login)
            return see("/")
        }
    }

    /// Why a sign-in has ended without a session.
    private static func ending(of view: FlowView, in language: PageLanguage) -> String {
        switch view.status {
        case .failed(let error): UserMessage(of: error).text(in: language)
        case .expired: ScreenDocument.expired((view.expiresAt - view.startedAt).wholeSeconds, in: language)
        case .cancelled: ScreenDocument.cancelled(in: language)
        case .pending, .completed: ""
        }
    }

    private func show(_ screen: Screen, in language: PageLanguage) async -> HTTPResponse {
        var content = content(of: screen, in: language)
        if [.done, .unused].contains(screen) { content.user = await steps.user() ?? "" }
        if screen == .factor {
            content.factors = await steps.factors().map { factor in
                let challenge = session.snapshot.challenge.flatMap { $0.factor == factor.id ? $0 : nil }
                return .init(
                    id: factor.id, name: factor.name ?? factor.phone, isPhone: factor.kind == FactorKind.phone.rawValue,
                    hasMessage: challenge != nil, secondsLeft: seconds(to: challenge?.nextMessageAt))
            }
        }
        return show(content, in: language, status: 200)
    }

    private func show(_ screen: Screen, in language: PageLanguage, status: Int) -> HTTPResponse {
        show(content(of: screen, in: language), in: language, status: status)
    }

    private func show(_ content: ScreenContent, in language: PageLanguage, status: Int) -> HTTPResponse {
        let document = ScreenDocument(content, in: language)
        var fields = HTTPFields([
            ("Content-Type", "text/html; charset=utf-8"), ("Content-Language", language.rawValue),
        ])
        if let seconds = document.refresh { fields.append("Refresh", "\(seconds)") }
        // A browser may keep the page that the user has left, with the typed password, in memory even with `no-store`.
        // After the sign-in this header field makes the browser discard it (Clear Site Data, section 3.1).
        if [.factor, .newPassword, .done, .unused, .ended].contains(content.screen) {
            fields.append("Clear-Site-Data", "\"cache\"")
        }
        return HTTPResponse(status: status, fields: fields, body: Secret(document.html))
    }

    private func content(of screen: Screen, in language: PageLanguage) -> ScreenContent {
        var content = ScreenContent(
            screen, account: account.page.displayName ?? account.name.rawValue, host: provider.host,
            words: session.words, token: session.secrets.token.revealed())
        // A browser without the cookie must not see data of the sign-in.
        guard screen != .elsewhere else { return content }
        let state = session.snapshot
        let open = session.settings.open
        content.offers.email = open.contains("email")
        content.offers.phone = open.contains("phone")
        content.offers.signUp = !session.settings.signUpIsClosed
        if screen == .login { content.providers = session.links(own: provider.rules.oauthProvider) }
        if let complaint = state.complaint, let sentence = sentence(of: complaint, on: screen, in: language) {
            content.complaint = (field: complaint.screen == screen ? complaint.field : nil, sentence: sentence)
            content.offersSwitch = complaint.cause == .otherUser && state.otherUser != nil
        }
        content.email = state.email
        content.phone = state.phone
        switch state.message?.message?.contact {
        case .email(let address)?: content.sentTo = address.text
        case .phone(let number)?: content.sentTo = "+\(number.digits)"
        case nil: break
        }
        content.hasLink = state.message?.redirect != nil
        content.secondsLeft = seconds(to: state.nextMessageAt)
        content.lifetime =
            state.flow.map { ($0.expiresAt - clock.wallInstant).wholeSeconds } ?? seconds(to: state.closesAt)
        return content
    }

    /// What a screen says about the last form; nil for nothing. After the sign-in the next screen may be another one than
    /// that of the form.
    private func sentence(of complaint: PageComplaint, on screen: Screen, in language: PageLanguage) -> String? {
        let isAfter = [.factor, .newPassword, .unused].contains(screen)
        guard complaint.screen == screen || complaint.screen == nil || isAfter else { return nil }
        switch complaint.cause {
        case .message(.tooManyAttempts, let wait?): return ScreenDocument.wait(wait, in: language)
        case .message(let message, _):
            // A code and its link are used up together, and the server does not distinguish that from a wrong code.
            let isLinked = screen == .code && message == .wrongCode && session.snapshot.message?.redirect != nil
            return isLinked ? ScreenDocument.usedCode(in: language) : message.text(in: language)
        case .otherUser: return ScreenDocument.otherUser(in: language)
        // The screen `unused` says it without a complaint.
        case .unused: return screen == .unused ? nil : ScreenDocument.unused(in: language)
        }
    }

    /// The whole seconds until an instant; 0 if it has passed or is nil.
    func seconds(to instant: BootInstant?) -> Int { instant.map { max(0, ($0 - clock.bootInstant).wholeSeconds) } ?? 0 }

    func see(_ path: String, _ fields: [(String, String)] = []) -> HTTPResponse {
        HTTPResponse(status: 303, fields: HTTPFields([("Location", path)] + fields))
    }

    func complain(of error: BrokerError, on screen: Screen) {
        let message = UserMessage(of: error)
        let hasBoth = session.settings.open.isSuperset(of: ["email", "phone"])
        session.edit { state in
            // If the project offers both, one field takes an email address or a phone number.
            let field = message.field(on: screen, oneForBoth: hasBoth)
            state.screen = screen
            state.complaint = PageComplaint(
                screen: screen, field: field, cause: .message(message, wait: error.retryAfter))
        }
    }
}

extension FlowStart {
    /// Starts a sign-in on a page of our own. The project's settings determine the methods that the page offers.
    func signInPage() async throws(BrokerError) -> Beginning {
        let settings = try await provider.ask(.settings, on: .authorization)
        let session = PageSession(settings: settings)
        let conductor = PageConductor(provider: provider, session: session, context: context)
        let address = try await context.openSite(session.name, of: account.name, serving: conductor.answer)
        session.edit { $0.address = address }
        return .flow(PageFlow(session: session), timeout: SupabaseFlow.messageTimeout)
    }
}
