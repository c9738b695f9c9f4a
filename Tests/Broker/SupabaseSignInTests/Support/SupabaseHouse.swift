import RingbackBase
import SessionVault
import SupabaseAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn
@testable import SupabaseSignIn

struct SupabaseHouse: Sendable {
    let clock = TestClock()
    let vault = RecordingVault()
    let work = Work()
    let doors = Doors()
    let facts = Facts()
    let project: FakeSupabase
    let broker: Broker

    static let name = House.named("work")
    static let alice = "alice@example.org"
    static let secret = Secret("correct horse")

    init(_ change: (inout Account, inout SupabaseAccount) -> Void = { _, _ in }) async throws {
        project = try FakeSupabase(clock: clock)
        broker = SupabaseHouse.broker(vault, project, doors, work, clock, facts)
        try await configure(try SupabaseHouse.account(change))
        project.behave { _ = $0.addUser(email: SupabaseHouse.alice, password: SupabaseHouse.secret.revealed()) }
    }

    private static func broker(
        _ vault: RecordingVault, _ project: FakeSupabase, _ doors: Doors, _ work: Work, _ clock: TestClock,
        _ facts: Facts
    ) -> Broker {
        let callbackReceiver = CallbackReceiver(
            open: { template, name throws(BrokerError) in
                try await doors.callbackReceiver.open(template?.replacing("{port}", with: "4711"), name)
            }, openSite: doors.callbackReceiver.openSite, close: doors.callbackReceiver.close,
            listeners: doors.callbackReceiver.listeners)
        return Broker(
            vault: vault, http: project, callbackReceiver: callbackReceiver, work: work, clock: clock.clock,
            record: facts.record)
    }

    func rebirth(work: Work = Work()) async throws -> Broker {
        let broker = SupabaseHouse.broker(vault, project, doors, work, clock, facts)
        await broker.configure([try await self.broker.sessionManager.account(SupabaseHouse.name)])
        broker.stopListening(try await broker.events(of: nil, after: nil).live)
        return broker
    }

    static func account(
        at url: String = "https://ref.supabase.co",
        _ change: (inout Account, inout SupabaseAccount) -> Void = { _, _ in }
    ) throws -> Account {
        var rules = SupabaseAccount(
            project: try SupabaseProject(parsing: url, apiKey: Secret("sb_publishable_x")), oauthProvider: "google",
            functions: ["touch"], edgeFunctions: ["send-invoice"])
        var account = Account(
            name: SupabaseHouse.name, provider: "supabase", source: "test", kind: rules, clientID: "",
            redirectURI: "http://127.0.0.1:{port}/callback/work")
        account.flowTimeout = .seconds(300)
        change(&account, &rules)
        account.kind = rules
        return account
    }

    static func signedIn(isPersistent: Bool = true) async throws -> SupabaseHouse {
        let house = try await SupabaseHouse()
        try await house.signIn(isPersistent: isPersistent)
        return house
    }

    static func withScheme(isKeyless: Bool = false) async throws -> SupabaseHouse {
        try await SupabaseHouse { account, rules in
            account.redirectURI = "swisscoin://auth-callback"
            rules.isKeyless = isKeyless
        }
    }

    func configure(_ accounts: Account...) async throws {
        await broker.configure(accounts)
        broker.stopListening(try await broker.events(of: nil, after: nil).live)
    }

    func request(_ method: String, _ fill: (inout SupabaseSignInFields) -> Void = { _ in }) -> SignInRequest {
        var request = SignInRequest(method: SignInMethod(rawValue: method))
        var fields = SupabaseSignInFields()
        fill(&fields)
        request.project = fields
        return request
    }

    @discardableResult
    func begin(
        _ method: String, switching: Bool = false, _ fill: (inout SupabaseSignInFields) -> Void = { _ in }
    ) async throws(BrokerError) -> FlowView? {
        var request = request(method, fill)
        request.switchesSubject = switching
        return try await broker.begin(SupabaseHouse.name, request).flow
    }

    @discardableResult
    func signIn(
        email: String = SupabaseHouse.alice, isPersistent: Bool = true, switching: Bool = false
    ) async throws(BrokerError) -> FlowView? {
        try await begin("password", switching: switching) { fields in
            fields.email = email
            fields.password = SupabaseHouse.secret
            fields.isPersistent = isPersistent
        }
    }

    @discardableResult
    func walk(
        as email: String = SupabaseHouse.alice, _ fill: (inout SupabaseSignInFields) -> Void = { _ in }
    ) async throws -> CallbackVerdict {
        let flow = try #require(try await begin("browser", fill))
        return await broker.receive(try project.consent(flow.authorizationURL, as: email))
    }

    func failure(_ method: String, _ fill: (inout SupabaseSignInFields) -> Void) async -> BrokerError? {
        await error { try await begin(method, fill) }
    }

    func problem(_ method: String, _ fill: (inout SupabaseSignInFields) -> Void) async -> ProviderProblem? {
        if case .problem(let problem) = await failure(method, fill) { problem } else { nil }
    }

    var view: AccountView { get async throws { try await broker.account(SupabaseHouse.name) } }
    var held: Session? { get async throws { try await broker.sessionManager.readable(SupabaseHouse.name) } }

    func token(minValid: Int? = nil) async throws(BrokerError) -> String {
        var query = SessionQuery()
        query.minValid = minValid.map { .seconds($0) }
        return try await broker.session(SupabaseHouse.name, query).token.value.revealed()
    }

    func refresh() async -> BrokerError? {
        await error { try await broker.refresh(SupabaseHouse.name, isForced: true) }
    }

    var refreshTokens: [String] { get async throws { try await held?.refreshTokens.map { $0.revealed() } ?? [] } }
    var session: String { project.sessions.first ?? "" }

    /// Adds a verified authenticator by the way that an app takes; the session is `aal2` then.
    @discardableResult
    func addFactor() async throws -> String {
        let factor = try await broker.supabase.enroll(SupabaseHouse.name, NewFactor(.totp(issuer: nil), name: "app"))
        try await prove(factor.id)
        return factor.id
    }

    @discardableResult
    func prove(_ factor: String, code: String = "123456") async throws(BrokerError) -> AccountView {
        let challenge = try await broker.supabase.challenge(SupabaseHouse.name, factor: factor)
        return try await broker.supabase.verifyFactor(
            SupabaseHouse.name, factor: factor, challenge: challenge.id, code: Secret(code))
    }

    func events(_ body: () async throws -> Void) async throws -> [BrokerEvent.Kind] {
        let live = try await broker.events(of: nil, after: nil).live
        defer { broker.stopListening(live) }
        try await body()
        guard case .events(let events) = await live.next(within: .seconds(5)) else { return [] }
        return events.map(\.event.kind)
    }
}

extension BrokerError {
    var word: String? {
        if case .problem(let problem) = self { problem.providerCode } else { nil }
    }
}
