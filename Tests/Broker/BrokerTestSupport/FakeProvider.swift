import BrokerCore
import Cryptography
import RingbackBase
import Synchronization

/// A small honest OpenID provider. It holds requests until told, counts them, rotates refresh tokens, refuses used
/// ones, and lies only as scripted, once per line of the script.
final class FakeProvider: Sendable {
    enum Endpoint: String, Sendable, CaseIterable { case metadata, keys, token, userinfo, revocation, pushed, page }

    struct Request: Sendable {
        let endpoint: Endpoint
        let url: String
        let form: [String: String]
        /// The value of the field `DPoP`.
        let proof: String?
        let authorization: String?
    }

    enum Turn: Sendable {
        case fail(HTTPClientError)
        case unsent
        case answer(Int, String, [(String, String)])
        /// The honest answer's object, changed.
        case change(@Sendable (JSON) throws -> JSON)
        /// The honest answer as far as the first place where this text ends; then the line breaks.
        case cut(after: String, HTTPClientError = .malformed(host: "id.example"))

        static func status(_ status: Int, _ body: String = "", retryAfter: Int? = nil) -> Turn {
            .answer(status, body, retryAfter.map { [("Retry-After", String($0))] } ?? [])
        }
        static func setting(_ name: String, _ value: JSON?) -> Turn { .change { $0.setting(name, value) } }
        static let invalidGrant = status(400, #"{"error":"invalid_grant"}"#)
    }

    struct Manners {
        var lifetime: Int? = 3_600
        var givesRefreshToken = true
        var rotates = true
        var downscopesRefreshTokens = false
        var idTokenOnRefresh = true
        var mint: TokenMint
        var metadata: [String: JSON?] = [:]
        var userinfo: [String: JSON] = [:]
        /// Of ID tokens.
        var claims: [String: JSON?] = [:]
    }

    private struct Grant {
        var subject: String
        var nonce: String?
        var challenge: String
        var redirectURI: String
        var hasOpenID: Bool
        /// What a refresh token is good for, if that is less than the sign-in's.
        var scope: String?
    }
    private struct State {
        var requests: [Request] = []
        var turns: [Endpoint: [Turn]] = [:]
        var gates: [Endpoint: Promise<Void>] = [:]
        var codes: [String: Grant] = [:]
        var pushed: [String: [String: String]] = [:]
        var refreshTokens: [String: Grant] = [:]
        var subject = "alice"
        var serial = 0
        var strangers = 0
    }

    let origin: String
    private let manners: Mutex<Manners>
    private let state = Mutex(State())
    private let clock: TestClock

    init(_ origin: String = "https://id.example", clock: TestClock) throws {
        self.origin = origin
        self.clock = clock
        manners = Mutex(Manners(mint: try TokenMint()))
    }

    func behave(_ change: (inout sending Manners) -> Void) { manners.withLock { change(&$0) } }

    var mint: TokenMint { manners.withLock { $0.mint } }

    func script(_ endpoint: Endpoint, _ turns: Turn...) {
        state.withLock { $0.turns[endpoint, default: []] += turns }
    }

    func unscript(_ endpoint: Endpoint) {
        state.withLock { $0.turns[endpoint] = nil }
    }

    func hold(_ endpoint: Endpoint) {
        state.withLock { $0.gates[endpoint] = Promise() }
    }

    func release(_ endpoint: Endpoint) {
        state.withLock { $0.gates.removeValue(forKey: endpoint) }?.fulfil(())
    }

    func consent(_ authorizationURL: String, as subject: String = "alice") throws -> String {
        let url = try WebURL(parsing: authorizationURL)
        var query = Dictionary(try FormEncoding.parse(url.query ?? "").map { ($0.name, $0.value) }) { $1 }
        if let reference = query["request_uri"] {
            query = state.withLock { $0.pushed.removeValue(forKey: reference) } ?? [:]
        }
        let code = state.withLock { state in
            state.serial += 1
            let code = "code-\(state.serial)"
            state.codes[code] = Grant(
                subject: subject, nonce: query["nonce"], challenge: query["code_challenge"] ?? "",
                redirectURI: query["redirect_uri"] ?? "", hasOpenID: query["scope"]?.contains("openid") ?? false)
            return code
        }
        let issuer = manners.withLock { $0.claims["iss"] ?? nil }?.string ?? origin
        let answer = [("code", code), ("state", query["state"] ?? ""), ("iss", issuer)]
        return "\(query["redirect_uri"] ?? "")?\(FormEncoding.encode(answer))"
    }

    var requests: [Request] { state.withLock { $0.requests } }
    func count(_ endpoint: Endpoint) -> Int { requests.count { $0.endpoint == endpoint } }
    var presented: [String] { requests.compactMap { $0.endpoint == .token ? $0.form["refresh_token"] : nil } }
    var strangerCount: Int { state.withLock { $0.strangers } }
    var revoked: [String] { requests.compactMap { $0.endpoint == .revocation ? $0.form["token"] : nil } }
    func arrived(_ endpoint: Endpoint, _ count: Int) async -> Bool {
        await eventually { self.count(endpoint) >= count }
    }

    func answer(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        let path = String(request.url.dropFirst(origin.count))
        let endpoint: Endpoint =
            switch path {
            case let path where path.contains("/.well-known/"): .metadata
            case "/keys": .keys
            case "/userinfo": .userinfo
            case "/revoke": .revocation
            case "/par": .pushed
            // The page of a sign-in, which only a check asks for.
            case let path where path.hasPrefix("/authorize?"): .page
            default: .token
            }
        let pairs = (try? FormEncoding.parse(request.body?.revealedBytes() ?? [])) ?? []
        let form = Dictionary(pairs.map { ($0.name, $0.value) }) { $1 }
        let gate = state.withLock { state in
            state.requests.append(
                Request(
                    endpoint: endpoint, url: request.url, form: form,
                    proof: request.secretFields.first { $0.name == "DPoP" }?.value.revealed(),
                    authorization: request.authorization?.revealed()))
            return state.gates[endpoint]
        }
        if let gate, await gate.wait() == nil { throw .cancelled }
        let turn = state.withLock { state -> Turn? in
            guard state.turns[endpoint]?.isEmpty == false else { return nil }
            return state.turns[endpoint]?.removeFirst()
        }
        switch turn {
        case .fail(let error): throw error
        case .unsent:
            request.unsentMark?.note()
            throw .unreachable(host: "id.example", reason: "the connection was refused")
        case .answer(let status, let body, let fields):
            return HTTPResponse(status: status, fields: HTTPFields(fields), body: Secret(body))
        case nil, .change, .cut:
            let (status, honest) = honestAnswer(endpoint, form)
            var body = honest
            if case .change(let change) = turn { body = (try? change(honest)) ?? .null }
            var response = HTTPResponse(
                status: status, fields: HTTPFields([("Content-Type", "application/json")]),
                body: Secret(bytes: body.serialized()))
            if case .cut(let text, let error) = turn {
                // Who does not ask for the beginning alone gets none of it.
                guard request.keepsPartialBody else { throw error }
                let whole = response.body.revealed()
                response.body = Secret(String(whole[..<(whole.firstRange(of: text)?.upperBound ?? whole.startIndex)]))
                response.truncation = error
            }
            return response
        }
    }

    private func honestAnswer(_ endpoint: Endpoint, _ form: [String: String]) -> (Int, JSON) {
        let manners = manners.withLock { $0 }
        switch endpoint {
        case .metadata:
            var metadata: JSON = [
                "issuer": .string(origin), "authorization_endpoint": .string("\(origin)/authorize"),
                "token_endpoint": .string("\(origin)/token"), "jwks_uri": .string("\(origin)/keys"),
                "userinfo_endpoint": .string("\(origin)/userinfo"), "revocation_endpoint": .string("\(origin)/revoke"),
                "id_token_signing_alg_values_supported": ["ES256"],
                "authorization_response_iss_parameter_supported": true,
            ]
            for (name, value) in manners.metadata { metadata = metadata.setting(name, value) }
            return (200, metadata)
        case .keys: return (200, ["keys": [manners.mint.jwk]])
        case .revocation: return (200, [:])
        case .pushed:
            let reference = state.withLock { state in
                state.serial += 1
                state.pushed["urn:\(state.serial)"] = form
                return "urn:\(state.serial)"
            }
            return (201, ["request_uri": .string(reference), "expires_in": 60])
        case .userinfo:
            var claims: JSON = ["sub": .string(state.withLock { $0.subject })]
            for (name, value) in manners.userinfo { claims = claims.setting(name, value) }
            return (200, claims)
        case .page: return (200, [:])
        case .token: return token(form, manners)
        }
    }

    /// Grants without a person: whoever asks gets a token, and no refresh token.
    private static let serviceGrants: Set = [
        "client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "urn:ietf:params:oauth:grant-type:token-exchange",
    ]

    private func token(_ form: [String: String], _ manners: Manners) -> (Int, JSON) {
        if FakeProvider.serviceGrants.contains(form["grant_type"] ?? "") {
            let serial = state.withLock { state in
                state.serial += 1
                return state.serial
            }
            if let type = form["requested_token_type"], type.hasSuffix(":id-jag") {
                return (
                    200,
                    [
                        "access_token": .string("jag-\(serial)"), "issued_token_type": .string(type),
                        "token_type": "N_A", "expires_in": 300,
                    ]
                )
            }
            let answer: JSON = ["access_token": .string("access-\(serial)"), "token_type": "Bearer"]
            return (
                200,
                answer.setting("expires_in", manners.lifetime.map { .integer($0) })
                    .setting("scope", form["subject_token"] == nil ? nil : form["scope"].map { .string($0) })
            )
        }
        let isRefresh = form["grant_type"] == "refresh_token"
        if isRefresh, let asked = form["scope"] {
            let held = state.withLock { $0.refreshTokens[form["refresh_token"] ?? ""]?.scope }
            if let held, !Set(asked.split(separator: " ")).isSubset(of: held.split(separator: " ")) {
                return (400, ["error": "invalid_scope"])
            }
        }
        let found = state.withLock { state -> (Grant, Int, String?)? in
            var grant: Grant?
            if isRefresh {
                let held = form["refresh_token"] ?? ""
                grant = state.refreshTokens[held]
                if manners.rotates { state.refreshTokens[held] = nil }
            } else {
                let verifier = Array((form["code_verifier"] ?? "").utf8)
                grant = state.codes.removeValue(forKey: form["code"] ?? "").flatMap { grant in
                    let isProven = Base64URL.encode(Digest.sha256(verifier)) == grant.challenge
                    return isProven && form["redirect_uri"] == grant.redirectURI ? grant : nil
                }
            }
            if manners.downscopesRefreshTokens, let scope = form["scope"] {
                grant?.scope = scope
                if !manners.rotates { state.refreshTokens[form["refresh_token"] ?? ""] = grant }
            }
            guard let grant else { return nil }
            state.subject = grant.subject
            state.serial += 1
            let isGiven = manners.givesRefreshToken && (!isRefresh || manners.rotates)
            let refreshToken = isGiven ? "refresh-\(state.serial)" : nil
            if let refreshToken { state.refreshTokens[refreshToken] = grant }
            return (grant, state.serial, refreshToken)
        }
        if found == nil, isRefresh { state.withLock { $0.strangers += 1 } }
        guard let (grant, serial, refreshToken) = found else { return (400, ["error": "invalid_grant"]) }
        var answer: JSON = ["access_token": .string("access-\(serial)"), "token_type": "Bearer"]
        answer = answer.setting("expires_in", manners.lifetime.map { .integer($0) })
        answer = answer.setting("refresh_token", refreshToken.map { .string($0) })
        answer = answer.setting("scope", (form["scope"] ?? grant.scope).map { .string($0) })
        if grant.hasOpenID, !isRefresh || manners.idTokenOnRefresh {
            let claims = claims(of: grant.subject, nonce: isRefresh ? nil : grant.nonce, manners.lifetime ?? 3_600)
            answer = answer.setting("id_token", (try? manners.mint.token(claims)).map { .string($0) })
        }
        return (200, answer)
    }

    func claims(of subject: String, nonce: String? = nil, _ lifetime: Int = 3_600) -> JSON {
        let claims: JSON = [
            "iss": .string(origin), "sub": .string(subject), "aud": "ringback", "iat": .integer(clock.now),
            "exp": .integer(clock.now + lifetime), "email": .string("\(subject)@example.org"),
        ]
        let overridden = manners.withLock { $0.claims }.reduce(claims) { $0.setting($1.key, $1.value) }
        return overridden.setting("nonce", nonce.map { .string($0) })
    }
}
