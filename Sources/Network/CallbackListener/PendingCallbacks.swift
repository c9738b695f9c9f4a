internal import Glibc
internal import LocalHTTP
internal import RingbackBase
internal import SignInPage
internal import Synchronization

/// The open ports and the flows that are pending at them. The listener binds and closes ports.
final class PendingCallbacks: Sendable {
    /// A redirect URI without a pending flow, whose port may be closed later.
    struct Release: Sendable, Equatable {
        let port: Int
        fileprivate let redirectURI: String
        fileprivate let generation: Int
    }

    private struct State {
        var ports: [Int: CallbackPort] = [:]
        /// By the redirect URI that `add` returned.
        var places: [String: (port: Int, place: CallbackPort.Place)] = [:]
        var isShutDown = false
    }

    private let state = Mutex(State())
    private let visit: LoopbackListener.Visit
    private let deliver: LoopbackListener.Delivery

    init(visit: @escaping LoopbackListener.Visit, deliver: @escaping LoopbackListener.Delivery) {
        self.visit = visit
        self.deliver = deliver
    }

    var isShutDown: Bool { state.withLock { $0.isShutDown } }

    /// Sorted.
    var addresses: [String] {
        let ports = state.withLock { Array($0.ports.values) }
        return ports.sorted { $0.number < $1.number }.flatMap { port in
            Family.allCases.filter(port.families.contains).map { family in
                family == .ipv4 ? "127.0.0.1:\(port.number)" : "[::1]:\(port.number)"
            }
        }
    }

    /// An open free port on these families.
    func sharedPort(on families: Set<Family>) -> Int? {
        state.withLock { state in
            state.ports.values.filter { $0.isFree && $0.families.isSuperset(of: families) }.map(\.number).min()
        }
    }

    func families(of port: Int) -> Set<Family> { state.withLock { $0.ports[port]?.families ?? [] } }

    /// The port is already bound on all its families. Returns the redirect URI.
    func add(_ binding: CallbackBinding, at number: Int, serving site: LocalSite? = nil) -> String {
        state.withLock { state in
            let place = CallbackPort.Place(authority: binding.authority(port: number), path: binding.path)
            let redirectURI = binding.redirectURI(port: number)
            var port = state.ports[number] ?? CallbackPort(number: number, isFree: binding.port == 0)
            port.families.formUnion(binding.families)
            port.authorities[place.authority, default: []].formUnion(binding.families)
            let base = String(redirectURI.prefix { $0 != "?" })
            var waiting = port.waiting[place] ?? .init(base: base, entranceKey: binding.entranceKey)
            waiting.site = site
            // The rules of the owner's earlier flow no longer apply.
            let count = waiting.rules[binding.owner]?.count ?? 0
            waiting.rules[binding.owner] = CallbackPort.Rule(
                count: count + 1, acceptsPost: binding.acceptsPost, peerUIDs: binding.peerUIDs)
            waiting.generation += 1
            port.waiting[place] = waiting
            state.ports[number] = port
            state.places[redirectURI] = (number, place)
            return redirectURI
        }
    }

    /// Returns a release if it was the last flow of the redirect URI. The entry stays for a while even then: a browser
    /// that repeats its callback is redirected as after the first one.
    func remove(_ redirectURI: String, of owner: String) -> Release? {
        state.withLock { state in
            guard let (number, place) = state.places[redirectURI],
                var waiting = state.ports[number]?.waiting[place], var rule = waiting.rules[owner], rule.count > 0
            else { return nil }
            rule.count -= 1
            waiting.rules[owner] = rule
            waiting.generation += 1
            state.ports[number]?.waiting[place] = waiting
            guard waiting.count == 0 else { return nil }
            return Release(port: number, redirectURI: redirectURI, generation: waiting.generation)
        }
    }

    /// Removes an entry that is unused since its release. True if it was its port's last one: the port must be closed.
    func forget(_ release: Release) -> Bool {
        state.withLock { state in
            guard let (number, place) = state.places[release.redirectURI],
                state.ports[number]?.waiting[place]?.generation == release.generation
            else { return false }
            state.places[release.redirectURI] = nil
            state.ports[number]?.waiting[place] = nil
            guard state.ports[number]?.waiting.isEmpty == true else { return false }
            state.ports[number] = nil
            return true
        }
    }

    /// Removes everything and accepts no more flows.
    func shutDown() { state.withLock { $0 = State(isShutDown: true) } }

    func answer(_ request: ServerRequest) async -> ServerResponse {
        let language = PageLanguage(preferredBy: request.fields)
        guard case .network(_, _, _, let number) = request.peer, let port = state.withLock({ $0.ports[Int(number)] })
        else { return CallbackPages.refusal(404, in: language) }
        switch CallbackGate(port: port, user: getuid()).judge(request, owner: request.owner) {
        case .refused(let status): return CallbackPages.refusal(status, in: language)
        case .page(let content): return CallbackPages.response(content, in: language)
        case .callback(let arrival):
            let outcome = await deliver(arrival)
            if let next = outcome.next { return CallbackPages.seePage(next) }
            if let content = outcome.content { return see(content, at: port.number) }
            // Redirect even without a query: the fragment, which is not sent to a server, may hold a token.
            guard request.method == "GET" || request.query != nil else {
                return CallbackPages.refusal(404, in: language)
            }
            return CallbackPages.away
        case .stray(let arrival, let status):
            let content = await deliver(arrival).content
            // A page that probes must not learn from the status where a flow is pending.
            if let status { return CallbackPages.refusal(status, in: language) }
            return content.map { see($0, at: port.number) } ?? CallbackPages.away
        case .entrance(let visited):
            switch await visit(visited) {
            case .redirected(let page): return CallbackPages.seeOther(page)
            case .completed(let signIn): return see(PageContent(.done, of: signIn), at: port.number)
            case .spent:
                if case .foreign = visited { return CallbackPages.refusal(404, in: language) }
                return CallbackPages.response(PageContent(.used), in: language)
            }
        case .site(let site):
            // A site's links have no query. A query may hold a code, so remove it from the address bar.
            if request.method == "GET", request.query != nil { return CallbackPages.seePage("/") }
            let asked = HTTPRequest(
                method: request.method, url: request.path, fields: request.fields, body: Secret(bytes: request.body))
            return ServerResponse(await site(asked))
        case .unmatched: return CallbackPages.away
        }
    }

    /// Also if the port was closed meanwhile: the address with the code is left.
    private func see(_ content: PageContent, at port: Int) -> ServerResponse {
        let path = state.withLock { $0.ports[port]?.path(of: content) } ?? content.page.path
        return path.map(CallbackPages.seePage) ?? CallbackPages.away
    }
}

/// A request that passed all checks of the listener and matches the redirect URI of a pending flow, or one that failed
/// the check of its ``obstacle``. It contains a code, so it prints as `<callback>`.
public struct CallbackArrival: Sendable, CustomStringConvertible, CustomReflectable {
    /// The redirect URI with the query that arrived.
    public let url: String
    /// Of a `form_post` response, undecoded.
    public let form: [UInt8]?
    /// Those whose rules admit the request, see ``CallbackBinding/owner``. It may answer only their flows.
    public let owners: Set<String>
    /// Why it may complete no flow; nil if it may.
    public private(set) var obstacle: Obstacle?

    /// A check that a request failed, though it may have come from the browser of a pending sign-in.
    public enum Obstacle: Sendable {
        /// No pending flow has this path.
        case otherPath
        /// A POST where none is awaited.
        case posted
        /// Not a top-level navigation of a document.
        case notNavigated
    }

    public var description: String { "<callback>" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// A request for a start address, see ``LoopbackListener/openEntrance(key:beside:owner:peerUIDs:)``.
public enum EntranceVisit: Sendable, Equatable {
    /// A top-level navigation of an allowed user.
    case opened(key: String)
    /// A GET from another user, or on a closed connection, whose user is unknown. It changes nothing.
    case foreign(key: String, uid: UInt32?)
}

public enum EntranceOutcome: Sendable, Equatable {
    /// To this URL.
    case redirected(to: String)
    /// The sign-in has succeeded already.
    case completed(SignInLabel)
    case spent
}

/// What a page says of a sign-in. It escapes the texts.
public struct SignInLabel: Sendable, Hashable {
    /// The account's display name or name, as configured.
    public let account: String
    /// Nil if it is not known.
    public let providerHost: String?
    /// The address or name of the user who has signed in; nil if it is not known.
    public let user: String?
    /// The time that the sign-in had; nil if it is not known.
    public let seconds: Int?

    public init(account: String, providerHost: String?, user: String? = nil, seconds: Int? = nil) {
        self.account = account
        self.providerHost = providerHost
        self.user = user
        self.seconds = seconds
    }
}

/// The result of a callback for the browser's page.
public struct CallbackOutcome: Sendable, Equatable {
    /// Nil if the callback matched no pending flow and changed nothing.
    public let page: Page?
    /// Nil if it is not known.
    public let signIn: SignInLabel?
    /// The daemon's own page where the sign-in goes on.
    public let next: String?

    public init(_ page: Page?, of signIn: SignInLabel? = nil, next: String? = nil) {
        self.page = page
        self.signIn = signIn
        self.next = next
    }

    /// Nil if it belongs to no flow.
    var content: PageContent? { page.map { PageContent($0, of: signIn) } }
}
