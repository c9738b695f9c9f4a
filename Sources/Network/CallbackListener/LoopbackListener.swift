internal import Glibc
public import LocalHTTP
public import RingbackBase
public import ServiceLifecycle
internal import SignInPage
internal import Synchronization

/// The loopback listener for redirect URIs: one for all flows, on as many ports as they need. A port is open while a
/// flow is pending at it, and a minute longer to serve the last page. It is bound once and kept: if it were probed
/// first and bound later, another program could bind it in between.
public final class LoopbackListener: Service {
    /// The task is cancelled when the browser disconnects, so work that must be finished needs a task of its own.
    public typealias Delivery = @Sendable (CallbackArrival) async -> CallbackOutcome
    public typealias Visit = @Sendable (EntranceVisit) async -> EntranceOutcome
    /// Serializes opening and closing. ``PendingCallbacks`` has a separate lock: binding waits for the server's thread,
    /// and that thread may need ``listeners`` meanwhile.
    private let opening = Mutex(())
    private let pending: PendingCallbacks
    private let server: HTTPServer
    private let linger: Duration
    private let releases: AsyncStream<PendingCallbacks.Release>
    private let released: AsyncStream<PendingCallbacks.Release>.Continuation

    /// `linger` is how long a port's last pages are served after its last flow, because users reload them. `ownerOf`
    /// gives the uid that owns a client's socket; nil if it is unknown.
    public init(
        linger: Duration = .seconds(60), ownerOf: @escaping @Sendable (Peer) -> UInt32? = SocketOwner.uid(of:),
        visit: @escaping Visit = { _ in .spent }, deliver: @escaping Delivery
    ) {
        self.linger = linger
        pending = PendingCallbacks(visit: visit, deliver: deliver)
        server = HTTPServer(
            limits: LoopbackListener.limits, ownerOf: ownerOf,
            refusal: { CallbackPages.refusal($0, in: .english) }, handler: pending.answer)
        (releases, released) = AsyncStream.makeStream()
    }

    /// A browser sends its one request at once. The head may be large, because browsers send the cookies of all
    /// programs that used this host, whatever their port.
    private static let limits: ServerLimits = {
        var limits = ServerLimits()
        limits.maxHead = 65_536
        limits.maxBody = 65_536
        limits.requestTimeout = .seconds(5)
        limits.maxConnections = 64
        limits.isSingleRequest = true
        return limits
    }()

    /// `127.0.0.1:PORT`, `[::1]:PORT`.
    public var listeners: [String] { pending.addresses }

    /// Listens for a redirect URI or a start address before it returns the address with its port. Each call needs a
    /// call of ``close(_:)``; equal redirect URIs are counted. Throws ``CallbackListenerError``.
    public func open(
        _ binding: CallbackBinding, serving site: LocalSite? = nil
    ) throws(CallbackListenerError) -> String {
        let result: Result<String, CallbackListenerError> = opening.withLock { _ in
            Result { () throws(CallbackListenerError) in
                guard !pending.isShutDown else { throw .shuttingDown }
                return pending.add(binding, at: try bind(binding), serving: site)
            }
        }
        return try result.get()
    }

    /// Opens a start address `http://127.0.0.1:PORT/start/KEY`, which a program opens in the browser. The response
    /// redirects to the authorization URL, so that this URL appears in no argument list, which every user of the
    /// machine can read. Where 127.0.0.1 cannot be bound, it is at [::1]. Throws the error of 127.0.0.1 if neither can.
    /// The key is base64url, and must stay secret until it is used. `redirectURI` is the result of ``open(_:)``, or no
    /// loopback address.
    public func openEntrance(
        key: String, beside redirectURI: String, owner: String = "", peerUIDs: Set<UInt32> = []
    ) throws(CallbackListenerError) -> String {
        func open(_ family: Family) throws(CallbackListenerError) -> String {
            var binding = try CallbackBinding.entrance(key: key, beside: redirectURI, on: family)
            binding.owner = owner
            binding.peerUIDs = peerUIDs
            return try self.open(binding)
        }
        do throws(CallbackListenerError) {
            return try open(.ipv4)
        } catch {
            guard let url = try? open(.ipv6) else { throw error }
            return url
        }
    }

    /// Removes one of the owner's flows. After the port's last flow the port closes when ``linger`` has passed.
    public func close(_ redirectURI: String, owner: String = "") {
        guard let release = pending.remove(redirectURI, of: owner) else { return }
        released.yield(release)
    }

    /// Serves until it is cancelled or gracefully shut down. Then all ports are closed at once. Never throws.
    public func run() async throws {
        defer { pending.shutDown() }
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask { [self] in
                defer { released.finish() }
                try await withGracefulShutdownHandler {
                    try await server.run()
                } onGracefulShutdown: { [pending] in
                    pending.shutDown()
                }
            }
            for await release in releases {
                group.addTask { [self] in
                    guard (try? await ContinuousClock().sleep(for: linger)) != nil else { return }
                    retire(release)
                }
            }
            group.cancelAll()
        }
    }

    private func retire(_ release: PendingCallbacks.Release) {
        opening.withLock { _ in
            if pending.forget(release) { server.stopListening(port: release.port) }
        }
    }

    /// On all address families of the binding. Returns the port.
    private func bind(_ binding: CallbackBinding) throws(CallbackListenerError) -> Int {
        guard binding.port == 0 else {
            try bind(binding.port, on: binding.families)
            return binding.port
        }
        if let port = pending.sharedPort(on: binding.families) { return port }
        // A port that is free in one family may be taken in the other, by a program that wants to catch the code.
        var failure = CallbackListenerError.portInUse(host: Family.ipv4.address, port: 0, holder: nil)
        for _ in 0..<16 {
            let first = binding.families.contains(.ipv4) ? Family.ipv4 : .ipv6
            let port = try listen(first, 0)
            do throws(CallbackListenerError) {
                for family in binding.families where family != first { _ = try listen(family, port) }
                return port
            } catch {
                server.stopListening(port: port)
                guard case .portInUse = error else { throw error }
                failure = error
            }
        }
        throw failure
    }

    /// On the families where the fixed port is not open yet. If one fails, newly opened ones are closed again.
    private func bind(_ port: Int, on families: Set<Family>) throws(CallbackListenerError) {
        let standing = pending.families(of: port)
        do throws(CallbackListenerError) {
            for family in families.subtracting(standing) { _ = try listen(family, port) }
        } catch {
            // If flows are pending at the port already, it stays open.
            if standing.isEmpty { server.stopListening(port: port) }
            throw error
        }
    }

    private func listen(_ family: Family, _ port: Int) throws(CallbackListenerError) -> Int {
        do throws(ServerError) {
            return try server.listen(at: .loopback(host: family.address, port: port))
        } catch {
            let host = family.address
            switch error {
            case .portInUse(let port):
                throw .portInUse(host: host, port: port, holder: SocketOwner.uidListening(at: family, port: port))
            case .system(let call, let code): throw .system(host: host, port: port, call: call, errno: code)
            case .pathOccupied, .pathInUse, .pathTooLong, .unsuitableDescriptor:
                throw .system(host: host, port: port, call: "bind", errno: 0)
            }
        }
    }
}

/// Answers the requests to a site, which is everything below `http://NAME.localhost:PORT/`, for one sign-in. Its name
/// is random, so what a browser keeps for it (cookies, passwords) is apart from that of every other program of this
/// machine. The requests have passed the checks of the listener. Their URL is the path, without a query.
public typealias LocalSite = @Sendable (HTTPRequest) async -> HTTPResponse

extension LoopbackListener {
    /// Serves a site at a free port, on 127.0.0.1 and [::1]: browsers try both for names below `localhost` (RFC 6761
    /// section 6.3), so neither may be left to another program. Where the machine has no IPv6, on 127.0.0.1 only.
    /// Returns the site's origin and a slash; ends with ``close(_:owner:)``. The name is a label that nobody can guess.
    /// Throws ``CallbackListenerError``.
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
    /// Whatever the path.
    func site(at authority: String) -> Waiting? {
        guard let waiting = waiting[Place(authority: authority, path: "/")], waiting.site != nil else { return nil }
        return waiting
    }
}

extension ServerResponse {
    /// With the fields that every page has.
    init(_ response: HTTPResponse) {
        var fields = CallbackPages.fieldsOfSites
        for line in response.fields.lines { fields.set(line.name, line.value) }
        self.init(status: response.status, fields: fields, body: response.body.revealedBytes())
    }
}

/// Why no listener can be opened, before the browser is. `errno` values are the system's.
public enum CallbackListenerError: Error, Sendable, Equatable {
    /// Another program uses the port; `holder` is its uid, if the kernel tells it. `host` is an address without
    /// brackets.
    case portInUse(host: String, port: Int, holder: UInt32?)
    /// Not for a loopback listener.
    case unsuitable(reason: String)
    case shuttingDown
    /// `port` is 0 if a free one was asked for.
    case system(host: String, port: Int, call: String, errno: Int32)
}
