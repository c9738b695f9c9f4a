internal import BrokerCore
internal import LocalHTTP
internal import RingbackAPI
internal import StrictJSON

/// One operation of the socket API. Everything about it is stated here: the router, the policy check, the rejection of
/// unknown members and the OpenAPI document are derived from the list of routes.
struct Route: Sendable {
    typealias Handler = @Sendable (SocketAPI, Call) async throws(Problem) -> ServerResponse

    /// The members that a request's body may have. Others are rejected.
    enum Body: Sendable {
        case none
        case members([Member])
        /// An object with any members.
        case open
    }

    /// The content of a successful response.
    enum Content: Sendable {
        case json(Component)
        /// Text of a media type.
        case text(String)
        /// Server-sent events; the component is one event.
        case events(Component)

        /// The component that the content is described by; nil for text.
        var component: Component? {
            switch self {
            case .json(let component), .events(let component): component
            case .text: nil
            }
        }
    }

    let endpoint: Endpoint
    let summary: String
    /// The parameters that the query may have. Others are rejected.
    let query: [Member]
    let body: Body
    /// The statuses of success.
    let statuses: [Int]
    let content: Content
    /// The problems that the operation may get, besides those that any request may.
    let errors: Set<ErrorCode>
    let handler: Handler

    init<Owner: Resource>(
        _ endpoint: Endpoint, _ summary: String, query: [Member] = [], body: Body = .none, statuses: [Int] = [200],
        _ content: Content, errors: Set<ErrorCode> = [],
        _ handler: @escaping @Sendable (Owner) -> @Sendable (Call) async throws(Problem) -> ServerResponse
    ) {
        self.endpoint = endpoint
        self.summary = summary
        self.query = query
        self.body = body
        self.statuses = statuses
        self.content = content
        self.errors = errors
        self.handler = { (api, call) async throws(Problem) in try await handler(Owner(api: api))(call) }
    }

    /// The names of the body's members, sorted; nil if it may have any.
    var bodyMembers: [String]? {
        switch body {
        case .none: []
        case .members(let members): members.map(\.name).sorted()
        case .open: nil
        }
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
}
