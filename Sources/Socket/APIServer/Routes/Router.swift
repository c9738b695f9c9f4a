internal import RingbackAPI

/// Finds the route of a request. It is made once, from the lists of all resources.
struct Router: Sendable {
    /// The result of looking up a path.
    enum Match: Sendable {
        /// The route, and its parameters by name.
        case route(Route, [String: String])
        /// The path exists with other methods, sorted.
        case otherMethods([String])
        case nothing
    }

    /// A route with its path in segments.
    private struct Row: Sendable {
        let route: Route
        let method: String
        let segments: [Segment]
    }

    private enum Segment: Sendable {
        case text(Substring)
        case parameter(String)

        init(_ segment: Substring) {
            self = if let name = Endpoint.parameter(segment) { .parameter(name) } else { .text(segment) }
        }
    }

    /// By path, then method.
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

    /// Every route, by path, then method.
    var routes: [Route] { rows.map(\.route) }

    /// The route of an endpoint. Every endpoint has one.
    subscript(endpoint: Endpoint) -> Route? { byEndpoint[endpoint] }

    /// Finds the route of a request. Parameters are not unescaped, since names need no escapes.
    func match(method: String, path: String) -> Match {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false)
        var methods: [String] = []
        for row in rows {
            guard let parameters = Router.parameters(of: segments, row.segments) else { continue }
            if row.method == method { return .route(row.route, parameters) }
            methods.append(row.method)
        }
        return methods.isEmpty ? .nothing : .otherMethods(methods)
    }

    /// The values of a pattern's parameters; nil if the path is another one.
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
}

extension Router {
    /// The router of the socket API.
    static let shared = Router([
        DescriptionResource.self, StatusResource.self, AccountResource.self, SignInResource.self, FlowResource.self,
        CallbackResource.self, SessionResource.self, UserResource.self, IdentityResource.self, FactorResource.self,
        PasskeyResource.self, EventResource.self, DeepLinkResource.self, RecordResource.self, VaultResource.self,
        RegistrationResource.self, SealedSessionResource.self, DiagnosticsResource.self, ExposedSocketResource.self,
        KeptFileResource.self, HostResource.self, LookupResource.self, MCPServerResource.self,
    ])
}
