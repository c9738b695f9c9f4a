import BrokerCore
import Cryptography
import RingbackBase
import Synchronization

@testable import BrokerTestSupport

/// A small honest OpenID provider with words that must never be seen on the socket. It lies only as scripted.
final class CanaryProvider: HTTPClient {
    struct Turn: Sendable {
        var status = 200
        var body = ""
        var retryAfter: Int?
    }
    private struct State {
        var nonces: [String: String] = [:]
        var turns: [Turn] = []
        var gate: Promise<Void>?
        var secrets: Set<String> = ["canary-client-secret"]
        var tokenRequests = 0
        var lastScope: String?
        var subject = "alice"
        var isDown = false
        var tokenType = "Bearer"
        /// Further members of the metadata.
        var offers: [JSONObject.Member] = []
    }
    private let state = Mutex(State())
    private let key: PrivateKey
    private let clock: TestClock
    static let origin = "https://id.example"

    init(clock: TestClock) throws {
        self.clock = clock
        key = try PrivateKey.generate(.p256)
    }

    var secrets: Set<String> { state.withLock { $0.secrets } }
    var tokenRequests: Int { state.withLock { $0.tokenRequests } }
    var lastScope: String? { state.withLock { $0.lastScope } }

    func answerNext(_ turns: Turn...) { state.withLock { $0.turns += turns } }
    func goAway(_ isDown: Bool = true) { state.withLock { $0.isDown = isDown } }
    func registersClients() {
        state.withLock { state in
            state.offers.append(.init("registration_endpoint", .string("\(CanaryProvider.origin)/register")))
            state.secrets.formUnion(["canary-registered-secret", "canary-registration-token"])
        }
    }
    func endsSessions() {
        state.withLock { $0.offers.append(.init("end_session_endpoint", .string("\(CanaryProvider.origin)/logout"))) }
    }
    /// From now on tokens are bound to the keys of the proofs, which are not checked.
    func bindsTokens() {
        state.withLock { state in
            state.tokenType = "DPoP"
            state.offers.append(.init("dpop_signing_alg_values_supported", ["ES256"]))
            let introspection = "\(CanaryProvider.origin)/api/introspect"
            state.offers.append(.init("introspection_endpoint", .string(introspection)))
            state.offers.append(.init("userinfo_endpoint", .string("\(CanaryProvider.origin)/api/me")))
        }
    }
    func hold() { state.withLock { $0.gate = Promise() } }
    func release() {
        state.withLock { state in
            defer { state.gate = nil }
            return state.gate
        }?.fulfil(())
    }

    /// The person at the browser says yes, as `subject`: the callback URL.
    func consent(_ authorizationURL: String, as subject: String = "alice") throws -> String {
        let query = try FormEncoding.parse(try WebURL(parsing: authorizationURL).query ?? "")
        func value(_ name: String) -> String { query.first { $0.name == name }?.value ?? "" }
        state.withLock { state in
            state.nonces["code"] = value("nonce")
            state.subject = subject
        }
        let answer = [("code", "authorization-7"), ("state", value("state")), ("iss", CanaryProvider.origin)]
        return "\(value("redirect_uri"))?\(FormEncoding.encode(answer))"
    }

    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        if state.withLock({ $0.isDown }) { throw .unreachable(host: "id.example", reason: "connection refused") }
        switch request.url.dropFirst(CanaryProvider.origin.count) {
        case "/.well-known/openid-configuration":
            let origin = CanaryProvider.origin
            let metadata: JSON = [
                "issuer": .string(origin), "authorization_endpoint": .string("\(origin)/authorize"),
                "token_endpoint": .string("\(origin)/token"), "jwks_uri": .string("\(origin)/keys"),
                "revocation_endpoint": .string("\(origin)/revoke"),
                "id_token_signing_alg_values_supported": ["ES256"],
            ]
            let offers = state.withLock { $0.offers }
            return answer(.object(JSONObject((metadata.object?.members ?? []) + offers)))
        case "/register" where request.method == "POST":
            return answer(
                [
                    "client_id": "c1", "client_secret": "canary-registered-secret",
                    "client_secret_expires_at": 1_900_000_000, "token_endpoint_auth_method": "client_secret_basic",
                    "registration_access_token": "canary-registration-token",
                    "registration_client_uri": .string("\(CanaryProvider.origin)/register/c1"),
                ], status: 201)
        case "/register/c1": return answer([:], status: request.method == "DELETE" ? 204 : 405)
        case "/keys": return answer(["keys": [jwk]])
        case "/revoke": return answer([:])
        case "/token": return await token(request)
        default: return answer([:], status: 404)
        }
    }

    private func answer(_ json: JSON, status: Int = 200) -> HTTPResponse {
        HTTPResponse(status: status, body: Secret(bytes: json.serialized()))
    }

    private func token(_ request: HTTPRequest) async -> HTTPResponse {
        let form = (try? FormEncoding.parse(request.body?.revealedBytes() ?? [])) ?? []
        let gate = state.withLock { state in
            for pair in form where ["code_verifier", "refresh_token", "client_secret"].contains(pair.name) {
                state.secrets.insert(pair.value)
            }
            state.tokenRequests += 1
            state.lastScope = form.first { $0.name == "scope" }?.value
            return state.gate
        }
        _ = await gate?.wait()
        let (turn, number, subject, nonce, type) = state.withLock { state in
            let isExchange = form.contains { $0.name == "code" }
            state.secrets.insert("canary-refresh-\(state.tokenRequests)")
            return (
                state.turns.isEmpty ? nil : state.turns.removeFirst(), state.tokenRequests, state.subject,
                isExchange ? state.nonces["code"] : nil, state.tokenType
            )
        }
        if let turn {
            let fields = turn.retryAfter.map { [("Retry-After", String($0))] } ?? []
            return HTTPResponse(status: turn.status, fields: HTTPFields(fields), body: Secret(turn.body))
        }
        return answer([
            "access_token": .string("access-\(number)"), "token_type": .string(type), "expires_in": 3_600,
            "refresh_token": .string("canary-refresh-\(number)"), "scope": "openid email",
            "id_token": .string((try? idToken(subject, nonce)) ?? ""),
        ])
    }

    private func idToken(_ subject: String, _ nonce: String?) throws -> String {
        var claims = JSONObject([
            .init("iss", .string(CanaryProvider.origin)), .init("sub", .string(subject)), .init("aud", "ringback"),
            .init("iat", .integer(clock.now)), .init("exp", .integer(clock.now + 3_600)),
            .init("email", .string("\(subject)@example.org")),
        ])
        claims["nonce"] = nonce.map { .string($0) }
        let header: JSON = ["alg": "ES256", "kid": "k1"]
        let payload = JSON.object(claims).serialized()
        let signed = "\(Base64URL.encode(header.serialized())).\(Base64URL.encode(payload))"
        return "\(signed).\(Base64URL.encode(try key.sign(message: Array(signed.utf8), algorithm: .es256)))"
    }

    private var jwk: JSON {
        guard case .ellipticCurve(let curve, let x, let y) = key.publicKey.parts else { return .null }
        return [
            "kty": "EC", "crv": .string(curve.rawValue), "x": .string(Base64URL.encode(x)),
            "y": .string(Base64URL.encode(y)), "kid": "k1",
        ]
    }
}
