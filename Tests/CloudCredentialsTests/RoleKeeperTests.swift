import Adapters
import BrokerCore
import CloudCredentials
import Encodings
import HTTPMessages
import Secrets
import Synchronization
import Testing

@testable import BrokerTestSupport

/// A token service beside the provider.
private final class TokenService: HTTPClient {
    enum Turn: Sendable {
        /// Credentials that are valid for so many seconds.
        case credentials(Int)
        case status(Int, String)
        case silence
    }

    private let provider: FakeProvider
    private let clock: TestClock
    private let state = Mutex<(turns: [Turn], requests: [HTTPRequest])>(([], []))

    static let url = "https://sts.example/"

    init(_ provider: FakeProvider, _ clock: TestClock) {
        self.provider = provider
        self.clock = clock
    }

    var requests: [HTTPRequest] { state.withLock { $0.requests } }
    func plan(_ turns: Turn...) { state.withLock { $0.turns = turns } }

    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        guard request.url == TokenService.url else { return try await provider.answer(request) }
        let (turn, number) = state.withLock { state in
            state.requests.append(request)
            return (state.turns.isEmpty ? .silence : state.turns.removeFirst(), state.requests.count)
        }
        switch turn {
        case .credentials(let seconds):
            let values = [
                ("AccessKeyId", "ASIA\(number)"), ("SecretAccessKey", "s"), ("SessionToken", "t"),
                ("Expiration", Timestamp.text(of: clock.now + seconds)),
            ].map { "<\($0.0)>\($0.1)</\($0.0)>" }.joined()
            let text =
                "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\(values)"
                + "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
            return HTTPResponse(status: 200, body: Secret(text))
        case .status(let status, let body): return HTTPResponse(status: status, body: Secret(body))
        case .silence: throw .unreachable(host: "sts.example", reason: "no such host")
        }
    }
}

/// A keeper with a broker around it, where alice is signed in.
private struct Desk {
    let clock = TestClock()
    let service: TokenService
    let keeper: RoleKeeper
    let broker: Broker

    init() async throws {
        let provider = try FakeProvider(clock: clock)
        service = TokenService(provider, clock)
        broker = Broker(
            vault: RecordingVault(), http: service, callbackReceiver: Doors().callbackReceiver, work: Work(),
            clock: clock.clock)
        keeper = RoleKeeper(broker)
        var account = House.account()
        account.trust = ServerTrust(certificateAuthorities: [1, 2, 3], pinnedPublicKeys: ["sha256//pin"])
        account.headers = [("X-Provider-Key", "k")]
        account.route = .direct
        await broker.configure([account])
        let flow = try await broker.signIn(House.name, SignInRequest()).flow
        _ = await broker.receive(try provider.consent(flow.authorizationURL, as: "alice"))
        keeper.configure([
            AssumedRole(
                account: House.name, service: try WebURL(parsing: TokenService.url),
                exchange: RoleExchange(roleARN: "arn:aws:iam::1:role/work", sessionName: "ada", seconds: 3_600),
                kind: .idToken)
        ])
    }

    func key() async throws -> String { try await keeper.credentials(of: House.name).accessKeyID }
}

private let refusal = "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"

@Suite(.timeLimit(.minutes(1))) struct `Credentials of a role` {
    @Test func `are exchanged again when less than sixteen minutes are left`() async throws {
        let desk = try await Desk()
        desk.service.plan(.credentials(3_600), .credentials(3_600))
        #expect(try await desk.key() == "ASIA1")
        desk.clock.advance(by: 3_600 - 961)
        #expect(try await desk.key() == "ASIA1")
        desk.clock.advance(by: 1)
        #expect(try await desk.key() == "ASIA2")
    }

    @Test func `with a short life are exchanged again after half of it`() async throws {
        let desk = try await Desk()
        desk.service.plan(.credentials(900), .credentials(900))
        #expect(try await desk.key() == "ASIA1")
        desk.clock.advance(by: 449)
        #expect(try await desk.key() == "ASIA1")
        desk.clock.advance(by: 1)
        #expect(try await desk.key() == "ASIA2")
    }

    @Test(arguments: [TokenService.Turn.silence, .status(503, ""), .status(500, "<html></html>")])
    fileprivate func `are given until they expire while the service fails`(turn: TokenService.Turn) async throws {
        let desk = try await Desk()
        desk.service.plan(.credentials(1_800), turn, turn)
        let first = try await desk.keeper.credentials(of: House.name)
        desk.clock.advance(by: 1_799)
        #expect(try await desk.keeper.credentials(of: House.name) == first)
        desk.clock.advance(by: 1)
        await #expect(throws: ExchangeFailure.self) { try await desk.keeper.credentials(of: House.name) }
        #expect(desk.service.requests.count == 3)
    }

    @Test func `are not given any more when the service refuses`() async throws {
        let desk = try await Desk()
        desk.service.plan(.credentials(1_800), .status(403, refusal), .credentials(1_800))
        #expect(try await desk.key() == "ASIA1")
        desk.clock.advance(by: 1_000)
        await #expect(
            throws: ExchangeFailure.service(host: "sts.example", .refused(code: "AccessDenied", message: nil))
        ) { try await desk.keeper.credentials(of: House.name) }
        #expect(try await desk.key() == "ASIA3")
    }

    @Test func `follow a wall clock that is set`() async throws {
        let desk = try await Desk()
        desk.service.plan(.credentials(3_600))
        let first = try await desk.keeper.credentials(of: House.name)
        desk.clock.setWall(by: 7_200)
        #expect(try await desk.keeper.credentials(of: House.name).expiresAt == first.expiresAt + 7_200)
        #expect(desk.service.requests.count == 1)
    }

    @Test func `are asked for with the account's certificates and way, and with nothing that is the provider's`()
        async throws
    {
        let desk = try await Desk()
        desk.service.plan(.credentials(3_600))
        _ = try await desk.key()
        let request = try #require(desk.service.requests.first)
        #expect(request.method == "POST" && request.trust == ServerTrust(certificateAuthorities: [1, 2, 3]))
        #expect(request.route == .direct && request.fields["X-Provider-Key"] == nil && request.authorization == nil)
        #expect(request.fields["Content-Type"] == "application/x-www-form-urlencoded")
    }

    @Test func `of an account without a role, and of no account, are refused with the reason`() async throws {
        let desk = try await Desk()
        desk.keeper.configure([])
        await #expect(throws: ExchangeFailure.noRole(House.name)) {
            try await desk.keeper.credentials(of: House.name)
        }
        await #expect(throws: ExchangeFailure.broker(.accountNotFound("other"))) {
            try await desk.keeper.credentials(of: House.named("other"))
        }
        #expect(desk.service.requests.isEmpty)
    }

    @Test func `are forgotten with each fact that ends or replaces their session`() async throws {
        let desk = try await Desk()
        let facts: [BrokerFact] = [
            .sessionClosed(House.name, subject: nil), .sessionEnded(House.name, subject: nil), .vaultLocked,
            .sessionOpened(House.name, subject: nil, replacing: nil),
        ]
        desk.service.plan(
            .credentials(3_600), .credentials(3_600), .credentials(3_600), .credentials(3_600), .credentials(3_600))
        #expect(try await desk.key() == "ASIA1")
        desk.keeper.note(.refreshSucceeded(House.name))
        desk.keeper.note(.sessionClosed(House.named("other"), subject: nil))
        #expect(try await desk.key() == "ASIA1")
        for (index, fact) in facts.enumerated() {
            desk.keeper.note(fact)
            #expect(try await desk.key() == "ASIA\(index + 2)")
        }
        #expect(desk.service.requests.count == 5)
    }
}
