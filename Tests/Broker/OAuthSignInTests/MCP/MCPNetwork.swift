import OAuth
import RingbackBase
import SessionVault
import Synchronization

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

/// An MCP server, and providers that register clients. It says what a test tells it to, and remembers every request.
final class MCPNetwork: HTTPClient {
    static let server = "https://mcp.example/mcp"

    struct Announced: Sendable {
        var challenge: String? = #"Bearer scope="mcp:read""#
        /// By path; every other path is not found.
        var documents: [String: JSON] = [
            "/.well-known/oauth-protected-resource/mcp": [
                "resource": "https://mcp.example/mcp", "authorization_servers": ["https://id.example"],
                "scopes_supported": ["mcp:read", "mcp:write"],
            ]
        ]
        var peer = PeerPlace.elsewhere
        /// The response to a request without a token: status, type and body; nil for 401.
        var response: (status: Int, type: String, body: String)?
        var tokenStatus = 200
        var tokenChallenge: String?
    }

    private struct State {
        var announced = Announced()
        var requests: [HTTPRequest] = []
        var serial = 0
        var secret: String?
        var secretEnd = 0
        var isManaged = false
        var hidesMetadata = false
        var forgotten: Set<String> = []
        var refusal: (status: Int, body: String) = (401, #"{"error":"invalid_client"}"#)
        var resolutions = 0
    }

    private let providers: [FakeProvider]
    private let state = Mutex(State())

    init(_ providers: [FakeProvider]) {
        self.providers = providers
        for provider in providers {
            provider.behave { manners in
                manners.metadata["code_challenge_methods_supported"] = ["S256"]
                manners.metadata["registration_endpoint"] = .string("\(provider.origin)/register")
                manners.metadata["scopes_supported"] = ["mcp:read", "offline_access"]
                manners.metadata["userinfo_endpoint"] = .some(nil)
            }
        }
    }

    func announce(_ change: @Sendable (inout Announced) -> Void) { state.withLock { change(&$0.announced) } }
    func give(secret: String, expiringAt end: Int = 0) {
        state.withLock { ($0.secret, $0.secretEnd) = (secret, end) }
    }

    func manageClients() { state.withLock { $0.isManaged = true } }
    func hideMetadata() { state.withLock { $0.hidesMetadata = true } }

    func forget(_ clients: Set<String>, saying refusal: (status: Int, body: String)? = nil) {
        state.withLock { state in
            state.forgotten = clients
            if let refusal { state.refusal = refusal }
        }
    }

    var requests: [HTTPRequest] { state.withLock { $0.requests } }
    var urls: [String] { requests.map { "\($0.method) \($0.url)" } }
    func requests(to suffix: String) -> [HTTPRequest] { requests.filter { $0.url.hasSuffix(suffix) } }

    /// Every name resolves to another address each time.
    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        var response = try await respond(to: request)
        response.address = state.withLock { state in
            if let address = request.address { return address }
            state.resolutions += 1
            return "192.0.2.\(state.resolutions)"
        }
        return response
    }

    private func respond(to request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        let announced = state.withLock { state in
            state.requests.append(request)
            return state.announced
        }
        let json = HTTPFields([("Content-Type", "application/json")])
        guard let url = try? WebURL(parsing: request.url) else { throw .refusedURL }
        if url.origin == "https://mcp.example" {
            if url.path == "/mcp" {
                if request.authorization != nil {
                    let fields = announced.tokenChallenge.map { [("WWW-Authenticate", $0)] } ?? []
                    return HTTPResponse(status: announced.tokenStatus, fields: HTTPFields(fields), peer: announced.peer)
                }
                if let response = announced.response {
                    return HTTPResponse(
                        status: response.status, fields: HTTPFields([("Content-Type", response.type)]),
                        body: Secret(response.body), peer: announced.peer)
                }
                let fields = announced.challenge.map { [("WWW-Authenticate", $0)] } ?? []
                return HTTPResponse(status: 401, fields: HTTPFields(fields), peer: announced.peer)
            }
            if let document = announced.documents[url.path] {
                return HTTPResponse(status: 200, fields: json, body: Secret(bytes: document.serialized()))
            }
        }
        guard let provider = providers.first(where: { $0.origin == url.origin }) else {
            return HTTPResponse(status: 404)
        }
        let isHidden = url.path.hasPrefix("/.well-known/oauth-protected-resource") || state.withLock(\.hidesMetadata)
        if isHidden, url.path.hasPrefix("/.well-known/") {
            return HTTPResponse(status: 404)
        }
        if url.path == "/authorize" {
            let pairs = (try? FormEncoding.parse(url.query ?? "")) ?? []
            let id = pairs.first { $0.name == "client_id" }?.value ?? ""
            return HTTPResponse(status: state.withLock { $0.forgotten.contains(id) } ? 400 : 200)
        }
        let form = (try? FormEncoding.parse(request.body?.revealedBytes() ?? [])) ?? []
        if let id = form.first(where: { $0.name == "client_id" })?.value,
            let refusal = state.withLock({ $0.forgotten.contains(id) ? $0.refusal : nil })
        {
            return HTTPResponse(status: refusal.status, fields: json, body: Secret(refusal.body))
        }
        if url.path == "/register" { return register(request, at: url, json) }
        if request.method == "DELETE" { return HTTPResponse(status: 204) }
        return try await provider.answer(request)
    }

    private func register(_ request: HTTPRequest, at url: WebURL, _ fields: HTTPFields) -> HTTPResponse {
        let asked = (try? JSON(parsing: request.body?.revealedBytes() ?? [])) ?? .null
        var answer = asked.object ?? JSONObject()
        state.withLock { state in
            state.serial += 1
            answer["client_id"] = .string("client-\(state.serial)")
            if state.isManaged {
                answer["registration_access_token"] = .string("manages-client-\(state.serial)")
                answer["registration_client_uri"] = .string("\(url.text)/client-\(state.serial)")
            }
            if let secret = state.secret {
                answer["client_secret"] = .string(secret)
                answer["client_secret_expires_at"] = .integer(state.secretEnd)
                if asked["token_endpoint_auth_method"] == "none" {
                    answer["token_endpoint_auth_method"] = "client_secret_post"
                }
            }
        }
        return HTTPResponse(status: 201, fields: fields, body: Secret(bytes: JSON.object(answer).serialized()))
    }
}

/// Redirect URIs at ports that are given out in order, and can be taken by another program.
final class Ports: Sendable {
    private let state = Mutex<(next: Int, taken: Set<Int>)>((4_711, []))
    private let ended = Mutex<[String]>([])

    var closed: [String] { ended.withLock { $0 } }

    func take(_ port: Int) { state.withLock { _ = $0.taken.insert(port) } }

    var callbackReceiver: CallbackReceiver {
        CallbackReceiver(
            open: { [self] template, account throws(BrokerError) in
                let template = template ?? "http://127.0.0.1:{port}/callback/\(account)"
                guard template.contains("{port}") else {
                    let port = (try? WebURL(parsing: template))?.port ?? 0
                    guard !state.withLock({ $0.taken.contains(port) }) else {
                        throw .portInUse(ListenerFailure(.portTaken(by: nil), port: port))
                    }
                    return template
                }
                let port = state.withLock { state in
                    while state.taken.contains(state.next) { state.next += 1 }
                    return state.next
                }
                return template.replacing("{port}", with: "\(port)")
            },
            openSite: { _, _, _ in nil }, close: { [self] uri, _ in ended.withLock { $0.append(uri) } },
            listeners: { [] })
    }
}

struct MCPHouse {
    let clock = TestClock()
    let vault = RecordingVault()
    let work = Work()
    let ports = Ports()
    let provider: FakeProvider
    let other: FakeProvider
    let network: MCPNetwork
    let broker: Broker

    init(
        issuedBy issuer: String = "https://id.example",
        _ change: (inout Account, inout MCPAccount) -> Void = { _, _ in }
    ) async throws {
        provider = try FakeProvider(issuer, clock: clock)
        other = try FakeProvider("https://other.example", clock: clock)
        network = MCPNetwork([provider, other])
        broker = Broker(
            vault: vault, http: network, callbackReceiver: ports.callbackReceiver, work: work, clock: clock.clock,
            record: Facts().record)
        try await configure(change)
        broker.stopListening(try await broker.events(of: nil, after: nil).live)
    }

    static func signedIn() async throws -> MCPHouse {
        let house = try await MCPHouse()
        try await house.signIn()
        return house
    }

    func configure(_ change: (inout Account, inout MCPAccount) -> Void) async throws {
        var kind = MCPAccount(
            server: try MCPServer(parsing: MCPNetwork.server),
            rules: OAuthAccount(endpoints: .issuer("https://mcp.example")))
        var account = Account(name: House.name, provider: "mcp", source: "test", kind: kind, clientID: "")
        change(&account, &kind)
        account.kind = kind
        await broker.configure([account])
    }

    func begin(_ request: SignInRequest = SignInRequest()) async throws -> (url: String, query: [String: String]) {
        let flow = try await broker.signIn(House.name, request).flow
        return (flow.authorizationURL, try MCPHouse.query(of: flow.authorizationURL))
    }

    static func query(of authorizationURL: String) throws -> [String: String] {
        let pairs = try FormEncoding.parse(try WebURL(parsing: authorizationURL).query ?? "")
        return Dictionary(pairs.map { ($0.name, $0.value) }) { $1 }
    }

    @discardableResult
    func signIn(at provider: FakeProvider? = nil) async throws -> [String: String] {
        let (url, query) = try await begin(SignInRequest(switchesSubject: true))
        let verdict = await broker.receive(try (provider ?? self.provider).consent(url))
        guard case .completed = verdict else { throw Unexpected() }
        return query
    }

    func failure() async -> BrokerError? {
        await thrown(by: try await broker.signIn(House.name, SignInRequest()))
    }

    func token() async throws(BrokerError) -> String {
        try await broker.session(House.name, SessionQuery()).token.value.revealed()
    }
}
