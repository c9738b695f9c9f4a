import Cryptography
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `Callbacks` {
    private func pending(_ house: House) async throws -> (flow: FlowView, callback: String) {
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        return (flow, try house.provider.consent(flow.authorizationURL))
    }

    private func parameters(_ callback: String) throws -> [(String, String)] {
        try FormEncoding.parse(try WebURL(parsing: callback).query ?? "").map { ($0.name, $0.value) }
    }

    enum Forgery: String, CaseIterable {
        case noState, emptyState, otherState, doubledState, otherPath, otherPort, otherScheme, noIssuer, otherIssuer
        case emptyIssuer, doubledCode, codeAndError, neither, error, errorWithoutState, tokens, fragmentTokens, notURL
        case longerPath, brokenEscape, jwt
    }

    private func forge(_ callback: String, _ forgery: Forgery) throws -> String {
        let base = String(callback.prefix { $0 != "?" })
        let all = try parameters(callback)
        func url(_ change: ([String: String]) -> [(String, String)], _ base: String) -> String {
            "\(base)?\(FormEncoding.encode(change(Dictionary(uniqueKeysWithValues: all))))"
        }
        func without(_ name: String, _ more: [(String, String)] = []) -> String {
            "\(base)?\(FormEncoding.encode(all.filter { $0.0 != name } + more))"
        }
        return switch forgery {
        case .noState: without("state")
        case .emptyState: without("state", [("state", "")])
        case .otherState: without("state", [("state", String(repeating: "A", count: 43))])
        case .doubledState: without("", [("state", "x")])
        case .otherPath: callback.replacing("/callback/work", with: "/callback/mail")
        case .longerPath: callback.replacing("/callback/work", with: "/callback/work/")
        case .otherPort: callback.replacing(":4711", with: ":4712")
        case .otherScheme: callback.replacing("http://", with: "https://")
        case .noIssuer: without("iss")
        case .otherIssuer: without("iss", [("iss", "https://evil.example")])
        case .emptyIssuer: without("iss", [("iss", "")])
        case .doubledCode: without("", [("code", "x")])
        case .codeAndError: without("", [("error", "access_denied")])
        case .neither: without("code")
        case .error: without("code", [("error", "access_denied"), ("state", "x")])
        case .errorWithoutState: "\(base)?error=access_denied&iss=https%3A%2F%2Fid.example"
        case .tokens: without("", [("access_token", "x")])
        case .fragmentTokens: callback + "#access_token=x"
        case .notURL: "not a url"
        case .brokenEscape: callback.replacing("code=", with: "code=%zz")
        case .jwt: without("code", [("response", "eyJhbGciOiJub25lIn0.eyJjb2RlIjoieCJ9.")])
        }
    }

    /// FAPI-16, FAPI-17, FAPI-18, FAPI-19.
    @Test(arguments: Forgery.allCases)
    func `LB-03, LB-04, NAT-15, JARM-01: a callback that is not the genuine one changes nothing`(
        forgery: Forgery
    ) async throws {
        let house = try await House()
        let (flow, callback) = try await pending(house)
        guard case .ignored(let reason, let id) = await house.broker.receive(try forge(callback, forgery))
        else { throw Unexpected() }
        // One that carries the genuine state says in its flow why it was refused.
        let isStateless = [.noState, .emptyState, .otherState, .errorWithoutState, .notURL].contains(forgery)
        let pending = try await house.broker.flow(flow.id)
        #expect(pending.status == .pending && id == (isStateless ? nil : flow.id))
        #expect(pending.refusal == (isStateless ? nil : .invalidCallback(reason)))
        #expect(house.provider.count(.token) == 0)
        #expect(try await house.view.error == nil)
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
        #expect(try await house.view.subject == "alice")
    }

    @Test func `a refused callback with the genuine state ends a long poll and is recorded once`() async throws {
        let house = try await House()
        let (flow, callback) = try await pending(house)
        let events = try await house.broker.events(of: nil, after: nil).live
        let poll = Task { try await house.broker.flow(flow.id, waiting: .seconds(300)) }
        #expect(await eventually { await house.broker.flowRegistry.entries[flow.id]?.waiters == 1 })
        let slash = try forge(callback, .otherIssuer).replacing("evil.example", with: "id.example%2F")
        for _ in 0..<2 { _ = await house.broker.receive(slash) }
        let reason = OAuthReason.wrongIssuerInCallback(
            expected: "https://id.example", stated: "https://id.example/", isMissing: false)
        #expect(try await poll.value.refusal == .invalidCallback(.oauth(reason)))
        #expect(house.facts.names.filter { $0 == "callbackRefused" }.count == 1)
        guard case .events(let lines) = await events.next(within: .zero) else { throw Unexpected() }
        let refused = lines.filter { $0.event.kind == .callbackRefused }
        #expect(refused.map(\.event.error) == [.invalidCallback(.oauth(reason))])
        #expect(await house.clock.flowTimersSleep())
        house.clock.advance(by: 601)
        #expect(
            await eventually {
                guard case .expired(.flowExpired(.both(_, let why)))? = try? await house.broker.flow(flow.id).status
                else { return false }
                return why == .oauth(reason)
            })
    }

    @Test(arguments: [true, false])
    func `what the listener does not admit is shown by the flow whose state it has, and completes nothing`(
        isPosted: Bool
    ) async throws {
        let house = try await House()
        let (flow, callback) = try await pending(house)
        let posted = Reason.stated("The response came by POST.")
        let base = String(callback.prefix { $0 != "?" })
        let form = Array(callback.dropFirst(base.count + 1).utf8)
        let verdict = await house.broker.receive(
            isPosted ? base : callback, form: isPosted ? form : nil, for: [House.name], refusal: posted)
        #expect(verdict == .ignored(posted, flow: flow.id))
        #expect(try await house.broker.flow(flow.id).refusal == .invalidCallback(posted))
        #expect(house.provider.count(.token) == 0)
        #expect(await house.broker.receive(callback, for: [], refusal: posted) == .ignored(posted))
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
    }

    @Test func `a provider that promises no iss may leave it out, and may not give another`() async throws {
        let house = try await House()
        house.provider.behave { $0.metadata["authorization_response_iss_parameter_supported"] = false }
        let (flow, callback) = try await pending(house)
        guard case .ignored = await house.broker.receive(try forge(callback, .otherIssuer)) else { throw Unexpected() }
        #expect(await house.broker.receive(try forge(callback, .noIssuer)) == .completed(flow: flow.id))
    }

    @Test(arguments: ["&hd=100%", "&hd=%zz", "&x=caf%E9", "&x={a|b}^`é", "&%", "&x=%00"])
    func `a callback with a malformed parameter that nobody needs completes the sign-in`(rest: String) async throws {
        let house = try await House()
        let (flow, callback) = try await pending(house)
        #expect(await house.broker.receive(callback + rest) == .completed(flow: flow.id))
    }

    @Test func `a form_post callback is read from its body alone`() async throws {
        let house = try await House()
        let (flow, callback) = try await pending(house)
        let base = String(callback.prefix { $0 != "?" })
        let form = Array(callback.dropFirst(base.count + 1).utf8)
        guard case .ignored = await house.broker.receive(callback, form: []) else { throw Unexpected() }
        #expect(await house.broker.receive(base, form: form) == .completed(flow: flow.id))
    }

    @Test func `a refusal by the user ends the flow, and only with its state`() async throws {
        let house = try await House()
        let (flow, callback) = try await pending(house)
        let state = try #require(try parameters(callback).first { $0.0 == "state" }?.1)
        let denial = "\(flow.redirectURI)?error=access_denied&state=\(state)&iss=https%3A%2F%2Fid.example"
        #expect(await house.broker.receive(denial) == .failed(flow: flow.id, .accessDenied(House.name)))
        #expect(try await house.broker.flow(flow.id).status == .failed(.accessDenied(House.name)))
        #expect(try await house.view.error == .accessDenied(House.name))
        #expect(await house.broker.receive(callback) == .ended)
        #expect(house.provider.count(.token) == 0)
        #expect(try await house.view.state == .unauthenticated)
    }

    @Test(arguments: [("server_error", true), ("temporarily_unavailable", true), ("invalid_scope", false)])
    func `other errors of the provider end the flow with its word`(code: String, isTransient: Bool) async throws {
        let house = try await House()
        let (flow, callback) = try await pending(house)
        let error = callback.replacing("code=code-1", with: "error=\(code)")
        guard case .failed(flow.id, let failure) = await house.broker.receive(error) else { throw Unexpected() }
        #expect(failure.isTransient == isTransient)
        if !isTransient { #expect(failure == .provider(.refused(code: code, message: nil))) }
    }

    @Test func `LB-12: a hundred copies share one token request and one answer`() async throws {
        let house = try await House()
        let (flow, callback) = try await pending(house)
        house.provider.hold(.token)
        let verdicts = await withTaskGroup(of: CallbackVerdict.self) { group in
            for _ in 0..<100 { group.addTask { await house.broker.receive(callback) } }
            #expect(await house.provider.arrived(.token, 1))
            // A different callback with the same state, while the first is worked on, is nobody's.
            let other = callback.replacing("code=code-1", with: "code=other")
            guard case .ignored = await house.broker.receive(other) else {
                Issue.record("the other callback was not ignored")
                return [CallbackVerdict]()
            }
            house.provider.release(.token)
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(verdicts.count == 100)
        #expect(verdicts.allSatisfy { $0 == .completed(flow: flow.id) })
        #expect(house.provider.count(.token) == 1)
    }

    @Test func `a copy within five seconds gets the same answer, a later or another one is too late`() async throws {
        let house = try await House()
        let (flow, callback) = try await pending(house)
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
        house.clock.advance(by: 5)
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
        #expect(await house.broker.receive(callback.replacing("code=code-1", with: "code=other")) == .ended)
        house.clock.advance(by: 1)
        #expect(await house.broker.receive(callback) == .ended)
        #expect(house.provider.count(.token) == 1)
        house.clock.advance(by: 600)
        _ = await house.broker.flows()
        guard case .ignored = await house.broker.receive(callback) else { throw Unexpected() }
    }

    @Test func `a browser that closes its tab does not end the exchange`() async throws {
        let house = try await House()
        let (flow, callback) = try await pending(house)
        house.provider.hold(.token)
        let tab = Task { await house.broker.receive(callback) }
        #expect(await house.provider.arrived(.token, 1))
        tab.cancel()
        guard case .ignored = await tab.value else { throw Unexpected() }
        house.provider.release(.token)
        #expect(try await house.broker.flow(flow.id, waiting: .seconds(10)).status == .completed)
    }

    @Test func `an exchange that outlives the flow's deadline came in time`() async throws {
        let house = try await House()
        let (flow, callback) = try await pending(house)
        house.provider.hold(.token)
        let receiving = Task { await house.broker.receive(callback) }
        #expect(await house.provider.arrived(.token, 1))
        for _ in 0..<30 { house.clock.advance(by: 30) }
        house.provider.release(.token)
        #expect(await receiving.value == .completed(flow: flow.id))
    }

    @Test func `a sign-in that is cancelled during the exchange signs nobody in`() async throws {
        let house = try await House()
        let (flow, callback) = try await pending(house)
        house.provider.hold(.token)
        let receiving = Task { await house.broker.receive(callback) }
        #expect(await house.provider.arrived(.token, 1))
        #expect(try await house.broker.cancel(flow.id, isForAll: true).status == .cancelled)
        house.provider.release(.token)
        guard case .failed(flow.id, .flowCancelled) = await receiving.value else { throw Unexpected() }
        #expect(try await house.broker.flow(flow.id).status == .cancelled)
        #expect(await house.failure() == .signInRequired(House.name))
        #expect(await house.vault.log.isEmpty)
    }

    @Test func `LB-11: a guessed state hits nothing, however near, and the genuine callback counts`() async throws {
        let house = try await House()
        let (flow, callback) = try await pending(house)
        let state = try #require(try parameters(callback).first { $0.0 == "state" }?.1)
        #expect(state.utf8.count == 43)
        var guesses = (0..<2_000).map { _ in RandomToken.identifier(bits: 256) }
        for (index, letter) in state.enumerated() {
            for other in "AaBb09-_" where other != letter {
                guesses.append(state.prefix(index) + String(other) + state.dropFirst(index + 1))
            }
            guesses.append(String(state.prefix(index)))
        }
        for guess in guesses {
            let verdict = await house.broker.receive(callback.replacing("state=\(state)", with: "state=\(guess)"))
            guard case .ignored = verdict else { throw Unexpected() }
        }
        #expect(house.provider.count(.token) == 0)
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
    }

    @Test func `LB-13: another's code with the flow's own state is refused by the provider`() async throws {
        let house = try await House()
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        // Somebody who has seen the state asks for a code of their own; they cannot know the verifier.
        let challenge = try #require(try parameters(flow.authorizationURL).first { $0.0 == "code_challenge" }?.1)
        let theirs = flow.authorizationURL.replacing(challenge, with: String(repeating: "A", count: 43))
        let callback = try house.provider.consent(theirs, as: "mallory")
        let verdict = await house.broker.receive(callback)
        guard case .failed(flow.id, .provider(.refused("invalid_grant", _))) = verdict else { throw Unexpected() }
        #expect(house.provider.count(.token) == 1)
        #expect(try await house.view.state == .unauthenticated)
        #expect(await house.vault.sessions.isEmpty)
    }

    @Test func `LB-15, NAT-42: two accounts' callbacks do not mix`() async throws {
        let house = try await House()
        let second = House.named("second")
        await house.broker.configure([House.account(), House.account(second)])
        let (flow, callback) = try await pending(house)
        let other = try await house.broker.signIn(second, SignInRequest()).flow
        let otherCallback = try house.provider.consent(other.authorizationURL, as: "bob")
        let crossed = callback.replacing("/callback/work", with: "/callback/second")
        guard case .ignored = await house.broker.receive(crossed) else { throw Unexpected() }
        #expect(await house.broker.receive(otherCallback) == .completed(flow: other.id))
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
        #expect(try await house.broker.account(second).subject == "bob")
        #expect(try await house.view.subject == "alice")
    }
}

@Suite(.timeLimit(.minutes(1))) struct `What a provider gave to a sign-in that comes to nothing` {
    @Test func `is revoked if another user is signed in`() async throws {
        let house = try await House.signedIn()
        let held = try await house.token()
        guard case .failed(_, .conflict(let reason, _)) = try await house.signIn(as: "bob") else { throw Unexpected() }
        #expect(reason == .session(.otherUser(House.name, held: "alice@example.org", other: "bob@example.org")))
        #expect(await house.vault.log == ["store refresh-2"])
        #expect(await eventually { house.provider.revoked.count == 2 })
        #expect(try await house.view.subject == "alice")
        #expect(try await house.token() == held)
        #expect(!house.provider.revoked.contains(held))
    }

    private func cancel(_ house: House, as subject: String) async throws {
        let flow = try await house.broker.signIn(House.name, SignInRequest(switchesSubject: true)).flow
        let callback = try house.provider.consent(flow.authorizationURL, as: subject)
        let count = house.provider.count(.token)
        house.provider.hold(.token)
        let receiving = Task { await house.broker.receive(callback) }
        #expect(await house.provider.arrived(.token, count + 1))
        _ = try await house.broker.cancel(flow.id, isForAll: true)
        house.provider.release(.token)
        guard case .failed(flow.id, .flowCancelled) = await receiving.value else { throw Unexpected() }
    }

    @Test func `is revoked if the sign-in was cancelled while its code was redeemed`() async throws {
        let house = try await House()
        try await cancel(house, as: "alice")
        #expect(await eventually { house.provider.count(.revocation) == 2 })
        #expect(try await house.view.state == .unauthenticated)
    }

    /// Some providers have one grant for all sessions of a user, and would end the one that is held.
    @Test func `is not revoked while the same user is signed in`() async throws {
        let house = try await House.signedIn()
        try await cancel(house, as: "alice")
        #expect(await eventually { house.work.count == 0 })
        #expect(house.provider.revoked.isEmpty)
        #expect(try await house.view.subject == "alice")
    }
}

/// By custom scheme the same rules from the path on, and an address that the desktop has rewritten is
/// the same address.
@Suite(.timeLimit(.minutes(5))) struct `A callback by a scheme` {
    private func ignored(_ verdict: CallbackVerdict) -> Bool { if case .ignored = verdict { true } else { false } }

    @Test(arguments: [
        ("org.example.app:/cb", "org.example.app:/cb"), ("org.example.app:/cb", "ORG.Example.App:/cb"),
        ("org.example.app:/cb", "org.example.app:/cb/"), ("swisscoin://auth-callback", "SwissCoin://Auth-Callback"),
        ("swisscoin://auth-callback", "swisscoin://auth-callback/"),
        ("swisscoin://auth-callback/", "swisscoin://auth-callback"),
        ("org.example.app://", "org.example.app:"),
    ])
    func `is taken however the desktop writes its address`(redirectURI: String, arrived: String) async throws {
        let house = try await House { $0.redirectURI = redirectURI }
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        #expect(flow.redirectURI == redirectURI)
        let callback = try house.provider.consent(flow.authorizationURL)
        let query = callback.dropFirst(redirectURI.count)
        #expect(await house.broker.receive(arrived + query) == .completed(flow: flow.id))
        // The provider compares what it is told with what it was asked, byte for byte.
        #expect(house.provider.requests.last { $0.form["redirect_uri"] != nil }?.form["redirect_uri"] == redirectURI)
    }

    @Test(arguments: [
        ("org.example.app:/cb", "org.example.app:/CB"), ("org.example.app:/cb", "org.example.app://cb"),
        ("org.example.app:/cb", "org.example.app2:/cb"), ("org.example.app:/cb", "org.example.app:/cb//"),
        ("org.example.app:/cb", "http://127.0.0.1:4711/callback/work"),
        ("http://127.0.0.1:8400/cb", "http://127.0.0.1:8400/cb/"),
    ])
    func `NAT-04, NAT-18: at another address changes nothing`(redirectURI: String, arrived: String) async throws {
        let house = try await House { $0.redirectURI = redirectURI }
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        let callback = try house.provider.consent(flow.authorizationURL)
        #expect(ignored(await house.broker.receive(arrived + callback.dropFirst(redirectURI.count))))
        #expect(house.provider.count(.token) == 0)
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
    }

    @Test func `SC-06: a page's inventions change nothing, however many`() async throws {
        let house = try await House { $0.redirectURI = "org.example.app:/cb" }
        let flow = try await house.broker.signIn(House.name, SignInRequest()).flow
        for number in 0..<1_000 {
            #expect(ignored(await house.broker.receive("org.example.app:/cb?code=c\(number)&state=s\(number)")))
        }
        for tail in ["", "?code=a", "?error=access_denied", "?code=a&state=", "#access_token=a&state=b"] {
            #expect(ignored(await house.broker.receive("org.example.app:/cb" + tail)))
        }
        #expect(house.provider.count(.token) == 0)
        #expect(try await house.broker.flow(flow.id).status == .pending)
    }
}
