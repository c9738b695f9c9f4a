import RingbackBase
import SupabaseAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A flow at a project` {
    private let alice = SupabaseHouse.alice

    private func otp(_ house: SupabaseHouse, _ method: String = "otp") async throws -> FlowView {
        try #require(try await house.begin(method) { $0.email = alice })
    }

    private func code(_ house: SupabaseHouse, _ contact: String = SupabaseHouse.alice) -> Secret {
        Secret(house.project.code(for: contact))
    }

    private func verify(_ house: SupabaseHouse, _ flow: FlowView, _ code: Secret) async -> BrokerError? {
        await error { try await house.broker.verify(flow.id, code: code) }
    }

    @Test func `that cannot begin says why, and nobody listens for it`() async throws {
        let house = try await SupabaseHouse()
        let disabled = await house.problem("browser") { $0.oauthProvider = "github" }
        #expect(disabled?.code == "method_unsupported")
        for name in ["", "goo gle", "a/b", "x&redirect_to=y"] {
            guard
                case .invalid(field: "oauth_provider", _) = await house.failure("browser", { $0.oauthProvider = name })
            else { throw Unexpected() }
        }
        #expect(house.doors.opened == house.doors.closed.count)
        #expect(await house.broker.flows().isEmpty)
    }

    @Test func `that is asked for with the usual provider by name joins the usual one`() async throws {
        let house = try await SupabaseHouse()
        let first = try #require(try await house.begin("browser"))
        let named = try await house.begin("browser") { $0.oauthProvider = "google" }
        #expect(named?.id == first.id)
        // Who waits for a session names nothing at all.
        let bare = try await house.broker.signIn(SupabaseHouse.name, SignInRequest())
        #expect(bare.flow.id == first.id)
        #expect(!bare.isNew)
        guard case .conflict = await house.failure("browser", { $0.oauthProvider = "apple" })
        else { throw Unexpected() }
        #expect(house.project.count("GET /authorize") == 1)
    }

    @Test func `at an organization asks for the page itself`() async throws {
        let house = try await SupabaseHouse()
        let flow = try #require(try await house.begin("sso") { $0.domain = "Example.org" })
        let asked = try #require(house.project.last("POST /sso"))
        #expect(asked.body["domain"] == "example.org")
        #expect(asked.body["redirect_to"]?.string == flow.redirectURI)
        #expect(asked.body["skip_http_redirect"] == true)
        let callback = try house.project.consent(flow.authorizationURL)
        #expect(await house.broker.receive(callback) == .completed(flow: flow.id))
        #expect(await house.failure("sso") { _ in } != nil)
        let both = await house.failure("sso") { fields in
            fields.domain = "example.org"
            fields.providerID = "00000000-0000-4000-8000-000000000001"
        }
        #expect(both != nil)
        #expect(house.doors.opened == house.doors.closed.count)
    }

    @Test func `that ends as somebody else fails, and the held session stays`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let before = try await house.held
        guard case .failed(let id, .conflict) = try await house.walk(as: "bob@example.org") else { throw Unexpected() }
        #expect(try await house.held == before)
        guard case .failed(.conflict) = try await house.broker.flow(id).status else { throw Unexpected() }
    }

    @Test func `that is cancelled while its code is exchanged leaves nobody signed in`() async throws {
        let house = try await SupabaseHouse()
        let flow = try #require(try await house.begin("browser"))
        let callback = try house.project.consent(flow.authorizationURL)
        house.project.hold(FakeSupabase.exchange)
        let receiving = Task { await house.broker.receive(callback) }
        #expect(await house.project.arrived(FakeSupabase.exchange))
        #expect(try await house.broker.cancel(flow.id, isForAll: true).status == .cancelled)
        house.project.release(FakeSupabase.exchange)
        _ = await receiving.value
        #expect(try await house.broker.flow(flow.id).status == .cancelled)
        #expect(try await house.view.state == .unauthenticated)
    }

    @Test(arguments: [FakeProvider.Turn.fail(.unreachable(host: "h", reason: "gone")), .status(503)])
    func `whose exchange meets a passing fault sends the code once more`(fault: FakeProvider.Turn) async throws {
        let house = try await SupabaseHouse()
        house.project.script(FakeSupabase.exchange, fault)
        _ = try await house.walk()
        #expect(try await house.view.state == .authenticated)
        #expect(house.project.count(FakeSupabase.exchange) == 2)
        // A second fault ends the sign-in.
        house.project.script(FakeSupabase.exchange, fault, fault)
        guard case .failed(_, .provider) = try await house.walk() else { throw Unexpected() }
        #expect(house.project.count(FakeSupabase.exchange) == 4)
    }

    /// The first request has used the code. Without its response the session is lost.
    @Test func `whose response is cut off says so and does not wait for another code`() async throws {
        let house = try await SupabaseHouse()
        house.project.script(FakeSupabase.exchange, .cut(after: "access_token", .malformed(host: "ref.supabase.co")))
        guard case .failed(_, .provider(.invalidResponse)) = try await house.walk() else { throw Unexpected() }
        #expect(house.project.count(FakeSupabase.exchange) == 2)
    }

    @Test func `whose code is too old says so`() async throws {
        let house = try await SupabaseHouse()
        var patient = house.request("browser")
        patient.timeout = .seconds(3_600)
        let flow = try #require(try await house.broker.begin(SupabaseHouse.name, patient).flow)
        let callback = try house.project.consent(flow.authorizationURL)
        house.clock.advance(by: 301)
        guard case .failed(_, .problem(let problem)) = await house.broker.receive(callback) else { throw Unexpected() }
        #expect(problem.code == "flow_expired")
    }

    @Test func `by code ends with the right one, whatever was typed before`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await otp(house)
        #expect(flow.waitingFor == .code)
        #expect(flow.authorizationURL.isEmpty && flow.redirectURI.isEmpty)
        #expect(flow.resendAfter?.seconds == house.clock.now + 60)
        #expect(flow.expiresAt.seconds == house.clock.now + 3_600)
        #expect(house.doors.opened == 0)
        let asked = try #require(house.project.last("POST /otp"))
        #expect(asked.body["code_challenge"] == nil)
        #expect(asked.query.isEmpty)

        guard case .problem(let wrong) = await verify(house, flow, Secret("000000")) else { throw Unexpected() }
        #expect(wrong.code == "invalid_credentials")
        #expect(wrong.message == "wrong_code")
        for text in ["12345", "12345678901", "12a456", " "] {
            #expect(await verify(house, flow, Secret(text)) != nil)
        }
        #expect(house.project.count("POST /verify") == 1)
        #expect(try await house.broker.flow(flow.id).status == .pending)

        let typed = code(house).revealed()
        // People are shown codes in groups.
        let grouped = Secret(" \(typed.prefix(3)) \(typed.suffix(3))\n")
        #expect(try await house.broker.verify(flow.id, code: grouped).status == .completed)
        #expect(try await house.view.state == .authenticated)
        #expect(await verify(house, flow, grouped) == .flowEnded)
        #expect(await verify(house, try await otp(house, "magic_link"), Secret("000000")) != nil)
    }

    @Test func `by code does not end for a network that is away`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await otp(house)
        house.project.script("POST /verify", .fail(.unreachable(host: "h", reason: "r")), .status(503))
        let typed = code(house)
        for _ in 0..<2 { #expect(await verify(house, flow, typed)?.isTransient == true) }
        #expect(try await house.broker.verify(flow.id, code: typed).status == .completed)
    }

    @Test func `takes the hash of a link in place of a code, and not both`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await otp(house)
        let hash = Secret("hash-\(code(house).revealed())")
        for (code, hash) in [(nil, nil), (code(house), hash)] as [(Secret?, Secret?)] {
            #expect(
                await error {
                    try await house.broker.verify(flow.id, code: code, tokenHash: hash)
                } != nil)
        }
        #expect(house.project.count("POST /verify") == 0)
        #expect(try await house.broker.verify(flow.id, tokenHash: hash).status == .completed)
    }

    @Test func `by a phone's code has the number with its plus sign`() async throws {
        let house = try await SupabaseHouse()
        let flow = try #require(
            try await house.begin("otp") { fields in
                fields.phone = "+49 151 12345678"
                fields.channel = "whatsapp"
            })
        #expect(house.project.last("POST /otp")?.body["phone"] == "4915112345678")
        #expect(house.project.last("POST /otp")?.body["channel"] == "whatsapp")
        let typed = code(house, "4915112345678")
        #expect(try await house.broker.verify(flow.id, code: typed).status == .completed)
        #expect(house.project.last("POST /verify")?.body["type"] == "sms")
        #expect(try await house.view.user?["phone"] == "+4915112345678")
        guard
            case .invalid(field: "channel", _) = await house.failure(
                "otp",
                { fields in
                    fields.phone = "+4915112345678"
                    fields.channel = "pigeon"
                })
        else { throw Unexpected() }
    }

    @Test func `by code for nobody makes no user where none is wanted`() async throws {
        let house = try await SupabaseHouse()
        let problem = await house.problem("otp") { fields in
            fields.email = "nobody@example.org"
            fields.createsUser = false
        }
        #expect(problem?.code == "user_not_found")
        #expect(await house.broker.flows().isEmpty)
    }

    @Test func `by a mail's link ends on loopback, or by its code`() async throws {
        for isByLink in [true, false] {
            let house = try await SupabaseHouse()
            let flow = try await otp(house, "magic_link")
            #expect(flow.redirectURI.hasPrefix("http://127.0.0.1:4711/callback/work/"))
            #expect(house.project.last("POST /otp")?.query["redirect_to"] == flow.redirectURI)
            if isByLink {
                #expect(await house.broker.receive(house.project.click()) == .completed(flow: flow.id))
            } else {
                #expect(try await house.broker.verify(flow.id, code: code(house)).status == .completed)
            }
            #expect(house.doors.closed == [flow.redirectURI])
            #expect(try await house.view.state == .authenticated)
        }
    }

    @Test func `that waits for a browser takes no code`() async throws {
        let house = try await SupabaseHouse()
        let flow = try #require(try await house.begin("browser"))
        guard case .conflict = await verify(house, flow, Secret("123456")) else { throw Unexpected() }
        #expect(
            await error { try await house.broker.verify("x", code: Secret("123456")) }
                == .flowNotFound)
        guard case .conflict = await error({ try await house.broker.resend(flow.id) })
        else { throw Unexpected() }
    }
}
