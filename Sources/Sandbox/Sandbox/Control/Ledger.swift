internal import RingbackBase
internal import Synchronization

/// What an issuer has issued. A sign-in starts a family: the code, its refresh and access tokens. If a code or a
/// replaced refresh token comes again, the family ends: there may be a copy (RFC 6749 4.1.2, RFC 9700 4.14.2).
struct Ledger {
    struct Family {
        let clientID: String
        var user: SandboxUser
        let scopes: [String]
        let authenticatedAt: Int
        /// The `sid` claim.
        let sessionID: String
        var isEnded = false
    }

    struct CodeGrant {
        let family: Int
        let redirectURI: String
        let challenge: String
        let nonce: String?
        let hasConsent: Bool
        /// The thumbprint of the key that must redeem it (RFC 9449 section 10).
        let key: String?
        let expiresAt: Int
        var isUsed = false
    }

    struct RefreshGrant {
        let family: Int
        let expiresAt: Int?
        /// The thumbprint of the key that it is bound to.
        let key: String?
        /// What it is good for, where that is less than its family's scopes.
        var scopes: [String]?
        var successor: (token: String, at: Int)?
    }

    struct AccessGrant {
        let family: Int
        /// Not always the family's user: a perturbation may have changed it.
        let user: SandboxUser
        let scopes: [String]
        let expiresAt: Int
        /// The thumbprint of the key that it is bound to.
        let key: String?
        var isRevoked = false
    }

    var families: [Family] = []
    var codes: [String: CodeGrant] = [:]
    var refreshTokens: [String: RefreshGrant] = [:]
    var accessTokens: [String: AccessGrant] = [:]
    /// The families of ID tokens, which may come back as a hint.
    var idTokens: [String: Int] = [:]
    /// Above this number, expired access tokens and the hints are removed: a benchmark must not fill the memory.
    private static let maxTokens = 50_000

    mutating func end(_ family: Int) { families[family].isEnded = true }

    mutating func endAll(where isPicked: (Family) -> Bool) -> Int {
        var count = 0
        for index in families.indices where !families[index].isEnded && isPicked(families[index]) {
            families[index].isEnded = true
            count += 1
        }
        return count
    }

    func access(_ token: String, at now: Int) -> AccessGrant? {
        guard let grant = accessTokens[token], !grant.isRevoked, now < grant.expiresAt, !families[grant.family].isEnded
        else { return nil }
        return grant
    }

    mutating func forgetOldTokens(at now: Int) {
        if accessTokens.count > Ledger.maxTokens { accessTokens = accessTokens.filter { $0.value.expiresAt > now } }
        if idTokens.count > Ledger.maxTokens { idTokens = [:] }
    }
}

/// What an issuer has done so far, for tests that must prove that something happened once, or not at all.
struct Counters {
    var requests: [String: Int] = [:]
    /// Token requests by grant type, refused ones included.
    var tokenRequests: [String: Int] = [:]
    /// How often each event has happened.
    private var events: [Event: Int] = [:]

    enum Event: String, CaseIterable {
        case signIns = "sign_ins", denials, codesIssued = "codes_issued", codeReuses = "code_reuses"
        case tokensIssued = "tokens_issued", refreshes, rotations
        /// Rotations whose response was passed on completely to be sent: no fault of this sandbox kept it back.
        case rotationsAnswered = "rotations_answered"
        case reuseDetections = "reuse_detections", revocations, endedSessions = "ended_sessions"
        case deviceCodesIssued = "device_codes_issued"
        /// Token requests of devices that came before their interval had passed.
        case earlyDeviceQuestions = "early_device_questions"
        case registrations, registrationsDeleted = "registrations_deleted"
    }

    subscript(event: Event) -> Int {
        get { events[event] ?? 0 }
        set { events[event] = newValue }
    }

    var members: JSONObject {
        var every = requests
        for endpoint in Endpoint.allCases { every[endpoint.rawValue, default: 0] += 0 }
        var members: JSONObject = [
            "requests": JSONObject(sorted: every), "token_requests": JSONObject(sorted: tokenRequests),
        ]
        for event in Event.allCases { members[event.rawValue] = .integer(self[event]) }
        return members
    }
}

/// Holds the requests that a gate or a hang keeps back.
final class HeldRequests: Sendable {
    private struct State {
        /// A request at a gate can be released. One at a hang goes only when all are.
        var requests: [Int: (endpoint: Endpoint, isReleasable: Bool)] = [:]
        var nextNumber = 0
    }

    let signal: Signal
    private let state = Mutex(State())

    init(signal: Signal) { self.signal = signal }

    /// Waits until released. Returns false if the client closed its connection before.
    func hold(_ endpoint: Endpoint, isReleasable: Bool) async -> Bool {
        let number = state.withLock { state in
            state.nextNumber += 1
            state.requests[state.nextNumber] = (endpoint, isReleasable)
            return state.nextNumber
        }
        signal.send()
        let isReleased = await signal.wait { self.state.withLock { $0.requests[number] == nil } }
        state.withLock { _ = $0.requests.removeValue(forKey: number) }
        signal.send()
        return isReleased
    }

    func release(_ release: Release) {
        state.withLock { state in
            let picked = state.requests.filter { _, request in
                release.isOfHangs
                    || request.isReleasable && (release.endpoint == nil || request.endpoint == release.endpoint)
            }
            for number in picked.keys.sorted().prefix(release.count ?? .max) { state.requests[number] = nil }
        }
        signal.send()
    }

    func count(_ endpoint: Endpoint) -> Int {
        state.withLock { state in state.requests.values.count { $0.endpoint == endpoint } }
    }
}

/// The requests that an issuer has seen, with their secrets: a test must be able to prove that a token never came.
struct RequestLog {
    struct Entry {
        let number: Int
        let at: Int
        let endpoint: Endpoint
        let method: String
        let path: String
        let fields: HTTPFields
        let pairs: [FormEncoding.Pair]
        let document: JSON?
        /// Nil while the request is held.
        var status: Int?
    }

    private(set) var entries: [Entry] = []
    private var nextNumber = 1
    private static let maxEntries = 10_000

    /// Returns the entry's number.
    mutating func append(_ request: SandboxRequest, _ endpoint: Endpoint, at now: Int) -> Int {
        if entries.count >= RequestLog.maxEntries { entries.removeFirst(RequestLog.maxEntries / 10) }
        defer { nextNumber += 1 }
        entries.append(
            Entry(
                number: nextNumber, at: now, endpoint: endpoint, method: request.method, path: request.path,
                fields: request.fields, pairs: request.pairs,
                document: request.form == nil ? try? JSON(parsing: request.body) : nil))
        return nextNumber
    }

    mutating func answered(_ number: Int, with status: Int) {
        guard let index = entries.lastIndex(where: { $0.number == number }) else { return }
        entries[index].status = status
    }

    var members: JSONObject { ["requests": entries] }
}

extension RequestLog.Entry: JSONConvertible {
    /// A parameter that was repeated is an array.
    var jsonValue: JSON {
        let parameters = Dictionary(grouping: pairs, by: \.name).mapValues { pairs in
            pairs.count == 1 ? pairs[0].value.jsonValue : pairs.map(\.value).jsonValue
        }
        let headers = Dictionary(fields.lines.map { ($0.name.lowercased(), $0.value) }) { _, last in last }
        return JSON.object([
            "number": number, "at": at, "endpoint": endpoint.rawValue, "method": method, "path": path,
            "parameters": JSONObject(sorted: parameters), "headers": JSONObject(sorted: headers),
            "document": document ?? JSON.null, "status": status?.jsonValue ?? JSON.null,
        ])
    }
}
