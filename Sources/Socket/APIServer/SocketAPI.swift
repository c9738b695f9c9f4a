public import BrokerCore
public import DeepLinks
internal import Glibc
public import KeptFiles
public import LocalHTTP
internal import Records
internal import RingbackAPI
public import RingbackBase

/// The socket API: requests become calls of the broker, and its results become JSON.
public struct SocketAPI: Sendable {
    /// Shows the user the result of a callback of the account, and a message if there is one. True if a notice does.
    public typealias CallbackTeller =
        @Sendable (CallbackVerdict, _ account: AccountName?, _ message: String?) async -> Bool

    public struct Daemon: Sendable {
        public var version: String
        /// The commit that the daemon was built from, as `--version` shows it: `commit 1a2b3c4d5`, or `development`.
        public var build: String
        let clock: BrokerClock
        let startedAt: BootInstant
        public var places: [Place]?
        /// Unix seconds: when the current configuration was read.
        public var configurationReadAt: @Sendable () -> WallInstant? = { nil }
        /// Increases when a reload begins, and when it is done: what was made before is outdated. Nil: nothing is kept.
        public var configurationNumber: @Sendable () -> UInt64? = { nil }
        public var network: @Sendable () -> Network = { Network() }
        /// How many programs may be connected at a time; each takes one or two descriptors.
        public var maxConnections = 256
        public var reload: @Sendable () async -> Reloaded
        /// Reads a file of certificates for an account that is about to be added, by the configuration's own rules.
        public var certificates: @Sendable (_ path: String) throws(UntrustedFile) -> ServerTrust
        /// Reads an account that is not configured yet, by the rules of the configuration.
        public var readAccount: @Sendable (AccountName, _ text: String) throws(UnusableAccount) -> Account = {
            _, _ throws(UnusableAccount) in throw UnusableAccount(errors: [])
        }
        /// The restricted sockets, and where they are. If this is nil there are none.
        public var exposedSockets: ExposedSocketRegistry?
        /// Which token tools get for which server. If this is nil there are no origins.
        public var origins: OriginRegistry?
        /// Whether programs may use an account. If this is nil all may.
        public var consents: ConsentDesk?
        /// The program for which a process connected; tests replace it.
        var callingProgram: @Sendable (_ pid: Int32) -> CallingProgram? = { _ in nil }
        public var keptFiles: @Sendable () -> [KeptFileView] = { [] }
        /// The hosts that share the vault. If this is nil it is not shared.
        public var vaultHosts: (any VaultHosts)?
        /// Why the kernel does not confine this process; nil if it does.
        public var unconfined: String?
        public var exposedAt: @Sendable (ExposedSocket) -> ExposedPlace? = { _ in nil }
        public var tellOfCallback: CallbackTeller = { _, _, _ in false }
        /// Shows on the user's desktop that a server (its host) refused two tokens of an account in a row.
        public var tellOfRefusal: @Sendable (_ server: String, AccountName) -> Void = { _, _ in }
        /// Opens a page in the account's browser. Returns why it was not opened; nil if the browser was started.
        public var openPage: @Sendable (_ url: String, AccountName, _ activationToken: String?) async -> String? = {
            _, _, _ in "the program was not started: this daemon starts none"
        }

        public init(
            version: String, build: String, clock: BrokerClock = .system,
            certificates: @escaping @Sendable (_ path: String) throws(UntrustedFile) -> ServerTrust,
            reload: @escaping @Sendable () async -> Reloaded
        ) {
            self.version = version
            self.build = build
            self.clock = clock
            startedAt = clock.bootInstant
            self.certificates = certificates
            self.reload = reload
        }
    }

    public struct Reloaded: Sendable {
        /// The mistakes as problem members (`file`, `line`, `key`, `message`). If there are any, nothing was changed.
        public var errors: [JSON]
        /// The tables whose changes take effect only at the daemon's next start.
        public var restartNeeded: [String]

        public init(errors: [JSON] = [], restartNeeded: [String] = []) {
            self.errors = errors
            self.restartNeeded = restartNeeded
        }
    }

    let broker: Broker
    let policy: Policy
    let daemon: Daemon
    let records: RecordKeeper?
    /// If this is nil, every URL from outside is treated as a callback.
    let deepLinks: DeepLinkRegistry?
    /// The daemon's own user. Only this user and root may connect.
    let owner: UInt32
    let diagnosticLinks: DiagnosticLinks
    let mcpServers = KnownMCPServers()
    let recentFacts = RecentFacts()

    /// `records` get the broker's facts too. Without them there are no audit log and no metrics.
    public init(
        broker: Broker, policy: Policy, daemon: Daemon, records: RecordKeeper? = nil, owner: UInt32? = nil,
        deepLinks: DeepLinkRegistry? = nil
    ) {
        self.owner = owner ?? getuid()
        self.broker = broker
        self.policy = policy
        self.daemon = daemon
        diagnosticLinks = DiagnosticLinks(clock: daemon.clock)
        self.records = records
        self.deepLinks = deepLinks
        // A missing route ends the daemon at its start, not at a request.
        _ = Router.shared
    }

    /// Only the owner of the process and root connect. `isLost`: another process has shut the listening socket down.
    public func server(isLost: @escaping @Sendable () -> Void = {}) -> HTTPServer {
        var limits = ServerLimits()
        limits.cancelsAtShutdown = true
        limits.maxConnections = daemon.maxConnections
        PeerProcess.prepare()
        return HTTPServer(
            limits: limits,
            accepts: { [owner] peer in
                guard case .local(let uid, _) = peer else { return false }
                return uid == owner || uid == 0
            },
            refusal: SocketAPI.refusal, isLost: isLost, immediate: immediate, handler: respond)
    }

    @Sendable static func refusal(_ status: Int) -> ServerResponse {
        var problem =
            switch status {
            case 413: Problem(.payloadTooLarge, "A body may have 64 KiB.")
            case 503: Problem(.shuttingDown, "The daemon is shutting down.")
            default:
                Problem(
                    .invalidRequest,
                    "The request is not HTTP/1.1 as this daemon reads it. Bodies need Content-Length, not chunks.")
            }
        problem.status = status
        return problem.response
    }

    @Sendable func respond(_ request: ServerRequest) async -> ServerResponse {
        do throws(Problem) {
            try refuseBrowsers(request)
            switch Router.shared.match(method: request.method, path: request.path) {
            case .nothing: throw Problem(.notFound, "There is nothing at this path. See /v1/openapi.json.")
            case .otherMethods(let methods):
                var response = Problem(.methodNotAllowed, "Allowed: \(methods.joined(separator: ", ")).").response
                response.fields.set("Allow", methods.joined(separator: ", "))
                return response
            case .route(let route, let parameters):
                let facts = try authorize(request, route.endpoint.operation, parameters["account"])
                let call = try Call(request, route, parameters, facts)
                try call.refuseUnknownQuery()
                noteRequest(call)
                return try await route.handler(self, call)
            }
        } catch {
            return error.response
        }
    }

    /// Rejects requests of web pages: a page that reaches the socket through a proxy is not a local program.
    func refuseBrowsers(_ request: ServerRequest) throws(Problem) {
        for field in request.fields.lines where SocketAPI.isFromBrowser(field.name) {
            throw Problem(.policyDenied, "Requests of web pages are not served (field \(field.name)).")
        }
    }

    private static func isFromBrowser(_ name: String) -> Bool {
        switch name.utf8.count {
        case 6: HTTPFields.isSame(name, "Origin")
        case 7: HTTPFields.isSame(name, "Referer")
        case 10...: HTTPFields.isSame(String(name.prefix(10)), "Sec-Fetch-")
        default: false
        }
    }

    @discardableResult
    func authorize(
        _ request: ServerRequest, _ operation: PolicyOperation, _ account: String?
    ) throws(Problem) -> ConnectionFacts {
        guard let facts = admit(request, account: account, operation: operation) else {
            throw Problem(.policyDenied, "The policy does not allow \(operation.rawValue) to this program.")
        }
        return facts
    }

    /// Seconds since the start, independent of the wall clock.
    var uptime: Int { (daemon.clock.bootInstant - daemon.startedAt).wholeSeconds }

    func closedSockets() async -> [ClosedSocket] { await daemon.exposedSockets?.missing.filter(\.isTrouble) ?? [] }
}

extension Problem {
    var response: ServerResponse {
        var fields = HTTPFields([("Content-Type", "application/problem+json"), ("Cache-Control", "no-store")])
        if let retryAfter { fields.append("Retry-After", String(retryAfter)) }
        return ServerResponse(status: status, fields: fields, body: json.serialized())
    }
}

extension ServerResponse {
    static let jsonFields = HTTPFields([("Content-Type", "application/json"), ("Cache-Control", "no-store")])

    init(status: Int = 200, json: JSON) {
        self.init(status: status, fields: ServerResponse.jsonFields, body: json.serialized())
    }

    init(status: Int = 200, _ members: JSONObject) { self.init(status: status, json: .object(members)) }

    /// Server-sent events (WHATWG HTML section 9.2).
    init(events feed: EventFeed) {
        self.init(
            status: 200, fields: HTTPFields([("Content-Type", "text/event-stream"), ("Cache-Control", "no-store")]),
            stream: AsyncStream(unfolding: { await feed.next() }, onCancel: { feed.stop() }))
    }
}
