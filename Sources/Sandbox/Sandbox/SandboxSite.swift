internal import Glibc
internal import HTTPMessages
public import LocalHTTP
internal import Synchronization

/// A development identity provider: one server with an issuer at its root and others below path prefixes.
///
/// Written from the standards, independently of the client that is tested against it. Everything it knows is in memory,
/// its users have no passwords, and it shows its secrets to everybody: it must listen on loopback only.
public final class SandboxSite: Sendable {
    private struct Place {
        let authorities: Set<String>
        let issuers: [String]
        let providers: [String: SandboxProvider]
    }

    private let options: SandboxOptions
    private let clock: @Sendable () -> Int
    private let place = Mutex<Place?>(nil)

    /// - Parameters:
    ///   - options: users, clients, issuers and the switches at the start.
    ///   - clock: Unix seconds.
    public init(
        options: SandboxOptions = SandboxOptions(), clock: @escaping @Sendable () -> Int = SandboxSite.systemTime
    ) {
        self.options = options
        self.clock = clock
    }

    /// Starts to respond. The issuers' URLs begin with the origin (`http://127.0.0.1:8080`, no final slash), which is
    /// known only once the server listens.
    ///
    /// - Parameter publicOrigin: the issuers' URLs begin with this one instead, because a server in front of this one
    ///   passes requests on (`https://provider.test`).
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

    /// The issuers' URLs; none before ``open(at:)``.
    public var issuers: [String] { place.withLock { $0?.issuers ?? [] } }

    /// Responds to a request: the handler of an `HTTPServer`.
    public func respond(to request: ServerRequest) async -> ServerResponse {
        guard let place = place.withLock({ $0 }) else { return Responses.text("Not open yet.", status: 503) }
        // If an attacker lets a name point to loopback (DNS rebinding), the attacker's web page must not reach the
        // sandbox.
        if let host = request.fields["Host"], !place.authorities.contains(host.lowercased()) {
            return Responses.text("The Host is not this server's.", status: 421)
        }
        if request.path == "/", request.method == "GET" {
            return Pages.index(issuers: place.issuers, users: options.users, clients: options.clients)
        }
        let (prefix, path) = route(request.path, place)
        guard let provider = place.providers[prefix] else {
            return Responses.text("There is nothing here.", status: 404)
        }
        return await provider.respond(to: request, path: path)
    }

    /// The issuer's prefix, and the path below it.
    private func route(_ path: String, _ place: Place) -> (prefix: String, path: String) {
        // RFC 8414 section 3.1 puts the well-known part between host and path.
        let inserted = "/.well-known/oauth-authorization-server"
        if path == inserted || path.hasPrefix(inserted + "/") {
            return (String(path.dropFirst(inserted.count)), Endpoint.discovery.path)
        }
        let prefix = place.providers.keys.filter { !$0.isEmpty && path.hasPrefix($0 + "/") }.max { $0.count < $1.count }
        return (prefix ?? "", String(path.dropFirst(prefix?.count ?? 0)))
    }

    /// The system's time in Unix seconds.
    public static func systemTime() -> Int {
        var now = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &now)
        return now.tv_sec
    }
}
