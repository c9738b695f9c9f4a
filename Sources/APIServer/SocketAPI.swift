public import BrokerCore
public import DeepLinks
internal import Glibc
public import HTTPMessages
public import LocalHTTP
internal import RingbackAPI
public import StrictJSON

/// The socket API: requests become calls of the broker, and what the broker says becomes JSON.
public struct SocketAPI: Sendable {
    /// Tells a person what came of a callback of the account, with a sentence for them where there is one; true if
    /// they see it.
    public typealias CallbackTeller =
        @Sendable (CallbackVerdict, _ account: AccountName?, _ message: String?) async -> Bool

    /// What the daemon's main knows and the broker does not.
    public struct Daemon: Sendable {
        public var version: String
        /// Milliseconds since boot, as ``BrokerClock/boot`` tells them.
        let boot: @Sendable () -> Int
        /// When this value was made: with the daemon.
        let startedAtBoot: Int
        /// Where its files are, for people who look for them.
        public var places: [Place]?
        /// Unix seconds: when the configuration that is in force was read.
        public var configurationReadAt: @Sendable () -> Int? = { nil }
        /// How providers are reached.
        public var network: @Sendable () -> Network = { Network() }
        /// Re-reads the configuration.
        public var reload: @Sendable () async -> Reloaded
        /// Reads a file of certificates that an account to come is to believe, as the configuration would.
        public var certificates: @Sendable (_ path: String) throws(UntrustedFile) -> ServerTrust
        /// Reads an account that is not configured yet, by the rules of the configuration.
        public var readAccount: @Sendable (AccountName, _ text: String) throws(UnusableAccount) -> Account = {
            _, _ throws(UnusableAccount) in throw UnusableAccount(errors: [])
        }
        /// The restricted sockets, and where they are. Without them there are none.
        public var exposedSockets: ExposedSocketRegistry?
        public var exposedAt: @Sendable (ExposedSocket) -> ExposedPlace? = { _ in nil }
        /// Tells the person on their desktop what came of a callback; true if a notice says it.
        public var tellOfCallback: CallbackTeller = { _, _, _ in false }

        public init(
            version: String, boot: @escaping @Sendable () -> Int = BrokerClock.system.boot,
            certificates: @escaping @Sendable (_ path: String) throws(UntrustedFile) -> ServerTrust,
            reload: @escaping @Sendable () async -> Reloaded
        ) {
            self.version = version
            self.boot = boot
            startedAtBoot = boot()
            self.certificates = certificates
            self.reload = reload
        }
    }

    /// What became of reading the configuration again.
    public struct Reloaded: Sendable {
        /// The mistakes as problem members (`file`, `line`, `key`, `message`); with any, nothing was changed.
        public var errors: [JSON]
        /// The tables whose changes take effect with the daemon's next start alone.
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
    /// Without one, every URL from outside is taken for a callback.
    let deepLinks: DeepLinkRegistry?
    /// The daemon's own user: with root, all who connect.
    let owner: UInt32
    let encoded = EncodedTokens()
    let diagnosticLinks: DiagnosticLinks

    /// - Parameter records: the same that the broker tells its facts to. Without them there is no audit and no metrics.
    public init(
        broker: Broker, policy: Policy, daemon: Daemon, records: RecordKeeper? = nil, owner: UInt32? = nil,
        deepLinks: DeepLinkRegistry? = nil
    ) {
        self.owner = owner ?? getuid()
        self.broker = broker
        self.policy = policy
        self.daemon = daemon
        diagnosticLinks = DiagnosticLinks(uptime: { [boot = daemon.boot] in boot() / 1_000 })
        self.records = records
        self.deepLinks = deepLinks
        // A route that is missing ends the daemon at its start, not with a request.
        _ = Router.shared
        records?.whenGone { [encoded] in encoded.forget($0) }
    }

    /// A server of this API. Only the owner of the process and root connect.
    public func server() -> HTTPServer {
        var limits = ServerLimits()
        limits.writeTimeout = .seconds(30)
        limits.cancelsAtShutdown = true
        return HTTPServer(
            limits: limits,
            accepts: { [owner] peer in
                guard case .local(let uid, _) = peer else { return false }
                return uid == owner || uid == 0
            },
            refusal: SocketAPI.refusal, immediate: immediate, handler: respond)
    }

    /// What broke HTTP or a limit before it became a request.
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

    // MARK: The way of a request

    @Sendable func respond(_ request: ServerRequest) async -> ServerResponse {
        do throws(Problem) {
            try refuseBrowsers(request)
            switch Router.shared.match(method: request.method, path: request.path) {
            case .nothing: throw Problem(.notFound, "See /v1/openapi.json for what there is.")
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

    /// A web page that reaches the socket through some proxy is not a local program.
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

    private func authorize(
        _ request: ServerRequest, _ operation: RingbackAPI.Operation, _ account: String?
    ) throws(Problem) -> ConnectionFacts {
        guard let facts = admit(request, account: account, operation: operation) else {
            throw Problem(.policyDenied, "The policy does not allow \(operation.rawValue) to this program.")
        }
        return facts
    }

    /// Seconds since the start, by no clock that a user sets.
    var uptime: Int { max(daemon.boot() - daemon.startedAtBoot, 0) / 1_000 }

    /// What a person should know unasked of restricted sockets that are not there.
    func exposureTroubles() async -> [ClosedSocket] {
        await daemon.exposedSockets?.missing.filter(\.isTrouble) ?? []
    }
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
}
