import Cryptography
import RingbackBase
import SupabaseAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

extension FlowRegistry {
    /// How many wait for a sign-in that is being begun.
    fileprivate func interest(inStartOf name: AccountName) -> Int { starts[name]?.interest ?? 0 }
}

@Suite(.timeLimit(.minutes(1))) struct `Signing in at a project` {
    private let name = SupabaseHouse.name

    @Test func `with a password is done at once`() async throws {
        let house = try await SupabaseHouse()
        let events = try await house.events {
            // Trimmed and in small letters, as the server compares them.
            try await house.signIn(email: "  Alice@Example.ORG ")
        }
        #expect(events == [.signedIn])
        let view = try await house.view
        #expect(view.state == .authenticated)
        #expect(view.subject == view.user?["id"]?.string)
        #expect(view.user?["email"]?.string == SupabaseHouse.alice)
        #expect(view.assurance == "aal1")
        #expect(view.expiresAt?.seconds == house.clock.now + 3_600)
        #expect(await house.vault.stores == ["store \(house.session)-0"])
        let asked = try #require(house.project.last("POST /token password"))
        #expect(asked.fields["apikey"] == "sb_publishable_x")
        #expect(asked.fields["X-Supabase-Api-Version"] == "2024-01-01")
        #expect(asked.bearer == nil)
        #expect(house.doors.opened == 0)
        #expect(await house.broker.flows().isEmpty)
    }

    @Test func `with a wrong password changes nothing and says so`() async throws {
        let house = try await SupabaseHouse()
        let problem = await house.problem("password") { fields in
            fields.email = SupabaseHouse.alice
            fields.password = Secret("wrong")
        }
        #expect(problem?.code == "invalid_credentials")
        #expect(try await house.view.state == .unauthenticated)
        // The place is free again.
        try await house.signIn()
    }

    @Test(arguments: ["not an address", "a@", "", "a b@example.org"])
    func `with an address that is none asks nobody`(email: String) async throws {
        let house = try await SupabaseHouse()
        for method in ["password", "sign_up", "otp", "magic_link"] {
            let failure = await house.failure(method) { fields in
                fields.email = email
                fields.password = SupabaseHouse.secret
            }
            guard case .invalid(field: "email", _) = failure else { throw Unexpected() }
        }
        #expect(house.project.requests.isEmpty)
        #expect(house.doors.opened == house.doors.closed.count)
    }

    @Test func `with both an address and a number, or neither, asks nobody`() async throws {
        let house = try await SupabaseHouse()
        for (email, phone) in [(nil, nil), (SupabaseHouse.alice, "+4915112345678")] as [(String?, String?)] {
            let failure = await house.failure("password") { fields in
                fields.email = email
                fields.phone = phone
                fields.password = SupabaseHouse.secret
            }
            guard case .invalid = failure else { throw Unexpected() }
        }
        #expect(await house.failure("password") { $0.email = SupabaseHouse.alice } != nil)
        #expect(house.project.requests.isEmpty)
    }

    @Test func `as nobody in particular makes a user who can be told from others`() async throws {
        let house = try await SupabaseHouse()
        try await house.begin("anonymous") { $0.data = JSONObject([.init("theme", "dark")]) }
        #expect(try await house.view.user?["is_anonymous"] == true)
        #expect(house.project.last("POST /signup")?.body["data"]?["theme"] == "dark")
        // An anonymous user has no second factors.
        let failure = await error {
            try await house.broker.supabase.enroll(name, NewFactor(.totp(issuer: nil)))
        }
        guard case .problem(let problem) = failure else { throw Unexpected() }
        #expect(problem.code == "state_conflict")
        #expect(try await house.view.state == .authenticated)
    }

    private func idToken(_ email: String = SupabaseHouse.alice, nonce: String?) -> Secret {
        Secret("\(email);\(nonce.map { Digest.hex(Digest.sha256($0)) } ?? "")")
    }

    @Test func `with an ID token sends the raw nonce`() async throws {
        let house = try await SupabaseHouse()
        try await house.begin("id_token") { fields in
            fields.oauthProvider = "apple"
            fields.idToken = idToken(nonce: "n-0S6")
            fields.nonce = Secret("n-0S6")
        }
        #expect(try await house.view.user?["email"]?.string == SupabaseHouse.alice)
        #expect(house.project.last("POST /token id_token")?.body["nonce"] == "n-0S6")
    }

    @Test func `with an ID token without a nonce is refused unless the account allows it`() async throws {
        let house = try await SupabaseHouse()
        let fill: (inout SupabaseSignInFields) -> Void = { fields in
            fields.oauthProvider = "google"
            fields.idToken = idToken(nonce: nil)
        }
        guard case .invalid(field: "nonce", _) = await house.failure("id_token", fill) else { throw Unexpected() }
        #expect(house.project.requests.isEmpty)
        try await house.configure(try SupabaseHouse.account { $1.allowsMissingNonce = true })
        try await house.begin("id_token", fill)
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `with an ID token of another sign-in is refused in the third shape of errors`() async throws {
        let house = try await SupabaseHouse()
        let problem = await house.problem("id_token") { fields in
            fields.oauthProvider = "google"
            fields.idToken = idToken(nonce: "theirs")
            fields.nonce = Secret("ours")
        }
        #expect(problem?.code == "invalid_credentials")
        #expect(problem?.providerCode == "invalid nonce")
        #expect(try await house.view.state == .unauthenticated)
    }

    private func signUp(
        _ house: SupabaseHouse, _ email: String = "new@example.org"
    ) async throws(BrokerError) -> FlowView? {
        try await house.begin("sign_up") { fields in
            fields.email = email
            fields.password = SupabaseHouse.secret
        }
    }

    @Test func `for the first time is done where the project confirms by itself`() async throws {
        let house = try await SupabaseHouse()
        #expect(try await signUp(house) == nil)
        #expect(try await house.view.user?["email"] == "new@example.org")
        // Nobody waits for a link any more.
        #expect(house.doors.opened == house.doors.closed.count)
        guard case .problem(let problem) = await error({ try await signUp(house) })
        else { throw Unexpected() }
        #expect(problem.code == "email_already_in_use")
    }

    @Test func `for the first time waits for the confirmation, by code or by link`() async throws {
        for isByLink in [true, false] {
            let house = try await SupabaseHouse()
            house.project.behave { $0.confirmsItself = false }
            let flow = try #require(try await signUp(house))
            #expect(flow.waitingFor == .emailConfirmation)
            #expect(flow.status == .pending)
            #expect(try await house.view.state == .authenticating)
            if isByLink {
                let verdict = await house.broker.receive(house.project.click("new@example.org"))
                #expect(verdict == .completed(flow: flow.id))
            } else {
                let code = Secret(house.project.code(for: "new@example.org"))
                #expect(try await house.broker.verify(flow.id, code: code).status == .completed)
            }
            #expect(try await house.view.state == .authenticated)
            #expect(house.doors.opened == house.doors.closed.count)
        }
    }

    @Test func `is told of when it begins, and once, whether a flow follows or not`() async throws {
        let steps = ["vaultOpened", "signInStarted", "sessionOpened", "signInEnded"]
        let direct = try await SupabaseHouse()
        try await direct.signIn()
        #expect(direct.facts.names == steps)
        let house = try await SupabaseHouse()
        house.project.behave { $0.confirmsItself = false }
        let flow = try #require(try await signUp(house))
        #expect(house.facts.names == Array(steps.prefix(2)))
        let code = Secret(house.project.code(for: "new@example.org"))
        _ = try await house.broker.verify(flow.id, code: code)
        #expect(house.facts.names == steps)
    }

    @Test func `with an address that is taken is told, though the server shows a stranger`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.confirmsItself = false }
        let failure = await error { try await signUp(house, SupabaseHouse.alice) }
        #expect(failure == .problem(ProviderProblem(.addressTaken)))
        #expect(await house.broker.flows().isEmpty)
        #expect(house.doors.opened == house.doors.closed.count)
        #expect(try await house.view.state == .unauthenticated)
    }

    @Test func `with a weak password lists what is wrong with it, the server's reasons or ours`() async throws {
        let house = try await SupabaseHouse()
        for (password, requests) in [("short", 0), ("seven77", 1)] {
            let problem = await house.problem("sign_up") { fields in
                fields.email = "new@example.org"
                fields.password = Secret(password)
            }
            #expect(problem?.code == "weak_password")
            #expect(problem?.weaknesses == ["length"])
            #expect(house.project.count("POST /signup") == requests)
        }
        #expect(house.doors.opened == house.doors.closed.count)
    }

    @Test func `by a way that belongs to others is refused`() async throws {
        let house = try await SupabaseHouse()
        for method in ["device", "token", ""] {
            guard case .methodUnsupported = await house.failure(method, { _ in }) else { throw Unexpected() }
        }
        await house.broker.configure([House.account()])
        guard case .methodUnsupported = await house.failure("password", { _ in }) else { throw Unexpected() }
    }

    @Test func `twice at the same time is one sign-in`() async throws {
        let house = try await SupabaseHouse()
        house.project.hold("POST /token password")
        let both = [Task { try await house.signIn() }, Task { try await house.signIn() }]
        #expect(await house.project.arrived("POST /token password"))
        let other = await error { try await house.begin("anonymous") }
        guard case .conflict = other else { throw Unexpected() }
        // Both are there before the first is done: who comes later signs in anew.
        #expect(await eventually { await house.broker.flowRegistry.interest(inStartOf: name) == 2 })
        house.project.release("POST /token password")
        for task in both { #expect(try await task.value == nil) }
        #expect(house.project.count("POST /token password") == 1)
    }
}
