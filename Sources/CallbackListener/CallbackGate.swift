// The checks of a request, in their order. Each of them stops somebody: another user of the machine, a web page whose
// name was rebound to this address, a page that loads the address as an image or frame, a browser that looks ahead.
// Whoever is stopped learns nothing: neither that a flow waits, nor where.

internal import HTTPMessages
internal import LocalHTTP

/// One open port: the redirect URIs that flows wait behind.
struct CallbackPort: Sendable {
    struct Place: Hashable, Sendable {
        /// The Host field.
        let authority: String
        let path: String
    }
    struct Waiting: Sendable {
        /// The redirect URI without its query.
        var base: String
        /// The flows that wait; 0 for a while after the last.
        var count = 1
        /// Changes whenever a flow comes or goes: an older timer's time is over.
        var generation = 0
        var acceptsPost: Bool
        var peerUIDs: Set<UInt32>
        /// Of an address that leads out: see ``CallbackBinding/entrance(key:beside:peerUIDs:)``.
        var entranceKey: String?
    }

    let number: Int
    /// Opened for whoever needs any port, and shared among them.
    let isFree: Bool
    var families: Set<Family> = []
    var waiting: [Place: Waiting] = [:]
    /// The Host fields of all redirect URIs since the port was opened, with the families they were bound on.
    var authorities: [String: Set<Family>] = [:]
}

/// Judges requests to one port.
struct CallbackGate {
    enum Verdict {
        case refused(Int)
        case page(ServerResponse)
        case callback(CallbackArrival)
        case entrance(EntranceVisit)
        /// Nothing waits there; its query may hold a code, and must not stay in the browser's address line.
        case astray
    }

    let port: CallbackPort
    /// The daemon's own user.
    let user: UInt32

    /// What to do with a request. `owner` is the uid of the client's socket, nil if it is nobody's.
    func judge(_ request: ServerRequest, owner: UInt32?) -> Verdict {
        let hosts = request.fields[all: "Host"]
        let place = CallbackPort.Place(authority: hosts.first ?? "", path: request.path)
        let waiting = port.waiting[place]
        // State is not secret from other users of the machine; the right to a socket is.
        guard let owner, owner == user || peerUIDs(at: place.path, waiting).contains(owner) else {
            guard request.method == "GET", let key = waiting?.entranceKey else { return .refused(404) }
            return .entrance(.foreign(key: key, uid: owner))
        }
        // DNS rebinding: a page at evil.example that became 127.0.0.1 still says evil.example here.
        guard hosts.count == 1, port.authorities[place.authority]?.contains(request.family) == true else {
            return .refused(421)
        }
        // A service worker would outlive the flow and see the next program's requests on this port.
        guard !request.fields.contains("Service-Worker") else { return .refused(404) }
        switch request.method {
        case "GET": break
        case "POST" where waiting?.acceptsPost == true: break
        default: return .refused(405)
        }
        // Not 403: a page that probes must not learn from the difference where a flow waits.
        guard isTopLevelNavigation(request.fields), !isLookingAhead(request.fields) else { return .refused(404) }
        guard let waiting else {
            if let page = CallbackPages.own[place.path] { return .page(page) }
            return request.query == nil ? .refused(404) : .astray
        }
        if let key = waiting.entranceKey { return .entrance(.opened(key: key)) }
        let url = waiting.base + (request.query.map { "?\($0)" } ?? "")
        guard request.method == "POST" else { return .callback(CallbackArrival(url: url, form: nil)) }
        guard isForm(request.fields) else { return .refused(415) }
        return .callback(CallbackArrival(url: url, form: request.body))
    }

    /// Who may ask beside the daemon's own user. A callback's browser is sent on to a page, where no flow waits: pages are
    /// for all whose callbacks count here.
    private func peerUIDs(at path: String, _ waiting: CallbackPort.Waiting?) -> Set<UInt32> {
        if let waiting { return waiting.peerUIDs }
        guard CallbackPages.own[path] != nil else { return [] }
        return port.waiting.values.reduce(into: []) { $0.formUnion($1.peerUIDs) }
    }

    /// Fetch Metadata: browsers say what a request is for, and no page can make them lie.
    private func isTopLevelNavigation(_ fields: HTTPFields) -> Bool {
        fields[all: "Sec-Fetch-Mode"].allSatisfy { $0 == "navigate" }
            && fields[all: "Sec-Fetch-Dest"].allSatisfy { $0 == "document" }
    }

    /// Prefetching and prerendering, in the words of browsers old and new.
    private func isLookingAhead(_ fields: HTTPFields) -> Bool {
        ["Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"].contains { name in
            fields[all: name].contains { value in
                let value = value.lowercased()
                return value.contains("prefetch") || value.contains("prerender") || value.contains("preview")
            }
        }
    }

    private func isForm(_ fields: HTTPFields) -> Bool {
        let types = fields[all: "Content-Type"]
        let type = types.first?.prefix { $0 != ";" && $0 != " " }.lowercased()
        return types.count == 1 && type == "application/x-www-form-urlencoded"
    }
}

extension ServerRequest {
    /// Which of our sockets it came to.
    fileprivate var family: Family {
        if case .network(_, _, let server, _) = peer, server.count == 16 { .ipv6 } else { .ipv4 }
    }
}
