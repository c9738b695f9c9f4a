import OAuth
import RingbackBase
import SessionVault
import Synchronization

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

final class RegistrationServer: HTTPClient {
    static let issuer = "https://id.example"
    static let metadata: JSON = [
        "issuer": .string(issuer), "authorization_endpoint": "https://id.example/authorize",
        "token_endpoint": "https://id.example/token", "jwks_uri": "https://id.example/keys",
        "registration_endpoint": "https://id.example/register",
    ]
    static let honest = """
        {"client_id":"c1","client_secret":"hush-hush-hush","token_endpoint_auth_method":"client_secret_basic",
        "registration_access_token":"reg-token-1","registration_client_uri":"https://id.example/register/c1"}
        """

    struct Answer: Sendable {
        var status = 201
        var body = RegistrationServer.honest
        var failure: HTTPClientError?
        var isTruncated = false
    }

    private struct State {
        var metadata = RegistrationServer.metadata
        var registration = Answer()
        var deletion = Answer(status: 204, body: "")
        var requests: [HTTPRequest] = []
        var gate: Promise<Void>?
        var refusedScope: String?
    }
    private let state = Mutex(State())

    func describe(_ name: String, _ value: JSON?) {
        state.withLock { state in
            var object = state.metadata.object ?? JSONObject()
            object[name] = value
            state.metadata = .object(object)
        }
    }
    func register(_ answer: Answer) { state.withLock { $0.registration = answer } }
    func delete(_ answer: Answer) { state.withLock { $0.deletion = answer } }
    func refuses(scope: String) { state.withLock { $0.refusedScope = scope } }
    func hold() { state.withLock { $0.gate = Promise() } }
    func release() { state.withLock { $0.gate }?.fulfil(()) }

    var requests: [HTTPRequest] { state.withLock { $0.requests } }
    var registrations: [HTTPRequest] { requests.filter { $0.method == "POST" } }
    var deletions: [HTTPRequest] { requests.filter { $0.method == "DELETE" } }

    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        let (answer, gate) = state.withLock { state in
            state.requests.append(request)
            let answer: Answer =
                switch request.method {
                case "POST" where state.refusedScope.map { request.body?.revealed().contains($0) == true } == true:
                    Answer(status: 400, body: #"{"error":"invalid_client_metadata"}"#)
                case "POST": state.registration
                case "DELETE": state.deletion
                default: Answer(status: 200, body: state.metadata.text)
                }
            return (answer, request.method == "POST" ? state.gate : nil)
        }
        if let gate { _ = await gate.wait() }
        if let failure = answer.failure { throw failure }
        return HTTPResponse(
            status: answer.status, fields: HTTPFields([("Content-Type", "application/json")]),
            body: Secret(answer.body), truncation: answer.isTruncated ? .malformed(host: "id.example") : nil)
    }
}

struct Office {
    let server = RegistrationServer()
    let vault = RecordingVault()
    let facts = Facts()
    let work = Work()
    let clock = TestClock()
    let broker: Broker

    init(_ accounts: [Account] = []) async {
        let doors = Doors()
        broker = Broker(
            vault: vault, http: server, callbackReceiver: doors.callbackReceiver, work: work, clock: clock.clock,
            record: facts.record)
        await broker.configure(accounts)
        await broker.vaultSettled()
    }

    var order: RegistrationOrder {
        RegistrationOrder(account: House.name, issuer: RegistrationServer.issuer, scopes: ["openid"])
    }

    func register() async throws(BrokerError) -> RegistrationView {
        try await Registrations(of: broker).register(order)
    }

    func kept(_ clientID: String?) async -> RegistrationRecord? {
        let slot = RegistrationRecord.slot(House.name, issuer: RegistrationServer.issuer, clientID: clientID)
        return (try? await vault.load(slot)).flatMap { $0 }.flatMap { RegistrationRecord(decoding: $0.text) }
    }

    func secret(clientID: String = "c1", issuer: String = RegistrationServer.issuer) async throws(BrokerError) -> Secret
    {
        let account = House.account(issuer: issuer, clientID: clientID)
        return try await Account.SecretSource.registered(for: account, in: vault, clock: TestClock().clock).fetch()
    }

    var words: [String] { facts.names.filter { $0.lowercased().contains("registr") || $0.contains("Registered") } }
}
