import OAuth
import RingbackBase
import SupabaseAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A callback of a project` {
    private func flow(_ house: SupabaseHouse) async throws -> FlowView {
        try #require(try await house.begin("browser"))
    }

    private func ignored(_ verdict: CallbackVerdict) -> Bool { if case .ignored = verdict { true } else { false } }

    private func isPending(_ house: SupabaseHouse, _ flow: FlowView) async throws -> Bool {
        try await house.broker.flow(flow.id).status == .pending
    }

    private func foreignCode(_ house: SupabaseHouse) -> String {
        house.project.behave { server in
            let code = server.uuid()
            let user = server.addUser(email: "mallory@example.org").id
            server.codes[code] = SupabaseServer.Code(
                flow: .init(redirectTo: "", challenge: "theirs", method: "google", startedAt: 2_000_000_000), user: user
            )
            return code
        }
    }

    @Test func `on loopback has the flow's key last in its path`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await flow(house)
        #expect(flow.waitingFor == .callback)
        #expect(flow.redirectURI.hasPrefix("http://127.0.0.1:4711/callback/work/"))
        let key = flow.redirectURI.split(separator: "/").last ?? ""
        #expect(key.utf8.count == 22)
        // The page knows the key, but not the flow's name.
        #expect(!flow.redirectURI.contains(flow.id))
        let asked = try #require(house.project.last("GET /authorize"))
        #expect(asked.query["redirect_to"] == flow.redirectURI)
        #expect(asked.query["code_challenge_method"] == "s256")
        #expect(asked.query["provider"] == "google")
        #expect(flow.authorizationURL.hasPrefix("https://provider.example/"))
        let callback = try house.project.consent(flow.authorizationURL)
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
        #expect(try await house.view.state == .authenticated)
        #expect(house.doors.closed == [flow.redirectURI])
        // An identical copy gets its answer, a later one nothing.
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
        house.clock.advance(by: 6)
        #expect(await house.broker.receive(callback) == .ended)
        #expect(house.project.count(FakeSupabase.exchange) == 1)
    }

    @Test func `by an app's own scheme has the key in its query`() async throws {
        let house = try await SupabaseHouse.withScheme()
        let flow = try await flow(house)
        #expect(flow.redirectURI.hasPrefix("swisscoin://auth-callback?flow="))
        let callback = try house.project.consent(flow.authorizationURL)
        #expect(callback.hasPrefix("swisscoin://auth-callback?code="))
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
    }

    @Test func `without or with another key asks nobody and changes nothing`() async throws {
        for house in [try await SupabaseHouse(), try await SupabaseHouse.withScheme()] {
            let flow = try await flow(house)
            let callback = try house.project.consent(flow.authorizationURL)
            let key = house.project.last("GET /authorize")?.query["redirect_to"].map {
                String($0.split { "/=".contains($0) }.last ?? "")
            }
            let other = callback.replacing(try #require(key), with: "AAAAAAAAAAAAAAAAAAAAAA")
            for url in [
                other, callback.replacing(try #require(key), with: ""), callback.replacing("work", with: "play"),
                callback.replacing("auth-callback", with: "elsewhere"), callback.replacing("4711", with: "4712"),
                callback + "&code=again", callback + "&error=access_denied", callback + "&access_token=x",
                callback.replacing("code=", with: "cod="),
            ] where url != callback {
                let verdict = await house.broker.receive(url)
                #expect(ignored(verdict), "\(url)")
            }
            #expect(house.project.count(FakeSupabase.exchange) == 0)
            #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
        }
    }

    @Test func `with tokens is refused with an explanation`() async throws {
        let house = try await SupabaseHouse.withScheme()
        let flow = try await flow(house)
        for part in ["#access_token=a&refresh_token=b&token_type=bearer&sb=", "&refresh_token=b", "#provider_token=x"] {
            let verdict = await house.broker.receive(flow.redirectURI + part)
            guard case .ignored(let reason, _) = verdict else { throw Unexpected() }
            #expect(reason.holds("carriesTokens") || part.contains("provider_token"))
        }
        #expect(try await isPending(house, flow))
        #expect(house.project.count(FakeSupabase.exchange) == 0)
    }

    @Test func `with a code of another flow does not end this one, however often`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await flow(house)
        for _ in 0..<5 {
            #expect(ignored(await house.broker.receive("\(flow.redirectURI)?code=\(foreignCode(house))")))
            #expect(ignored(await house.broker.receive("\(flow.redirectURI)?code=unknown")))
        }
        #expect(try await isPending(house, flow))
        let callback = try house.project.consent(flow.authorizationURL)
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
    }

    @Test func `is not lost while another's code is being tried`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await flow(house)
        house.project.hold(FakeSupabase.exchange)
        let foreign = foreignCode(house)
        let attack = Task { await house.broker.receive("\(flow.redirectURI)?code=\(foreign)") }
        #expect(await house.project.arrived(FakeSupabase.exchange))
        let callback = try house.project.consent(flow.authorizationURL)
        let genuine = Task { await house.broker.receive(callback) }
        house.project.release(FakeSupabase.exchange)
        #expect(ignored(await attack.value))
        #expect(await genuine.value == .completed(flow: flow.id))
    }

    @Test func `in many copies at once is one exchange`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await flow(house)
        let callback = try house.project.consent(flow.authorizationURL)
        house.project.hold(FakeSupabase.exchange)
        let copies = (0..<8).map { _ in Task { await house.broker.receive(callback) } }
        #expect(await house.project.arrived(FakeSupabase.exchange))
        house.project.release(FakeSupabase.exchange)
        for copy in copies { #expect(await copy.value == .completed(flow: flow.id)) }
        #expect(house.project.count(FakeSupabase.exchange) == 1)
    }

    @Test(arguments: [
        "?error=access_denied&error_description=No#error=access_denied&error_description=No&sb=",
        "#error=access_denied&error_description=No&sb=",
    ])
    func `that says that the user refused ends the flow, in the query or in the fragment`(tail: String) async throws {
        let house = try await SupabaseHouse()
        let flow = try await flow(house)
        let verdict = await house.broker.receive(flow.redirectURI + tail)
        #expect(verdict == .failed(flow: flow.id, .accessDenied(SupabaseHouse.name)))
        #expect(try await house.view.error == .accessDenied(SupabaseHouse.name))
        #expect(house.project.count(FakeSupabase.exchange) == 0)
    }

    @Test func `with the server's no says which, from a fragment that is escaped twice`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await flow(house)
        let tail = "#error=server_error&error_code=identity_already_exists&error_description=taken%253A+yes&sb="
        guard case .failed(_, .problem(let problem)) = await house.broker.receive(flow.redirectURI + tail)
        else { throw Unexpected() }
        #expect(problem.providerCode == "identity_already_exists")
        #expect(problem.providerMessage == "taken: yes")
    }

    @Test func `that only says that another link is awaited changes nothing`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await flow(house)
        #expect(ignored(await house.broker.receive("\(flow.redirectURI)?message=Confirmation+link+accepted")))
        #expect(try await isPending(house, flow))
    }

    @Test func `without a key is tried against the scheme's one flow, three times at most`() async throws {
        let house = try await SupabaseHouse.withScheme(isKeyless: true)
        let flow = try await flow(house)
        #expect(flow.redirectURI == "swisscoin://auth-callback")
        for _ in 0..<2 {
            #expect(ignored(await house.broker.receive("swisscoin://auth-callback?code=\(foreignCode(house))")))
        }
        let callback = try house.project.consent(flow.authorizationURL)
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
        #expect(house.project.count(FakeSupabase.exchange) == 3)

        let next = try await self.flow(house)
        for _ in 0..<6 {
            #expect(ignored(await house.broker.receive("swisscoin://auth-callback?code=\(foreignCode(house))")))
        }
        #expect(house.project.count(FakeSupabase.exchange) == 6)
        #expect(try await isPending(house, next))
    }

    @Test func `without a key and with an error changes nothing`() async throws {
        let house = try await SupabaseHouse.withScheme(isKeyless: true)
        let flow = try await flow(house)
        for tail in ["?error=access_denied", "#error=server_error&error_code=x&sb=", "?error_code=otp_expired"] {
            #expect(ignored(await house.broker.receive("swisscoin://auth-callback" + tail)))
        }
        #expect(try await isPending(house, flow))
        #expect(house.project.count(FakeSupabase.exchange) == 0)
    }

    @Test func `without a key has one flow for a scheme, whatever the account`() async throws {
        let house = try await SupabaseHouse.withScheme(isKeyless: true)
        var other = try await house.broker.sessionManager.account(SupabaseHouse.name)
        let mine = other
        other.name = House.named("other")
        try await house.configure(mine, other)
        let flow = try await flow(house)
        let request = house.request("browser")
        let second = await error { try await house.broker.begin(other.name, request) }
        guard case .conflict = second else { throw Unexpected() }
        _ = try await house.broker.cancel(flow.id, isForAll: true)
        _ = try await house.broker.begin(other.name, request)
    }

    @Test func `without a key an identical link within five seconds gets the first answer`() async throws {
        let house = try await SupabaseHouse.withScheme(isKeyless: true)
        let flow = try await flow(house)
        let callback = try house.project.consent(flow.authorizationURL)
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
        // A flow that waits now is not asked about it.
        let next = try await self.flow(house)
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
        #expect(try await isPending(house, next))
        #expect(house.project.count(FakeSupabase.exchange) == 1)
        house.clock.advance(by: 6)
        guard case .completed = await house.broker.receive(callback) else { return }
        Issue.record("The first answer was given after more than five seconds.")
    }

    @Test func `without a key does not take what belongs to a flow of another provider`() async throws {
        let house = try await SupabaseHouse.withScheme(isKeyless: true)
        let mine = try await house.broker.sessionManager.account(SupabaseHouse.name)
        var other = House.account(House.named("other"), scopes: [])
        other.oauth.endpoints = .fixed(
            try ProviderMetadata(
                authorizationEndpoint: "https://id.example/authorize", tokenEndpoint: "https://id.example/token"))
        other.redirectURI = mine.redirectURI
        try await house.configure(mine, other)
        let flow = try await flow(house)
        let theirs = try await house.broker.signIn(other.name, SignInRequest()).flow
        let state = theirs.authorizationURL.split(separator: "state=").last?.prefix { $0 != "&" } ?? ""
        let verdict = await house.broker.receive("swisscoin://auth-callback?code=theirs&state=\(state)")
        guard case .failed(flow: theirs.id, _) = verdict else { throw Unexpected() }
        #expect(house.project.count(FakeSupabase.exchange) == 0)
        #expect(try await isPending(house, flow))
    }

    @Test func `after the deadline is late, and the deadline says what to register`() async throws {
        let house = try await SupabaseHouse.withScheme()
        let flow = try await flow(house)
        #expect(flow.expiresAt.seconds == house.clock.now + 300)
        let callback = try house.project.consent(flow.authorizationURL)
        house.clock.advance(by: 301)
        #expect(await eventually { (try? await isPending(house, flow)) == false })
        guard case .expired(.flowExpired(let words)) = try await house.broker.flow(flow.id).status
        else { throw Unexpected() }
        #expect(words.holds("swisscoin://auth-callback?*"))
        #expect(await house.broker.receive(callback) == .expired(flow: flow.id))
        #expect(house.project.count(FakeSupabase.exchange) == 0)
    }
}
