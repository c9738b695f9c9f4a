import OAuth
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `Flows` {
    private func conflict(_ house: House, _ name: AccountName, _ request: SignInRequest) async -> Reason? {
        let error = await error { try await house.broker.signIn(name, request) }
        if case .conflict(let reason, _)? = error { return reason }
        return nil
    }

    @Test func `an equal sign-in joins the pending one, a different one is told of it`() async throws {
        let house = try await House()
        let request = SignInRequest(scopes: ["openid"], parameters: [("prompt", "login")])
        let first = try await house.broker.signIn(House.name, request)
        house.clock.advance(by: 7)
        var patient = request
        patient.timeout = .seconds(5)
        let second = try await house.broker.signIn(House.name, patient)
        #expect(first.isNew && !second.isNew)
        #expect(first.flow.id == second.flow.id)
        #expect(first.flow.expiresAt == first.flow.startedAt + .seconds(600))
        for different in [
            SignInRequest(), SignInRequest(scopes: ["openid"]),
            SignInRequest(scopes: ["openid"], parameters: [("prompt", "none")]),
            SignInRequest(scopes: ["openid"], parameters: [("prompt", "login")], switchesSubject: true),
        ] {
            #expect(
                await conflict(house, House.name, different) == .anotherPending(House.name, method: .browser, age: 7))
        }
        #expect(house.doors.opened == 1)
    }

    @Test func `sign-ins that come while the first one still looks for its provider make one flow`() async throws {
        let house = try await House()
        house.provider.hold(.metadata)
        let calls = (0..<20).map { _ in Task { try await house.broker.signIn(House.name, SignInRequest()) } }
        #expect(await house.provider.arrived(.metadata, 1))
        #expect(await conflict(house, House.name, SignInRequest(switchesSubject: true)) != nil)
        house.provider.release(.metadata)
        var results: [(flow: FlowView, isNew: Bool)] = []
        for call in calls { results.append(try await call.value) }
        #expect(Set(results.map(\.flow.id)).count == 1)
        #expect(results.count(where: \.isNew) == 1)
        #expect(house.doors.opened == 1)
        #expect(house.provider.count(.metadata) == 1)
        let id = results[0].flow.id
        for _ in 0..<19 { #expect(try await house.broker.cancel(id, isForAll: false).status == .pending) }
        #expect(try await house.broker.cancel(id, isForAll: false).status == .cancelled)
    }

    @Test func `a sign-in that cannot begin says why and leaves its place`() async throws {
        let house = try await House()
        house.provider.script(.metadata, .status(404), .status(404))
        guard
            case .provider(.invalidResponse) = await error({
                try await house.broker.signIn(House.name, SignInRequest())
            })
        else { throw Unexpected() }
        #expect(await house.broker.flows().isEmpty)
        #expect(try await house.broker.signIn(House.name, SignInRequest()).isNew)
    }

    @Test func `a configuration that changes while a sign-in begins cancels it`() async throws {
        let house = try await House()
        house.provider.hold(.metadata)
        let call = Task { await error { try await house.broker.signIn(House.name, SignInRequest()) } }
        #expect(await house.provider.arrived(.metadata, 1))
        await house.broker.configure([House.account(clientID: "another-client")])
        guard case .flowCancelled = await call.value else { throw Unexpected() }
        // A new one may begin at once, and the old one's late arrival takes nothing from it.
        let next = Task { try await house.broker.signIn(House.name, SignInRequest()).flow }
        #expect(await eventually { house.provider.count(.metadata) == 1 })
        house.provider.release(.metadata)
        let flow = try await next.value
        #expect(flow.authorizationURL.contains("client_id=another-client"))
        #expect(await house.broker.flows().map(\.id) == [flow.id])
        #expect(await eventually { house.doors.opened - house.doors.closed.count == 1 })
    }

    @Test func `sixteen sign-ins may be pending at a time`() async throws {
        let house = try await House()
        let names = (0...16).map { House.named("account-\($0)") }
        await house.broker.configure(names.map { House.account($0) })
        for name in names.dropLast() { _ = try await house.broker.signIn(name, SignInRequest()) }
        #expect(
            await conflict(house, names[16], SignInRequest())
                == .stated("16 sign-ins are pending already. Finish or cancel one of them."))
        // In their order, though no clock tells them apart.
        #expect(await house.broker.flows().map(\.account) == Array(names.dropLast()))
        let first = try #require(await house.broker.flows().first)
        _ = try await house.broker.cancel(first.id, isForAll: true)
        #expect(try await house.broker.signIn(names[16], SignInRequest()).isNew)
    }

    @Test func `the last interest that is cancelled cancels, and cancelling again changes nothing`() async throws {
        let house = try await House()
        let id = try await house.broker.signIn(House.name, SignInRequest()).flow.id
        _ = try await house.broker.signIn(House.name, SignInRequest())
        let waiting = Task { try await house.broker.flow(id, waiting: .seconds(30)).status }
        #expect(try await house.broker.cancel(id, isForAll: false).status == .pending)
        #expect(try await house.broker.account(House.name).state == .authenticating)
        for _ in 0..<3 { #expect(try await house.broker.cancel(id, isForAll: false).status == .cancelled) }
        #expect(try await waiting.value == .cancelled)
        #expect(house.doors.closed == ["http://127.0.0.1:4711/callback/work"])
        #expect(try await house.view.state == .unauthenticated)
        #expect(try await house.view.error == nil)

        let another = try await house.broker.signIn(House.name, SignInRequest()).flow.id
        _ = try await house.broker.signIn(House.name, SignInRequest())
        #expect(try await house.broker.cancel(another, isForAll: true).status == .cancelled)
    }

    @Test func `a flow expires by the clock, says what it waited for, and frees the account`() async throws {
        let house = try await House()
        let flow = try await house.broker.signIn(House.name, SignInRequest(timeout: .seconds(45))).flow
        let waiting = Task { try await house.broker.flow(flow.id, waiting: .seconds(30)).status }
        // The registry looks at the clock every thirty seconds at least, so it takes the steps of a sleeping laptop too.
        #expect(
            await eventually {
                if house.clock.now < flow.expiresAt.seconds + 2 { house.clock.advance(by: 1) }
                return (try? await house.broker.flow(flow.id).status) != .pending
            })
        guard case .expired(.flowExpired(let reason)) = try await waiting.value else { throw Unexpected() }
        #expect(
            reason.oauth == .noCallback(House.name, seconds: 45, redirectURI: flow.redirectURI, pushed: nil))
        #expect(house.clock.now > flow.expiresAt.seconds)
        guard case .flowExpired = try await house.view.error else { throw Unexpected() }
        #expect(await eventually { house.doors.closed.count == 1 })
        #expect(try await house.broker.signIn(House.name, SignInRequest()).isNew)
        #expect(try await house.view.error == nil)
    }

    @Test func `a deadline that has passed holds before the timer notices`() async throws {
        let house = try await House()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        let callback = try house.provider.consent(flow.authorizationURL)
        house.clock.advance(by: 601)
        #expect(await house.broker.receive(callback) == .expired(flow: flow.id))
        #expect(house.provider.count(.token) == 0)
    }

    @Test func `an ended flow stays readable for ten minutes, then it is forgotten`() async throws {
        let house = try await House.signedIn()
        let flow = try #require(await house.broker.flows().first)
        house.clock.advance(by: 600)
        #expect(try await house.broker.flow(flow.id).status == .completed)
        house.clock.advance(by: 1)
        #expect(await error { try await house.broker.flow(flow.id) } == .flowNotFound)
        #expect(await house.broker.flows().isEmpty)
        for id in ["", "nothing", flow.id] {
            let again = await error { try await house.broker.cancel(id, isForAll: true) }
            #expect(again == .flowNotFound)
        }
    }

    @Test func `a wait for a flow that stays pending ends as it is`() async throws {
        let house = try await House()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        #expect(try await house.broker.flow(flow.id, waiting: .milliseconds(10)).status == .pending)
        let gone = Task { await error { try await house.broker.flow(flow.id, waiting: .seconds(30)) } }
        gone.cancel()
        #expect(await gone.value == .cancelled)
    }

    @Test(arguments: ["state", "redirect_uri", "client_secret", "nonce", "scope", "code_challenge", "request"])
    func `a parameter that Ringback sets itself is the caller's mistake`(name: String) async throws {
        let house = try await House()
        let request = SignInRequest(parameters: [("prompt", "login"), (name, "x")])
        guard case .invalid("params." + name, _) = await error({ try await house.broker.signIn(House.name, request) })
        else { throw Unexpected() }
        #expect(house.provider.requests.isEmpty)
    }

    @Test func `a parameter that the configuration sets, or that has no name, is a mistake too`() async throws {
        let house = try await House { $0.authorizationParameters = [("prompt", "consent")] }
        for name in ["prompt", ""] {
            let request = SignInRequest(parameters: [(name, "x")])
            #expect(await error { try await house.broker.signIn(House.name, request) }?.kind == "invalid")
        }
        #expect(
            try await house.broker.signIn(House.name, SignInRequest()).flow.authorizationURL.contains("prompt=consent"))
    }

    @Test func `a method that does not exist yet is said so`() async throws {
        let house = try await House()
        for method in ["device", "password"] {
            guard
                case .methodUnsupported = await error({
                    try await house.broker.signIn(House.name, SignInRequest(method: SignInMethod(rawValue: method)))
                })
            else { throw Unexpected() }
        }
        #expect(
            await error {
                try await house.broker.signIn(House.named("nobody"), SignInRequest())
            } == .accountNotFound("nobody"))
    }

    @Test func `openid without a way to check ID tokens is refused before the user is asked`() async throws {
        let house = try await House()
        house.provider.behave { $0.metadata.updateValue(nil, forKey: "jwks_uri") }
        #expect(await error { try await house.broker.signIn(House.name, SignInRequest()) }?.kind == "unusableSetting")
        #expect(house.doors.opened == 0)
    }

    @Test func `a caller who leaves before there is a flow leaves no interest behind`() async throws {
        let house = try await House()
        house.provider.hold(.metadata)
        let impatient = Task { try await house.broker.signIn(House.name, SignInRequest()).flow }
        #expect(await eventually { house.provider.count(.metadata) == 1 })
        impatient.cancel()
        guard case .failure = await impatient.result else { throw Unexpected() }
        house.provider.release(.metadata)
        #expect(await eventually { await house.broker.flows().first?.status == .cancelled })
    }

    @Test func `who has just said no is asked again only by an explicit sign-in`() async throws {
        let house = try await House()
        let first = try await house.broker.signIn(House.name, SignInRequest()).flow
        _ = try await house.broker.cancel(first.id, isForAll: true)
        func waiting() async -> BrokerError? {
            await error { try await house.broker.sessionAfterSignIn(House.name, SessionQuery()) }
        }
        #expect(await waiting() == .signInRequired(House.name))
        #expect(await house.broker.flows().count == 1)
        house.clock.advance(by: 1)
        let second = try await house.broker.signIn(House.name, SignInRequest()).flow
        let joined = Task { await waiting() }
        _ = await house.broker.receive(try house.provider.consent(second.authorizationURL))
        #expect(await joined.value == nil)
        // The sign-in that succeeded ends the refusal, also of the next sign-out.
        _ = try await house.broker.signOut(House.name)
        #expect(await !house.broker.flowRegistry.wasRefused(House.name))
        house.clock.advance(by: 1)
        let third = try await house.broker.signIn(House.name, SignInRequest()).flow
        _ = try await house.broker.cancel(third.id, isForAll: true)
        #expect(await house.broker.flowRegistry.wasRefused(House.name))
    }

    @Test func `a session that waits for a sign-in starts or joins one and keeps its bound`() async throws {
        let house = try await House()
        let waiting = (0..<2).map { _ in
            Task { try await house.broker.sessionAfterSignIn(House.name, SessionQuery()).subject }
        }
        #expect(await eventually { await house.broker.flows().count == 1 })
        let flow = try #require(await house.broker.flows().first)
        _ = await house.broker.receive(try house.provider.consent(flow.authorizationURL))
        for call in waiting { #expect(try await call.value == "alice") }
        #expect(await house.broker.flows().count == 1)

        _ = try await house.broker.signOut(House.name)
        let query = SessionQuery { $0.timeout = .milliseconds(20) }
        #expect(await error { try await house.broker.sessionAfterSignIn(House.name, query) } == .timedOut)
        // A provider that hangs before there is a flow is bounded too.
        let hanging = try await House()
        hanging.provider.hold(.metadata)
        #expect(await error { try await hanging.broker.sessionAfterSignIn(House.name, query) } == .timedOut)
        hanging.provider.release(.metadata)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `Flows that have ended` {
    @Test func `are remembered up to a number, the newest`() async throws {
        let house = try await House()
        var ids: [String] = []
        for _ in 0..<(FlowRegistry.maxEnded + 20) {
            let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
            ids.append(flow.id)
            #expect(try await house.broker.cancel(flow.id, isForAll: true).status == .cancelled)
        }
        let first = try #require(ids.first)
        let last = try #require(ids.last)
        _ = try await house.broker.signIn(House.name, SignInRequest())
        #expect(await error { _ = try await house.broker.flow(first) } != nil)
        #expect(try await house.broker.flow(last).status == .cancelled)
        #expect(await house.broker.flowRegistry.entries.count <= FlowRegistry.maxEnded + 1)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A flow` {
    @Test func `has a name that no command line takes for an option`() {
        let names = (0..<2_000).map { _ in Flow.newID() }
        #expect(Set(names).count == names.count)
        #expect(names.allSatisfy { !$0.hasPrefix("-") && $0.utf8.count == 22 })
    }

    @Test func `a bound is kept to the millisecond, wherever in a second the flow began`() async throws {
        for start in [0, 1, 999] {
            let house = try await House()
            house.clock.advance(milliseconds: start)
            let flow = try await house.broker.signIn(House.name, SignInRequest(timeout: .seconds(2))).flow
            let end = house.clock.boot + 2_000
            #expect(await eventually { house.clock.wakes.contains(end + 1) })
            house.clock.advance(milliseconds: 2_000)
            #expect(try await house.broker.flow(flow.id).status == .pending)
            house.clock.advance(milliseconds: 1)
            guard case .expired = try await house.broker.flow(flow.id, waiting: .seconds(30)).status
            else { throw Unexpected() }
        }
    }
}

@Suite struct `A callback's port by the caller's wish` {
    private func redirect(_ configured: String?, _ port: Int?) throws(BrokerError) -> String? {
        var account = House.account()
        account.redirectURI = configured
        var request = SignInRequest()
        request.callbackPort = port
        return try request.atCallbackPort(account).redirectURI
    }

    @Test(arguments: [
        (String?.none, "http://127.0.0.1:8400/callback/work"), ("http://localhost:{port}", "http://localhost:8400"),
        ("http://127.0.0.1:0/cb?a=:0", "http://127.0.0.1:8400/cb?a=:0"),
        ("http://[::1]:{port}/x", "http://[::1]:8400/x"),
        ("http://127.0.0.1:8400/cb", "http://127.0.0.1:8400/cb"),
    ])
    func `it takes a free port's place`(_ configured: String?, _ expected: String) throws {
        #expect(try redirect(configured, 8_400) == expected)
        #expect(try redirect(configured, nil) == configured)
    }

    @Test(
        arguments: [
            ("http://127.0.0.1:8401/cb", 8_401), ("myapp://callback", nil), ("https://app.example.org/cb", nil),
            ("http://127.0.0.1/cb", 80),
        ] as [(String, Int?)])
    func `it does not take another's`(_ configured: String, _ fixed: Int?) async throws {
        let failure = await error { try redirect(configured, 8_400) }
        let reason =
            fixed.map { "the configuration of work fixes the port \($0) (redirect_uri)" }
            ?? "the callback of work does not come to a port of this machine (redirect_uri)"
        #expect(failure == .invalid(field: "callback_port", reason: .stated(reason)))
    }

    @Test func `a sign-in at another port is another sign-in`() async throws {
        let house = try await House()
        var request = SignInRequest()
        request.callbackPort = 8_400
        let flow = try await house.broker.signIn(House.name, request).flow
        #expect(flow.redirectURI == "http://127.0.0.1:8400/callback/work")
        #expect(try await house.broker.signIn(House.name, request).flow.id == flow.id)
        let other = await error { try await house.broker.signIn(House.name, SignInRequest()) }
        guard case .conflict? = other else { throw Unexpected() }
        #expect(try await house.finish(flow) == .completed(flow: flow.id))
    }
}
