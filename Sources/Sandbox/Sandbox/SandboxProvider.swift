internal import Glibc
public import LocalHTTP
internal import RingbackBase
internal import Synchronization

/// One issuer: its state behind a lock, and the waiting for latency, gates and hangs.
final class SandboxProvider: Sendable {
    let signal = Signal()
    let heldRequests: HeldRequests
    private let state: Mutex<ProviderState>
    let clock: @Sendable () -> Int

    init(origin: String, prefix: String, options: SandboxOptions, clock: @escaping @Sendable () -> Int) {
        state = Mutex(ProviderState(origin: origin, prefix: prefix, options: options))
        heldRequests = HeldRequests(signal: signal)
        self.clock = clock
    }

    func withState<Result, Failure: Error>(
        _ body: (inout ProviderState) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try state.withLock(body)
    }

    func respond(to request: ServerRequest, path: String) async -> ServerResponse {
        let request = SandboxRequest(request, path: path)
        if path.hasPrefix("/sandbox/") { return await control(request, path: path) }
        guard let endpoint = Endpoint(path: path) else { return Responses.nothing }
        let now = clock()
        let (number, latency, hold, fault) = withState { state in
            let faults = state.faults.take(for: request, endpoint)
            state.server.issuer.counters.requests[endpoint.rawValue, default: 0] += 1
            let number = state.log.append(request, endpoint, at: now + state.clockOffset)
            return (number, state.server.issuer.settings.latency[endpoint.rawValue], faults.hold, faults.answer)
        }
        signal.send()
        if let latency { try? await Task.sleep(for: .milliseconds(latency)) }
        var response = await answer(request, endpoint, hold: hold, fault: fault)
        let date = withState { state in
            state.log.answered(number, with: response.status)
            return HTTPDate.text(of: clock() + state.clockOffset)
        }
        // The date is the issuer's, also where its clock was set to be wrong.
        response.fields.set("Date", date)
        return response
    }

    private func answer(
        _ request: SandboxRequest, _ endpoint: Endpoint, hold: Fault?, fault: Fault?
    ) async -> ServerResponse {
        let isProcessedFirst = hold?.isProcessed ?? false
        var honest = isProcessedFirst ? process(request, endpoint, fault: fault) : nil
        if let hold {
            let isGate = hold.kind == .gate
            // If the client has closed its connection, its request must not take effect.
            guard await heldRequests.hold(endpoint, isReleasable: isGate), isGate else {
                return hold.answer(insteadOf: nil)
            }
        }
        if !isProcessedFirst { honest = process(request, endpoint, fault: fault) }
        if let fault {
            return fault.supabaseResponse(to: request, endpoint) ?? fault.answer(insteadOf: honest?.response)
        }
        guard let honest else { return Responses.text("There is no answer.", status: 500) }
        if honest.hasRotated { withState { $0.server.issuer.counters[.rotationsAnswered] += 1 } }
        return honest.response
    }

    /// The correct response; nil if a fault keeps the request from taking effect.
    private func process(
        _ request: SandboxRequest, _ endpoint: Endpoint, fault: Fault?
    ) -> (response: ServerResponse, hasRotated: Bool)? {
        guard fault?.isProcessed ?? true else { return nil }
        let (response, hasRotated, sent, announce) = withState { state in
            let before = state.server.issuer.counters[.rotations]
            let last = state.supabase.mail.messages.last?.number ?? 0
            let now = clock() + state.clockOffset
            let response =
                endpoint.isSupabase
                ? state.supabase.answer(request, endpoint, upstream: &state.server, at: now)
                : state.server.answer(request, endpoint, at: now)
            let sent = state.supabase.mail.messages(after: last).map(\.line) + state.supabase.mail.takeUnsent()
            return (response, state.server.issuer.counters[.rotations] > before, sent, state.options.announce)
        }
        sent.forEach(announce)
        return (response, hasRotated)
    }
}

/// What is below one issuer's URL: the authorization server, the Supabase project, and what tests switch and observe.
struct ProviderState {
    private let origin: String
    private let prefix: String
    let options: SandboxOptions
    var server: AuthorizationServer
    var supabase: SupabaseProject
    var faults = Faults()
    var log = RequestLog()
    var clockOffset = 0

    init(origin: String, prefix: String, options: SandboxOptions) {
        self.origin = origin
        self.prefix = prefix
        self.options = options
        server = AuthorizationServer(origin: origin, prefix: prefix, options: options)
        supabase = SupabaseProject(url: server.issuer.name)
    }

    /// As it was started. The keys are kept: making them takes time, and no test can tell the difference.
    mutating func reset() {
        var fresh = ProviderState(origin: origin, prefix: prefix, options: options)
        fresh.server.issuer.keys = server.issuer.keys
        fresh.supabase.keys = supabase.keys
        self = fresh
    }
}

/// One server with an issuer at its root and others below path prefixes. Everything it knows is in memory, its users
/// have no passwords, and it shows its secrets to everybody: it must listen on loopback only.
public final class SandboxSite: Sendable {
    private struct Place {
        let authorities: Set<String>
        let issuers: [String]
        let providers: [String: SandboxProvider]
    }

    private let options: SandboxOptions
    private let clock: @Sendable () -> Int
    private let place = Mutex<Place?>(nil)

    /// - Parameter clock: Unix seconds.
    public init(
        options: SandboxOptions = SandboxOptions(), clock: @escaping @Sendable () -> Int = SandboxSite.systemTime
    ) {
        self.options = options
        self.clock = clock
    }

    /// Starts to respond. The issuers' URLs begin with the origin (`http://127.0.0.1:8080`, no final slash), which is
    /// known only once the server listens.
    /// - Parameter publicOrigin: the URLs begin with this one instead, that of a server in front of this one.
    public func open(at origin: String, publicOrigin: String? = nil) {
        let first = publicOrigin ?? origin
        let providers = options.issuerPaths.map { prefix in
            (prefix, SandboxProvider(origin: first, prefix: prefix, options: options, clock: clock))
        }
        let port = (try? WebURL(parsing: origin))?.port.map { ":\($0)" } ?? ""
        var authorities = Set(["127.0.0.1", "[::1]", "localhost"].map { $0 + port })
        if let authority = publicOrigin?.split(separator: "/").last { authorities.insert(authority.lowercased()) }
        let opened = Place(
            authorities: authorities, issuers: options.issuerPaths.map { first + $0 },
            providers: Dictionary(providers) { first, _ in first })
        place.withLock { $0 = opened }
    }

    public var issuers: [String] { place.withLock { $0?.issuers ?? [] } }

    public func respond(to request: ServerRequest) async -> ServerResponse {
        guard let place = place.withLock({ $0 }) else { return Responses.text("Not open yet.", status: 503) }
        // DNS rebinding: a web page whose name an attacker leads to loopback must not reach the sandbox.
        if let host = request.fields["Host"], !place.authorities.contains(host.lowercased()) {
            return Responses.text("The Host is not this server's.", status: 421)
        }
        if request.path == "/", request.method == "GET" {
            return Pages.index(issuers: place.issuers, users: options.users, clients: options.clients)
        }
        let (prefix, path) = route(request.path, place)
        guard let provider = place.providers[prefix] else { return Responses.nothing }
        return await provider.respond(to: request, path: path)
    }

    private func route(_ path: String, _ place: Place) -> (prefix: String, path: String) {
        // RFC 8414 section 3.1 puts the well-known part between host and path.
        let inserted = "/.well-known/oauth-authorization-server"
        if path == inserted || path.hasPrefix(inserted + "/") {
            return (String(path.dropFirst(inserted.count)), Endpoint.discovery.path)
        }
        let prefix = place.providers.keys.filter { !$0.isEmpty && path.hasPrefix($0 + "/") }.max { $0.count < $1.count }
        return (prefix ?? "", String(path.dropFirst(prefix?.count ?? 0)))
    }

    /// Unix seconds.
    public static func systemTime() -> Int {
        var now = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &now)
        return now.tv_sec
    }
}
