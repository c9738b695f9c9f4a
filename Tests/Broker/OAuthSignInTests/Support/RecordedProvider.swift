import Cryptography
import FoundationEssentials
import OAuth
import RingbackBase
import Synchronization

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

/// A provider that says what stands in Tests/Vectors/presets, answer by answer, and keeps what it was asked.
final class RecordedProvider: HTTPClient {
    struct Request: Sendable {
        let url: String
        let form: [String: String]
        let accept: String?
        let authorization: String?
    }

    /// A file: a head of `name: value` lines, an empty line, and the content.
    struct Recording: Sendable {
        let head: [(name: String, value: String)]
        let content: String

        init(_ place: String) throws {
            let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent()
                .deletingLastPathComponent()
            let text = try String(contentsOf: folder.appending(path: "Vectors/presets/\(place).txt"), encoding: .utf8)
            let parts = text.split(separator: "\n\n", maxSplits: 1, omittingEmptySubsequences: false)
            head = parts[0].split(separator: "\n").map { line in
                let pair = line.split(separator: ":", maxSplits: 1).map(String.init)
                return (pair[0], String(pair[1].drop { $0 == " " }))
            }
            content = String(parts[1].last == "\n" ? parts[1].dropLast() : parts[1])
        }

        subscript(name: String) -> String? { head.first { $0.name == name }?.value }
    }

    let preset: String
    private let metadata: Recording
    private let clock: TestClock
    private let key: PrivateKey
    private struct State {
        var answers: [String: [String]] = [:]
        var requests: [Request] = []
        var nonce = ""
    }
    private let state = Mutex(State())
    /// RSA keys take their time: one for all.
    private static let key = Result { try PrivateKey.generate(.rsa2048) }

    /// `metadata` names the file with the discovery document, or what stands in for one.
    init(_ preset: String, metadata: String = "metadata", clock: TestClock) throws {
        self.preset = preset
        self.metadata = try Recording("\(preset)/\(metadata)")
        self.clock = clock
        key = try RecordedProvider.key.get()
    }

    /// The next answers of the endpoint (`token`, `userinfo`, `revocation`): names of files, one an answer.
    func play(_ endpoint: String, _ names: String...) {
        state.withLock { $0.answers[endpoint, default: []] += names }
    }

    var requests: [Request] { state.withLock { $0.requests } }
    func requests(to url: String) -> [Request] { requests.filter { $0.url == url } }
    func recording(_ name: String) throws -> Recording { try Recording("\(preset)/\(name)") }

    /// The provider's answer in the browser: the callback of a file, for the flow that is open at the address.
    func callback(_ name: String, for flow: FlowView) throws -> String {
        let query = try FormEncoding.parse(WebURL(parsing: flow.authorizationURL).query ?? "")
        let state = query.first { $0.name == "state" }?.value ?? ""
        let nonce = query.first { $0.name == "nonce" }?.value ?? ""
        self.state.withLock { $0.nonce = nonce }
        return "\(flow.redirectURI)?\(try recording(name).content.replacing("{state}", with: state))"
    }

    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        let pairs = (try? FormEncoding.parse(request.body?.revealedBytes() ?? [])) ?? []
        let form = Dictionary(pairs.map { ($0.name, $0.value) }) { $1 }
        state.withLock {
            $0.requests.append(
                Request(
                    url: request.url, form: form, accept: request.fields["Accept"],
                    authorization: request.authorization?.revealed()))
        }
        let name: String?
        switch request.url {
        case let url where url.contains("/.well-known/openid-configuration"): name = "metadata"
        case let url where url.contains("/.well-known/"): name = "metadata-elsewhere"
        case metadata["jwks"]: name = "keys"
        case metadata["userinfo"]: name = next("userinfo") ?? "userinfo"
        case metadata["revocation"]: name = next("revocation") ?? "revoked"
        case metadata["token"]: name = next("token")
        default: name = nil
        }
        guard let name, let response = try? answer(name, clientID: form["client_id"] ?? "", form) else {
            throw .unreachable(host: request.url, reason: "nothing is recorded here")
        }
        return response
    }

    private func next(_ endpoint: String) -> String? {
        state.withLock { state in
            guard state.answers[endpoint]?.isEmpty == false else { return nil }
            return state.answers[endpoint]?.removeFirst()
        }
    }

    private func answer(_ name: String, clientID: String, _ form: [String: String]) throws -> HTTPResponse {
        let file = name == "metadata" ? metadata : try recording(name)
        guard case .rsa(let modulus, let exponent) = key.publicKey.parts else { throw Unexpected() }
        var text = file.content
        for (placeholder, value) in [
            ("{kid}", "k1"), ("{n}", Base64URL.encode(modulus)), ("{e}", Base64URL.encode(exponent)),
        ] { text = text.replacing(placeholder, with: value) }
        for claims in ["id-token", "id-token-refresh", "id-token-other-directory"] where text.contains("{\(claims)}") {
            text = text.replacing("{\(claims)}", with: try token(claims, clientID, accessToken: accessToken(in: text)))
        }
        var fields = HTTPFields()
        for line in file.head where line.name == "field" {
            let pair = line.value.split(separator: ":", maxSplits: 1).map(String.init)
            fields.append(pair[0], String(pair[1].drop { $0 == " " }))
        }
        return HTTPResponse(status: Int(file["status"] ?? "") ?? 0, fields: fields, body: Secret(text))
    }

    private func accessToken(in text: String) -> String {
        String(text.split(separator: "\"access_token\": \"", maxSplits: 1).last?.prefix { $0 != "\"" } ?? "")
    }

    private func token(_ claims: String, _ clientID: String, accessToken: String) throws -> String {
        let file = try recording(claims)
        let hash = Base64URL.encode(Digest.sha256(accessToken).prefix(16))
        var text = file.content
        for (placeholder, value) in [
            ("{client_id}", clientID.isEmpty ? "ringback" : clientID), ("{now}", "\(clock.now)"),
            ("{exp}", "\(clock.now + (Int(file["lifetime"] ?? "") ?? 3_600))"), ("{at_hash}", hash),
            ("{nonce}", state.withLock { $0.nonce }),
        ] { text = text.replacing(placeholder, with: value) }
        let signed =
            "\(Base64URL.encode(#"{"alg":"RS256","kid":"k1","typ":"JWT"}"#.utf8)).\(Base64URL.encode(text.utf8))"
        let signature = try key.sign(message: Array(signed.utf8), algorithm: .rs256)
        return "\(signed).\(Base64URL.encode(signature))"
    }
}

struct PresetHouse: Sendable {
    let clock: TestClock
    let provider: RecordedProvider
    let broker: Broker
    let vault = RecordingVault()
    static let name = House.named("mine")

    init(
        _ preset: ProviderPreset, metadata: String = "metadata", hasSecret: Bool = false, scopes: [String],
        parameters: [(String, String)]? = nil
    ) async throws {
        let clock = TestClock()
        self.clock = clock
        provider = try RecordedProvider(preset.name, metadata: metadata, clock: clock)
        let callbackReceiver = CallbackReceiver(
            open: { template, account in
                let template = template ?? "http://127.0.0.1:{port}/callback/\(account)"
                return template.replacing("{port}", with: "4711")
            }, close: { _, _ in }, listeners: { [] })
        broker = Broker(
            vault: vault, http: provider, callbackReceiver: callbackReceiver, work: Work(), clock: clock.clock)
        let endpoints: Account.Endpoints =
            switch try preset.source() {
            case .issuer(let issuer): .issuer(issuer)
            case .endpoints(let metadata): .fixed(metadata)
            }
        var rules = OAuthAccount(endpoints: endpoints)
        rules.clientAuthentication = preset.clientAuthentication(hasSecret: hasSecret)
        rules.clientSecret = hasSecret ? Account.SecretSource { () throws(BrokerError) in Secret("hush") } : nil
        var account = Account(
            name: PresetHouse.name, provider: preset.name, source: "test", kind: rules, clientID: "ringback",
            scopes: scopes, redirectURI: preset.redirectURI)
        account.authorizationParameters = parameters ?? preset.authorizationParameters
        await broker.configure([account])
        broker.stopListening(try await broker.events(of: nil, after: nil).live)
    }

    @discardableResult
    func signIn(
        _ token: String = "token-first", callback: String = "callback"
    ) async throws -> (verdict: CallbackVerdict, query: [String: String], flow: FlowView) {
        provider.play("token", token)
        let flow = try await broker.signIn(PresetHouse.name, SignInRequest()).flow
        let pairs = try FormEncoding.parse(WebURL(parsing: flow.authorizationURL).query ?? "")
        let verdict = await broker.receive(try provider.callback(callback, for: flow))
        return (verdict, Dictionary(pairs.map { ($0.name, $0.value) }) { $1 }, flow)
    }

    func token(minValid: Int? = nil) async throws(BrokerError) -> String {
        var query = SessionQuery()
        query.minValid = minValid.map { .seconds($0) }
        return try await broker.session(PresetHouse.name, query).token.value.revealed()
    }

    func failure(minValid: Int? = nil) async -> BrokerError? {
        await thrown(by: try await token(minValid: minValid))
    }

    func failure(of answer: String, after seconds: Int) async -> BrokerError? {
        clock.advance(by: seconds)
        provider.play("token", answer)
        return await failure()
    }

    var view: AccountView { get async throws { try await broker.account(PresetHouse.name) } }

    var session: Session {
        get async throws {
            _ = try await broker.session(PresetHouse.name, SessionQuery())
            guard let held = await broker.sessionManager.held(PresetHouse.name) else { throw Unexpected() }
            return held
        }
    }

    var presented: [String] { provider.requests.compactMap { $0.form["refresh_token"] } }
}

func isCompleted(_ verdict: CallbackVerdict) -> Bool { if case .completed = verdict { true } else { false } }
