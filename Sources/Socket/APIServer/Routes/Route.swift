internal import BrokerCore
internal import LocalHTTP
internal import RingbackAPI
internal import RingbackBase

/// One operation of the socket API: router, policy check, rejection of unknown members and OpenAPI are derived from it.
struct Route: Sendable {
    typealias Handler = @Sendable (SocketAPI, Call) async throws(Problem) -> ServerResponse

    enum Content: Sendable {
        case json(Component)
        case text(String)
        /// Server-sent events; the component is one event.
        case events(Component)

        var component: Component? {
            switch self {
            case .json(let component), .events(let component): component
            case .text: nil
            }
        }

        /// A document that only this route has.
        static func json(_ name: String, _ members: [Member]...) -> Content {
            .json(Component(name, .object(members.flatMap { $0 })))
        }
    }

    let endpoint: Endpoint
    let summary: String
    let query: [Member]
    /// The members that the body may have; nil if it may have any. Others are rejected.
    let body: [Member]?
    let statuses: [Int]
    let content: Content
    let errors: Set<ErrorCode>
    let handler: Handler
    var bodyMembers: [String]? { body?.map(\.name).sorted() }
}

extension Route {
    init<Owner: Resource>(
        _ endpoint: Endpoint, _ summary: String, query: [Member] = [], body: [Member]? = [], statuses: [Int] = [200],
        _ content: Content, errors: Set<ErrorCode> = [],
        _ handler: @escaping @Sendable (Owner) -> @Sendable (Call) async throws(Problem) -> ServerResponse
    ) {
        self.init(
            endpoint: endpoint, summary: summary, query: query, body: body, statuses: statuses, content: content,
            errors: errors,
            handler: { (api, call) async throws(Problem) in try await handler(Owner(api: api))(call) })
    }

    init(
        _ endpoint: Endpoint, _ summary: String, query: [Member] = [], body: [Member]? = [], status: Int = 200,
        _ content: Content, errors: Set<ErrorCode> = [],
        _ members: @escaping @Sendable (Broker, Call) async throws(Problem) -> JSONObject
    ) {
        self.init(
            endpoint: endpoint, summary: summary, query: query, body: body, statuses: [status], content: content,
            errors: errors,
            handler: { (api, call) async throws(Problem) in
                ServerResponse(status: status, try await members(api.broker, call))
            })
    }
}

/// A resource of the API: its routes, and their handlers in the same file.
protocol Resource: Sendable {
    var api: SocketAPI { get }
    init(api: SocketAPI)

    static var routes: [Route] { get }
}

extension Resource {
    var broker: Broker { api.broker }
    var daemon: SocketAPI.Daemon { api.daemon }
    var records: RecordKeeper? { api.records }

    func kept() throws(Problem) -> RecordKeeper {
        guard let records else { throw Problem(.notFound, "This daemon keeps no records.") }
        return records
    }
}

struct Router: Sendable {
    enum Match: Sendable {
        case route(Route, [String: String])
        /// The path exists with other methods, sorted.
        case otherMethods([String])
        case nothing
    }

    private struct Row: Sendable {
        let route: Route
        let method: String
        let segments: [Segment]
    }

    private enum Segment: Sendable, Equatable {
        case text(Substring)
        case parameter(String)

        init(_ segment: Substring) {
            self = if let name = Endpoint.parameter(segment) { .parameter(name) } else { .text(segment) }
        }
    }

    private let rows: [Row]
    private let byEndpoint: [Endpoint: Route]

    /// - Precondition: every endpoint has one route.
    init(_ resources: [any Resource.Type]) {
        var byEndpoint: [Endpoint: Route] = [:]
        for route in resources.flatMap({ $0.routes }) {
            precondition(
                byEndpoint.updateValue(route, forKey: route.endpoint) == nil,
                "The endpoint \(route.endpoint) has two routes.")
        }
        for endpoint in Endpoint.allCases {
            precondition(byEndpoint[endpoint] != nil, "The endpoint \(endpoint) has no route.")
        }
        self.byEndpoint = byEndpoint
        rows = byEndpoint.values
            .sorted {
                ($0.endpoint.path, $0.endpoint.method.rawValue) < ($1.endpoint.path, $1.endpoint.method.rawValue)
            }
            .map { route in
                let path = route.endpoint.path
                let segments = path.split(separator: "/", omittingEmptySubsequences: false).map(Segment.init)
                return Row(route: route, method: route.endpoint.method.rawValue, segments: segments)
            }
    }

    var routes: [Route] { rows.map(\.route) }

    subscript(endpoint: Endpoint) -> Route? { byEndpoint[endpoint] }

    /// Finds the route of a request. Parameters are not unescaped, since names need no escapes.
    func match(method: String, path: String) -> Match {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false)
        var methods: [String] = []
        var found: [Segment]?
        for row in rows {
            guard let parameters = Router.parameters(of: segments, row.segments) else { continue }
            // A text stands before a parameter: `/v1/consents/remembered` is no consent of this name.
            if let found, found != row.segments { break }
            found = row.segments
            if row.method == method { return .route(row.route, parameters) }
            methods.append(row.method)
        }
        return methods.isEmpty ? .nothing : .otherMethods(methods)
    }

    private static func parameters(of path: [Substring], _ pattern: [Segment]) -> [String: String]? {
        guard pattern.count == path.count else { return nil }
        var parameters: [String: String] = [:]
        for (expected, found) in zip(pattern, path) {
            switch expected {
            case .text(let text): guard text == found else { return nil }
            case .parameter(let name):
                guard !found.isEmpty else { return nil }
                parameters[name] = String(found)
            }
        }
        return parameters
    }

    static let shared = Router([
        DescriptionResource.self, StatusResource.self, AccountResource.self, SignInResource.self, FlowResource.self,
        FlowPageResource.self, CallbackResource.self, SessionResource.self, UserResource.self, IdentityResource.self,
        FactorResource.self, PasskeyResource.self, EventResource.self, DeepLinkResource.self, RecordResource.self,
        VaultResource.self, RegistrationResource.self, SealedSessionResource.self, DiagnosticsResource.self,
        ExposedSocketResource.self, ConsentResource.self, KeptFileResource.self, HostResource.self, LookupResource.self,
        MCPServerResource.self, ProofResource.self,
    ])
}

extension Set<ErrorCode> {
    static let ofAccount: Set<ErrorCode> = [.accountNotFound]
    /// Of an operation that needs a token of an account's session.
    static let ofToken = ofAccount.and(ofProvider).and([
        .signInRequired, .sessionExpired, .refreshRefused, .stateConflict, .validationFailed,
    ])
    static let ofProvider: Set<ErrorCode> = [
        .providerError, .invalidProviderResponse, .providerUnreachable, .rateLimited, .invalidConfiguration,
        .vaultLocked, .vaultUnreachable, .timeout,
    ]
    /// Of an operation that asks a Supabase project with an account's session.
    static let ofSession = ofAccount.and(ofProvider).and([
        .signInRequired, .sessionExpired, .refreshRefused, .methodUnsupported, .validationFailed, .stateConflict,
        .accessDenied, .invalidCredentials, .notFound, .userNotFound, .weakPassword, .emailAlreadyInUse,
        .passwordResetFailed,
        .payloadTooLarge, .flowExpired, .invalidCallback,
    ])
    /// Of an operation that may begin or continue a flow at a Supabase project.
    static let ofFlow = ofSession.and([.flowNotFound, .portInUse])
    static let ofVault: Set<ErrorCode> = [.vaultLocked, .vaultUnreachable, .stateConflict, .shuttingDown, .timeout]
    static let ofRegistration = ofProvider.and([.validationFailed, .stateConflict])
    func and(_ others: Set<ErrorCode>) -> Set<ErrorCode> { union(others) }
}
