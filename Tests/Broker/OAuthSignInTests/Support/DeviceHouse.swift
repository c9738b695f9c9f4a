import OAuth
import RingbackBase
import Synchronization

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

/// A provider whose people sign in on another device. It says what it is scripted to say, one line for a question, and
/// remembers when it was asked and when it answered.
final class DeviceServer: HTTPClient {
    enum Answer: Sendable {
        case pending
        case slowDown
        case slowDownTo(Int)
        case refusal(String, Int = 400)
        case status(Int, retryAfter: Int? = nil)
        case silence
        case yes(String = "alice")
        case body(Int, String)
    }

    struct Question: Sendable {
        /// Milliseconds since boot.
        let at: Int
        let answeredAt: Int
        let form: [String: String]
        let hasCredentials: Bool
        /// The value of the field `DPoP`.
        let proof: String?
    }

    private struct State {
        var answers: [Answer] = []
        var questions: [Question] = []
        var arrivals = 0
        var latency = 0
        var changes: [String: JSON?] = [:]
        var asked: [[String: String]] = []
        var firstAnsweredAt = 0
        var gate: Promise<Void>?
        var subject = "alice"
    }

    /// Answers everything else.
    let provider: FakeProvider
    private let clock: TestClock
    private let state = Mutex(State())
    private let mint: TokenMint

    init(clock: TestClock, offersDevices: Bool = true) throws {
        self.clock = clock
        provider = try FakeProvider(clock: clock)
        let mint = try TokenMint()
        self.mint = mint
        provider.behave { manners in
            manners.mint = mint
            if offersDevices {
                manners.metadata["device_authorization_endpoint"] = "https://id.example/device_authorization"
            }
        }
    }

    func script(_ answers: [Answer]) { state.withLock { $0.answers += answers } }
    func takeItsTime(_ milliseconds: Int) { state.withLock { $0.latency = milliseconds } }
    func say(_ changes: [String: JSON?]) { state.withLock { $0.changes = changes } }
    func hold() { state.withLock { $0.gate = Promise() } }
    func release() { state.withLock { $0.gate.take() }?.fulfil(()) }

    var questions: [Question] { state.withLock { $0.questions } }
    var arrivals: Int { state.withLock { $0.arrivals } }
    var asked: [[String: String]] { state.withLock { $0.asked } }
    /// Milliseconds between each answer, the codes' included, and the question after it.
    var pauses: [Int] {
        state.withLock { state in
            let answered = [state.firstAnsweredAt] + state.questions.map(\.answeredAt)
            return zip(answered, state.questions).map { $1.at - $0 }
        }
    }

    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        let pairs = (try? FormEncoding.parse(request.body?.revealedBytes() ?? [])) ?? []
        let form = Dictionary(pairs.map { ($0.name, $0.value) }) { $1 }
        if request.url.hasSuffix("/device_authorization") { return codes(form) }
        if request.url.hasSuffix("/userinfo") {
            return response(200, ["sub": .string(state.withLock { $0.subject })])
        }
        guard form["grant_type"] == DeviceAuthorization.grantType else { return try await provider.answer(request) }
        let at = clock.boot
        let gate = state.withLock { state in
            state.arrivals += 1
            return state.gate
        }
        if let gate { await gate.settle() }
        clock.advance(milliseconds: state.withLock { $0.latency })
        let question = Question(
            at: at, answeredAt: clock.boot, form: form, hasCredentials: request.authorization != nil,
            proof: request.secretFields.first { $0.name == "DPoP" }?.value.revealed())
        let answer = state.withLock { state -> Answer in
            state.questions.append(question)
            return state.answers.isEmpty ? .pending : state.answers.removeFirst()
        }
        return try reply(answer, form)
    }

    private func codes(_ form: [String: String]) -> HTTPResponse {
        let (serial, changes) = state.withLock { state in
            state.asked.append(form)
            state.firstAnsweredAt = clock.boot
            return (state.asked.count, state.changes)
        }
        var answer: JSON = [
            "device_code": .string("device-\(serial)"), "user_code": "WDJB-MJHT",
            "verification_uri": "https://id.example/device",
            "verification_uri_complete": "https://id.example/device?user_code=WDJB-MJHT", "expires_in": 900,
            "interval": 5,
        ]
        for (name, value) in changes { answer = answer.setting(name, value) }
        return response(200, answer)
    }

    private func reply(_ answer: Answer, _ form: [String: String]) throws(HTTPClientError) -> HTTPResponse {
        switch answer {
        case .pending: return response(400, ["error": "authorization_pending"])
        case .slowDown: return response(400, ["error": "slow_down"])
        case .slowDownTo(let seconds): return response(400, ["error": "slow_down", "interval": .integer(seconds)])
        case .refusal(let code, let status): return response(status, ["error": .string(code)])
        case .status(let status, let retryAfter):
            let fields = retryAfter.map { [("Retry-After", String($0))] } ?? []
            return HTTPResponse(status: status, fields: HTTPFields(fields), body: Secret(""))
        case .body(let status, let text): return HTTPResponse(status: status, body: Secret(text))
        case .silence: throw .timedOut(host: "id.example")
        case .yes(let subject):
            state.withLock { $0.subject = subject }
            let claims = provider.claims(of: subject)
            return response(
                200,
                [
                    "access_token": .string("access-of-\(subject)"), "token_type": "Bearer", "expires_in": 3_600,
                    "refresh_token": .string("refresh-of-\(subject)"),
                    "id_token": (try? mint.token(claims)).map { .string($0) } ?? .null,
                ])
        }
    }

    private func response(_ status: Int, _ body: JSON) -> HTTPResponse {
        HTTPResponse(
            status: status, fields: HTTPFields([("Content-Type", "application/json")]),
            body: Secret(bytes: body.serialized()))
    }
}

struct DeviceHouse: Sendable {
    let clock = TestClock()
    let vault = RecordingVault()
    let work = Work()
    let facts = Facts()
    let server: DeviceServer
    let broker: Broker

    init(offersDevices: Bool = true, _ change: (inout Account) -> Void = { _ in }) async throws {
        server = try DeviceServer(clock: clock, offersDevices: offersDevices)
        broker = Broker(
            vault: vault, http: server, callbackReceiver: Doors().callbackReceiver, work: work, clock: clock.clock,
            record: facts.record)
        var account = House.account()
        change(&account)
        await broker.configure([account])
        broker.stopListening(try await broker.events(of: nil, after: nil).live)
    }

    func begin(timeout: Int? = nil, switching: Bool = false) async throws(BrokerError) -> FlowView {
        let request = SignInRequest(
            method: OAuthMethod.device.method, timeout: timeout.map { .seconds($0) }, switchesSubject: switching)
        return try await broker.signIn(House.name, request).flow
    }

    func status(_ id: String) async throws -> FlowView.Status { try await broker.flow(id).status }

    /// Both who sleep for a pending flow do: who asks, and who watches the deadline.
    func settles(_ id: String) async -> Bool {
        await eventually {
            if await !broker.flowRegistry.isPending(id) { return true }
            return clock.wakes.count == 2
        }
    }

    /// Lets time pass to the next wake. False if nobody sleeps.
    func wakeNext() async -> Bool {
        guard let next = clock.wakes.min() else { return false }
        clock.advance(milliseconds: max(next - clock.boot, 0))
        // Whoever was woken goes first.
        await Task.yield()
        return true
    }

    /// Lets time pass from one wake to the next until so many questions have been asked, or the flow is over.
    func live(_ id: String, questions count: Int = .max) async {
        while await settles(id), await broker.flowRegistry.isPending(id), server.questions.count < count {
            guard await wakeNext() else { return }
        }
        // Who watched an ended flow looks once more.
        if await !broker.flowRegistry.isPending(id) {
            _ = await eventually {
                clock.advance(by: 30)
                return clock.wakes.isEmpty
            }
        }
    }
}
