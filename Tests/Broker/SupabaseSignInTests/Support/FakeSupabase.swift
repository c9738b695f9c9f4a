import BrokerCore
import RingbackBase
import Synchronization

@testable import BrokerTestSupport
@testable import SupabaseSignIn

/// A small honest Supabase project, written from the server's own rules: it keeps users and sessions, counts refresh
/// tokens, and lies only as scripted, once per line of the script.
final class FakeSupabase: HTTPClient {
    private struct State {
        var server: SupabaseServer
        var requests: [SupabaseRequest] = []
        var turns: [String: [FakeProvider.Turn]] = [:]
        var gates: [String: Promise<Void>] = [:]

        mutating func nextTurn(_ kind: String) -> FakeProvider.Turn? {
            turns[kind]?.isEmpty == false ? turns[kind]?.removeFirst() : nil
        }
    }

    let origin: String
    private let state: Mutex<State>
    private let clock: TestClock

    init(_ origin: String = "https://ref.supabase.co", clock: TestClock) throws {
        self.origin = origin
        self.clock = clock
        state = Mutex(State(server: SupabaseServer(origin: origin, mint: try TokenMint())))
    }

    func behave<Value>(_ change: (inout sending SupabaseServer) -> sending Value) -> sending Value {
        state.withLock { change(&$0.server) }
    }

    func script(_ kind: String, _ turns: FakeProvider.Turn...) {
        state.withLock { $0.turns[kind, default: []] += turns }
    }

    func unscript() { state.withLock { $0.turns = [:] } }
    func hold(_ kind: String) { state.withLock { $0.gates[kind] = Promise() } }
    func release(_ kind: String) { state.withLock { $0.gates.removeValue(forKey: kind) }?.fulfil(()) }

    func consent(_ pageURL: String, as email: String = "alice@example.org") throws -> String {
        let page = try WebURL(parsing: pageURL)
        let named = try FormEncoding.parse(page.query ?? "").first { $0.name == "state" }?.value ?? ""
        let now = clock.now
        return state.withLock { $0.server.returnFromProvider(named, email, at: now) } ?? ""
    }

    func click(_ email: String = "alice@example.org") -> String {
        let now = clock.now
        return state.withLock { $0.server.followLink(email, at: now) } ?? ""
    }

    var requests: [SupabaseRequest] { state.withLock { $0.requests } }
    func count(_ kind: String) -> Int { requests.count { $0.kind == kind } }
    func last(_ kind: String) -> SupabaseRequest? { requests.last { $0.kind == kind } }
    func arrived(_ kind: String, _ count: Int = 1) async -> Bool { await eventually { self.count(kind) >= count } }
    var presented: [String] {
        requests.filter { $0.kind == FakeSupabase.refresh }.compactMap { $0.body["refresh_token"]?.string }
    }
    var sessions: Set<String> { state.withLock { Set($0.server.sessions.keys) } }
    func code(for contact: String) -> String { state.withLock { $0.server.mails[contact]?.code } ?? "" }

    static let refresh = "POST /token refresh_token"
    static let exchange = "POST /token pkce"

    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        guard request.url.hasPrefix(origin + "/") else { throw .unreachable(host: request.url, reason: "no such host") }
        let read = SupabaseRequest(request)
        let (gate, scripted) = state.withLock { state -> (Promise<Void>?, FakeProvider.Turn?) in
            state.requests.append(read)
            // Held requests get their turns in the order in which they arrived.
            let gate = state.gates[read.kind]
            return (gate, gate == nil ? nil : state.nextTurn(read.kind))
        }
        if let gate, await gate.wait() == nil { throw .cancelled }
        let turn = scripted ?? state.withLock { $0.nextTurn(read.kind) }
        switch turn {
        case .fail(let error): throw error
        case .unsent:
            request.unsentMark?.note()
            throw .unreachable(host: "project.supabase.co", reason: "the connection was refused")
        case .answer(let status, let body, let fields):
            return HTTPResponse(status: status, fields: HTTPFields(fields), body: Secret(body))
        case nil, .change, .cut: break
        }
        let now = clock.now
        let reply = state.withLock { $0.server.answer(read, at: now) }
        var response = reply.response
        if case .change(let change) = turn {
            response.body = Secret(bytes: ((try? change(reply.body)) ?? .null).serialized())
        }
        if case .cut(let text, let error) = turn {
            guard request.keepsPartialBody else { throw error }
            let whole = response.body.revealed()
            response.body = Secret(String(whole[..<(whole.firstRange(of: text)?.upperBound ?? whole.startIndex)]))
            response.truncation = error
        }
        return response
    }

    /// The server does what it is asked, and its answer is lost on the way.
    func sendAndLose(_ kind: String) {
        script(kind, .cut(after: "\u{0}", .timedOut(host: "ref.supabase.co")))
    }
}

struct ProjectReply: Sendable {
    var status = 200
    var body: JSON = .object(JSONObject())
    var location: String?

    /// An error in the shape that the version header asks for.
    static func no(_ status: Int, _ code: String, _ message: String = "No.", _ more: JSON? = nil) -> ProjectReply {
        var body: JSON = ["code": .string(code), "message": .string(message)]
        if let more { body = body.setting("weak_password", more) }
        return ProjectReply(status: status, body: body)
    }

    var response: HTTPResponse {
        var fields = HTTPFields([("Content-Type", "application/json")])
        if status >= 400, body["code"] != nil { fields.append("X-Supabase-Api-Version", "2024-01-01") }
        if let location { fields.append("Location", location) }
        return HTTPResponse(
            status: status, fields: fields, body: status == 204 ? Secret("") : Secret(bytes: body.serialized()))
    }
}
