// A site is everything below `http://NAME.localhost:PORT/`, for one sign-in. Its name is random, so what a browser keeps
// for it (cookies, passwords) is apart from that of every other program of this machine.

internal import Glibc
public import HTTPMessages
internal import LocalHTTP
internal import Secrets

/// What answers the requests to a site. They have passed the checks of the listener: the user, the Host field, and that
/// it is a top-level navigation. The request's URL is the path, without a query.
public typealias LocalSite = @Sendable (HTTPRequest) async -> HTTPResponse

extension LoopbackListener {
    /// Serves a site at a free port, on 127.0.0.1 and [::1]: browsers try both for names below `localhost` (RFC 6761
    /// section 6.3), so neither may be left to another program. Where the machine has no IPv6, on 127.0.0.1 only. Returns
    /// the site's origin and a slash; ends with ``close(_:owner:)``. Throws ``CallbackListenerError``.
    ///
    /// - Parameter name: a label of a host name, which nobody can guess.
    public func openSite(
        _ name: String, owner: String = "", peerUIDs: Set<UInt32> = [], serving site: @escaping LocalSite
    ) throws(CallbackListenerError) -> String {
        do throws(CallbackListenerError) {
            return try open(try .site(name, owner, peerUIDs, on: [.ipv4, .ipv6]), serving: site)
        } catch {
            guard case .system(_, _, _, let code) = error, [EADDRNOTAVAIL, EAFNOSUPPORT].contains(code) else {
                throw error
            }
            return try open(try .site(name, owner, peerUIDs, on: [.ipv4]), serving: site)
        }
    }
}

extension CallbackPort {
    /// The site of a Host field, whatever the path.
    func site(at authority: String) -> Waiting? {
        guard let waiting = waiting[Place(authority: authority, path: "/")], waiting.site != nil else { return nil }
        return waiting
    }
}

extension ServerRequest {
    /// The request as a site gets it.
    var forSite: HTTPRequest {
        HTTPRequest(method: method, url: path, fields: fields, body: Secret(bytes: body))
    }
}

extension ServerResponse {
    /// A site's response, with the fields that every page has.
    init(_ response: HTTPResponse) {
        var fields = CallbackPages.fieldsOfSites
        for line in response.fields.lines { fields.set(line.name, line.value) }
        self.init(status: response.status, fields: fields, body: response.body.revealedBytes())
    }
}
