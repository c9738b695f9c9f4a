import BrokerCore
import RingbackBase
import SupabaseAuth
import SupabaseSignIn
import Synchronization
import Testing

@testable import APIServer
@testable import BrokerTestSupport

/// A Supabase project that says yes to everything, unless it was told what to answer next.
final class AgreeableSupabase: HTTPClient {
    private struct State {
        var requests: [BrokerTestSupport.SupabaseRequest] = []
        var answers: [String: [HTTPResponse]] = [:]
        var serial = 0
        var user: JSON = [
            "id": .string(AgreeableSupabase.id(1)), "email": "alice@example.org", "role": "authenticated",
            "factors": [
                ["id": .string(AgreeableSupabase.id(3)), "factor_type": "totp", "status": "verified"],
                ["id": .string(AgreeableSupabase.id(4)), "factor_type": "phone", "status": "unverified"],
            ],
            "identities": [["identity_id": .string(AgreeableSupabase.id(5)), "provider": "google"]],
        ]
    }
    private let state = Mutex(State())

    static func id(_ number: Int) -> String { "00000000-0000-4000-8000-00000000000\(number)" }

    func answer(_ kind: String, _ status: Int, _ body: JSON, _ fields: [(String, String)] = []) {
        let version = [("X-Supabase-Api-Version", "2024-01-01")]
        let response = HTTPResponse(
            status: status, fields: HTTPFields(version + fields), body: Secret(bytes: body.serialized()))
        state.withLock { $0.answers[kind, default: []].append(response) }
    }

    func session() -> JSON {
        state.withLock { state in
            state.serial += 1
            return AgreeableSupabase.session(state.serial, state.user)
        }
    }

    func refuse(_ kind: String, _ status: Int, _ code: String, _ message: String = "No.") {
        answer(kind, status, ["code": .string(code), "message": .string(message)])
    }

    var requests: [BrokerTestSupport.SupabaseRequest] { state.withLock { $0.requests } }
    func last(_ kind: String) -> BrokerTestSupport.SupabaseRequest? { requests.last { $0.kind == kind } }

    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        let read = BrokerTestSupport.SupabaseRequest(request)
        return state.withLock { state in
            state.requests.append(read)
            if state.answers[read.kind]?.isEmpty == false, let next = state.answers[read.kind]?.removeFirst() {
                return next
            }
            return AgreeableSupabase.yes(read.kind, &state)
        }
    }

    private static func yes(_ kind: String, _ state: inout State) -> HTTPResponse {
        func answer(_ json: JSON) -> HTTPResponse {
            let fields = HTTPFields([("Content-Type", "application/json")])
            return HTTPResponse(status: 200, fields: fields, body: Secret(bytes: json.serialized()))
        }
        let page = "https://provider.example/page"
        switch kind {
        case let kind
        where kind.hasPrefix("POST /token") || kind == "POST /verify" || kind == "POST /signup"
            || kind == "POST /factors/verify":
            state.serial += 1
            return answer(session(state.serial, state.user))
        case "GET /authorize": return HTTPResponse(status: 302, fields: HTTPFields([("Location", page)]))
        case "POST /sso", "GET /user/identities/authorize": return answer(["url": .string(page)])
        case "GET /user", "PUT /user": return answer(state.user)
        case "POST /factors":
            return answer([
                "id": .string(id(6)), "type": "totp", "friendly_name": "app",
                "totp": ["uri": "otpauth://totp/x", "secret": "ABC", "qr_code": "<svg/>"],
            ])
        case "POST /factors/challenge":
            return answer(["id": .string(id(7)), "type": "totp", "expires_at": 1_800_000_300])
        case let kind where kind.hasPrefix("POST /logout"): return HTTPResponse(status: 204)
        default: return answer([:])
        }
    }

    /// Signed by nobody: straight from the server it is believed.
    private static func session(_ serial: Int, _ user: JSON) -> JSON {
        let claims: JSON = [
            "sub": .string(id(1)), "aud": "authenticated", "session_id": "s1", "aal": "aal1", "exp": 1_800_003_600,
            "iat": 1_800_000_000, "amr": [["method": "password"]],
        ]
        let header: JSON = ["alg": "HS256"]
        let token = [header.serialized(), claims.serialized(), Array("\(serial)".utf8)].map { Base64URL.encode($0) }
        return [
            "access_token": .string(token.joined(separator: ".")), "token_type": "bearer", "expires_in": 3_600,
            "refresh_token": .string("canary-refresh-\(serial)"), "user": user, "provider_token": "upstream-access",
            "provider_refresh_token": "canary-upstream",
        ]
    }
}

/// The socket API in front of a project, as the account `app`; `work` is at an OpenID provider.
struct SupabaseHouse: Sendable {
    let house: APIHouse
    let project = AgreeableSupabase()
    static let target = "/v1/accounts/app"

    init() async throws {
        house = try await APIHouse(http: project)
        var account = try APIHouse.account("app")
        account.provider = "supabase"
        account.clientID = ""
        account.scopes = []
        account.redirectURI = "http://127.0.0.1:4711/callback/app"
        account.flowTimeout = .seconds(300)
        account.kind = SupabaseAccount(
            project: try SupabaseProject(parsing: "https://ref.supabase.co", apiKey: Secret("sb_publishable_x")),
            oauthProvider: "google", functions: ["touch"], edgeFunctions: ["send-invoice"])
        try await house.configure([account, try APIHouse.account("work")])
    }

    /// Asks, and looks for what must never be seen.
    @discardableResult
    func ask(
        _ method: String, _ tail: String, _ body: String? = nil, fields: [(String, String)] = [],
        immediate: Bool = true, sourceLocation: SourceLocation = #_sourceLocation
    ) async -> APIHouse.Answer {
        let target = tail.hasPrefix("/v1") ? tail : SupabaseHouse.target + tail
        let answer = await house.ask(
            method, target, body, fields: fields, immediate: immediate, sourceLocation: sourceLocation)
        for canary in ["canary", "sb_publishable_x", "correct horse"] where answer.text.contains(canary) {
            Issue.record("\(method) \(target) shows \(canary)", sourceLocation: sourceLocation)
        }
        return answer
    }

    @discardableResult
    func signIn() async -> APIHouse.Answer {
        await ask("POST", "/sign-in", #"{"method":"password","email":"a@example.org","password":"correct horse"}"#)
    }

    static func signedIn() async throws -> SupabaseHouse {
        let house = try await SupabaseHouse()
        #expect(await house.signIn().status == 200)
        return house
    }
}
