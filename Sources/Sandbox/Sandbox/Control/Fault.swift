internal import LocalHTTP
internal import RingbackBase
internal import Synchronization

/// Something that goes wrong at an endpoint before the request is understood: what broken servers, proxies and networks
/// do. Well-formed responses that are wrong in their content are ``Perturbation``s.
struct Fault {
    enum Kind: String, CaseIterable, SettingValue {
        case status
        /// An HTML page, as a captive portal or a broken proxy sends it.
        case html
        /// 307: a client that follows it sends its secrets on.
        case redirect
        case hang
        case gate
        case truncated
        case oversize
        case invalidJSON = "invalid_json"
        case duplicateMembers = "duplicate_members"
        case empty
        /// An OAuth error (RFC 6749 section 5.2).
        case error
        /// True for faults that change a correct response.
        var isProcessed: Bool { [.truncated, .oversize, .invalidJSON, .duplicateMembers].contains(self) }
    }

    let endpoint: Endpoint
    /// Applies only to token requests of this grant.
    let grantType: String?
    /// Applies only to this path below the issuer's.
    let path: String?
    let kind: Kind
    let status: Int?
    let retryAfter: String?
    let target: String?
    /// Bytes of padding.
    let size: Int
    let code: String
    let message: String?
    /// The body of the error response, in place of its usual form.
    let body: JSON?
    /// How many requests are left; nil for all of them.
    var remaining: Int?
    /// The request takes effect although its response is lost: codes are used up, refresh tokens are rotated.
    let isProcessed: Bool

    func concerns(_ request: SandboxRequest, _ endpoint: Endpoint) -> Bool {
        self.endpoint == endpoint && (grantType == nil || grantType == request.grantType)
            && (path == nil || path == request.path)
    }

    var isHold: Bool { kind == .hang || kind == .gate }

    /// The response that is sent; `honest` is the correct one, if there is one.
    func answer(insteadOf honest: ServerResponse?) -> ServerResponse {
        let text = "This is a fault."
        switch kind {
        case .status:
            return Responses.text(text, status: status ?? 503, fields: retryAfter.map { [("Retry-After", $0)] } ?? [])
        case .html: return Pages.error(text, status: status ?? 200)
        case .redirect: return Responses.text(text, status: 307, fields: [("Location", target ?? "")])
        case .empty: return ServerResponse(status: status ?? 400)
        case .error where body?.object != nil:
            return Responses.json(body?.object ?? JSONObject(), status: status ?? 400)
        case .error: return Responses.refusal(OAuthError(code, message ?? text, status: status ?? 400))
        case .hang, .gate: return honest ?? Responses.text("The sandbox was cleared.", status: 503)
        case .truncated, .oversize, .invalidJSON, .duplicateMembers:
            return spoil(honest ?? Responses.json(["error": "server_error"], status: 500))
        }
    }

    private func spoil(_ honest: ServerResponse) -> ServerResponse {
        guard case .bytes(let body) = honest.body else { return honest }
        var spoilt = honest
        var members = (try? JSON(parsing: body))?.object ?? JSONObject()
        switch kind {
        case .truncated:
            let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
            continuation.yield(Array(body.prefix(body.count / 2)))
            continuation.finish()
            spoilt.fields.set("Content-Length", String(body.count + 1))
            spoilt.body = .stream(stream)
        case .oversize:
            members["padding"] = .string(String(repeating: "a", count: min(size, 64 << 20)))
            spoilt.body = .bytes(JSON.object(members).serialized())
        case .invalidJSON: spoilt.body = .bytes(Array(body.dropLast()))
        case .duplicateMembers:
            members.members += members.members.map { .init($0.name, "another") }
            spoilt.body = .bytes(JSON.object(members).serialized())
        default: break
        }
        return spoilt
    }
}

struct Faults {
    private var all: [Fault] = []
    var count: Int { all.count }
    mutating func add(_ faults: [Fault]) { all += faults }

    /// Takes the faults of a request: at most one that holds it, and at most one that replaces its response.
    mutating func take(for request: SandboxRequest, _ endpoint: Endpoint) -> (hold: Fault?, answer: Fault?) {
        (take(request, endpoint, isHold: true), take(request, endpoint, isHold: false))
    }

    private mutating func take(_ request: SandboxRequest, _ endpoint: Endpoint, isHold: Bool) -> Fault? {
        guard let index = all.firstIndex(where: { $0.isHold == isHold && $0.concerns(request, endpoint) }) else {
            return nil
        }
        let fault = all[index]
        if let remaining = fault.remaining {
            all[index].remaining = remaining - 1
            if remaining <= 1 { all.remove(at: index) }
        }
        return fault
    }
}

/// Wakes tasks that wait for a change. A waiter registers before it checks its condition, so no change is missed.
final class Signal: Sendable {
    private struct State {
        var waiters: [Int: AsyncStream<Void>.Continuation] = [:]
        var nextNumber = 0
    }
    private let state = Mutex(State())

    func send() { for waiter in state.withLock({ Array($0.waiters.values) }) { waiter.yield() } }

    /// Returns true once the condition holds, false if the task is cancelled before.
    func wait(until condition: @Sendable () -> Bool) async -> Bool {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.nextNumber += 1
            state.waiters[state.nextNumber] = continuation
            return state.nextNumber
        }
        defer { state.withLock { _ = $0.waiters.removeValue(forKey: number) } }
        if condition() { return true }
        for await _ in signals where condition() { return true }
        return false
    }

    /// Returns true once the condition holds, false when the time is over.
    func wait(atMost bound: Duration, until condition: @escaping @Sendable () -> Bool) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await self.wait(until: condition) }
            group.addTask {
                try? await Task.sleep(for: bound)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }
}
