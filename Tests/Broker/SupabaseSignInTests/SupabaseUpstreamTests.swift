import Cryptography
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A sign-in with another account's ID token` {
    private let app = SupabaseHouse.name
    private let google = House.named("google")

    private struct Street: HTTPClient {
        let provider: FakeProvider
        let project: FakeSupabase

        func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
            if request.url.hasPrefix(project.origin + "/") { return try await project.send(request) }
            return try await provider.answer(request)
        }
    }

    private struct World {
        let clock = TestClock()
        let provider: FakeProvider
        let project: FakeSupabase
        let broker: Broker

        init(_ change: (inout SupabaseAccount) -> Void = { _ in }) async throws {
            provider = try FakeProvider(clock: clock)
            project = try FakeSupabase(clock: clock)
            broker = Broker(
                vault: RecordingVault(), http: Street(provider: provider, project: project),
                callbackReceiver: Doors().callbackReceiver,
                clock: clock.clock)
            let account = try SupabaseHouse.account { _, rules in
                rules.oauthProvider = "google"
                rules.idTokenAccount = "google"
                change(&rules)
            }
            await broker.configure([account, House.account(House.named("google"))])
            broker.stopListening(try await broker.events(of: nil, after: nil).live)
        }
    }

    private func begin(
        _ world: World, from account: String? = nil, _ fill: (inout SupabaseSignInFields) -> Void = { _ in }
    ) async throws(BrokerError) -> FlowView? {
        var request = SignInRequest(.idToken)
        var fields = SupabaseSignInFields()
        fields.fromAccount = account
        fill(&fields)
        request.project = fields
        return try await world.broker.begin(app, request).flow
    }

    private func signIn(_ world: World) async throws {
        let flow = try await world.broker.signIn(google, SignInRequest()).flow
        _ = await world.broker.receive(try world.provider.consent(flow.authorizationURL))
    }

    @Test func `shows the one that is held, with the nonce that the token's is the digest of`() async throws {
        let world = try await World()
        try await signIn(world)
        #expect(try await begin(world) == nil)
        #expect(try await world.broker.account(app).state == .authenticated)
        let grant = try #require(world.project.last("POST /token id_token"))
        #expect(grant.body["provider"] == "google" && grant.body["access_token"] == nil)
        let source = try #require(grant.body["nonce"]?.string)
        let sent = SupabaseServer.parts(ofIDToken: grant.body["id_token"]?.string ?? "").last
        #expect(sent == Digest.hex(Digest.sha256(source)) && source.utf8.count == 43)
        // Whoever sees the authorization URL does not know what to show.
        #expect(world.provider.requests.allSatisfy { !$0.url.contains(source) })
    }

    @Test func `shows no nonce with a token that a refresh brought without one`() async throws {
        let world = try await World()
        try await signIn(world)
        _ = try await world.broker.refresh(google, isForced: true)
        #expect(try await begin(world, from: "google") == nil)
        #expect(world.project.last("POST /token id_token")?.body["nonce"] == nil)
    }

    @Test func `starts the other account's sign-in if that account is signed out, and waits for it`() async throws {
        let world = try await World()
        let flow = try #require(try await begin(world))
        let other = try #require(try await world.broker.account(google).flow)
        #expect(flow.account == app && flow.waitingFor == .callback && flow.redirectURI.isEmpty)
        #expect(flow.authorizationURL == other.authorizationURL)
        let verdict = await world.broker.receive(try world.provider.consent(flow.authorizationURL))
        #expect(verdict == .completed(flow: other.id))
        #expect(try await world.broker.flow(flow.id, waiting: .seconds(20)).status == .completed)
        #expect(try await world.broker.account(app).user?["email"] == "alice@example.org")
        #expect(try await world.broker.account(google).state == .authenticated)
    }

    @Test func `shows the other account's page as it is now, where that one lapses`() async throws {
        let world = try await World()
        let place = "\(world.provider.origin)/par"
        world.provider.behave { $0.metadata["pushed_authorization_request_endpoint"] = .string(place) }
        let flow = try #require(try await begin(world))
        #expect(flow.authorizationURL.contains("request_uri="))
        world.clock.advance(by: 61)
        let later = try await world.broker.flow(flow.id)
        #expect(later.authorizationURL != flow.authorizationURL)
        _ = await world.broker.receive(try world.provider.consent(later.authorizationURL))
        #expect(try await world.broker.flow(flow.id, waiting: .seconds(20)).status == .completed)
    }

    @Test func `fails, is cancelled and expires with the other account's, and lets go of it`() async throws {
        let world = try await World()
        let flow = try #require(try await begin(world))
        let other = try #require(try await world.broker.account(google).flow)
        _ = try await world.broker.cancel(flow.id, isForAll: false)
        #expect(try await world.broker.flow(other.id, waiting: .seconds(20)).status == .cancelled)

        let second = try #require(try await begin(world))
        let page = try #require(try await world.broker.account(google).flow)
        _ = try await world.broker.cancel(page.id, isForAll: true)
        #expect(try await world.broker.flow(second.id, waiting: .seconds(20)).status == .cancelled)

        let third = try #require(try await begin(world))
        world.project.behave { $0.providers = [] }
        world.project.script(
            "POST /token id_token", .answer(400, #"{"error":"invalid request","error_description":"Bad ID token"}"#, [])
        )
        _ = await world.broker.receive(try world.provider.consent(third.authorizationURL))
        guard case .failed(.problem(let problem)) = try await world.broker.flow(third.id, waiting: .seconds(20)).status
        else { throw Unexpected() }
        #expect(problem.providerCode == "invalid request")
    }

    @Test(arguments: [false, true])
    func `fails with the name of the other account if that one's client is wrong`(isSignedIn: Bool) async throws {
        let world = try await World()
        if isSignedIn {
            try await signIn(world)
            world.clock.advance(by: 7_200)
        }
        for _ in 0..<2 { world.provider.script(.token, .status(401, #"{"error":"invalid_client"}"#)) }
        let failure: BrokerError?
        if isSignedIn {
            failure = await error { try await begin(world) }
        } else {
            let flow = try #require(try await begin(world))
            _ = await world.broker.receive(try world.provider.consent(flow.authorizationURL))
            let status = try await world.broker.flow(flow.id, waiting: .seconds(20)).status
            if case .failed(let error) = status { failure = error } else { failure = nil }
        }
        guard case .upstream(google, .provider(.refused("invalid_client", _)))? = failure
        else { throw Unexpected() }
    }

    @Test func `names an account that has ID tokens, and no token of its own`() async throws {
        let world = try await World { $0.idTokenAccount = nil }
        for name in ["nobody", "work", "Google"] {
            #expect(await error { try await begin(world, from: name) } != nil)
        }
        let both = await error {
            try await begin(world, from: "google") { $0.idToken = Secret("x") }
        }
        guard case .invalid(field: "from_account", _) = both else { throw Unexpected() }
        guard case .invalid = await error({ try await begin(world) })
        else { throw Unexpected() }
        #expect(world.project.requests.isEmpty)
    }

    @Test func `differs from a token in the request, which takes precedence`() async throws {
        let world = try await World()
        let flow = try await begin(world) { fields in
            fields.oauthProvider = "google"
            fields.idToken = Secret("bob@example.org;\(Digest.hex(Digest.sha256("n")))")
            fields.nonce = Secret("n")
        }
        #expect(flow == nil)
        #expect(try await world.broker.account(app).user?["email"] == "bob@example.org")
    }
}
