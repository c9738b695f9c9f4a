// A port is open while a flow waits behind it, and a minute longer for the last page; never before, never after.
// It is bound once and kept: whoever probes for a free port and binds it later lets somebody else in between.

public import LocalHTTP
public import ServiceLifecycle
internal import Synchronization

/// The loopback end of redirect URIs: one listener for all flows, on as many ports as they need.
public final class LoopbackListener: Service {
    /// Told of every arrival. Its task is cancelled when the browser goes away: what must be finished even then needs a
    /// task of its own.
    public typealias Delivery = @Sendable (CallbackArrival) async -> CallbackOutcome

    /// Told of every visit of an entrance. Gives the page that the browser goes on to; nil if it leads nowhere.
    public typealias Visit = @Sendable (EntranceVisit) async -> String?

    /// One opening or closing at a time. The desk has a lock of its own: binding waits for the server's thread, and
    /// that thread may be the one that asks for ``listeners``.
    private let doors = Mutex(())
    private let desk: PendingCallbacks
    private let server: HTTPServer
    private let linger: Duration
    private let releases: AsyncStream<PendingCallbacks.Release>
    private let released: AsyncStream<PendingCallbacks.Release>.Continuation

    /// - Parameters:
    ///   - linger: how long the last pages of a port are served after the last flow: a person reloads them.
    ///   - ownerOf: the uid of a client's socket; nil is nobody.
    ///   - visit: see ``Visit``.
    ///   - deliver: see ``Delivery``.
    public init(
        linger: Duration = .seconds(60), ownerOf: @escaping @Sendable (Peer) -> UInt32? = SocketOwner.uid(of:),
        visit: @escaping Visit = { _ in nil }, deliver: @escaping Delivery
    ) {
        self.linger = linger
        desk = PendingCallbacks(visit: visit, deliver: deliver)
        server = HTTPServer(
            limits: LoopbackListener.limits, ownerOf: ownerOf, refusal: CallbackPages.refusal, handler: desk.answer)
        (releases, released) = AsyncStream.makeStream()
    }

    /// A browser sends its one request at once; whoever does not gives way. With it come the cookies of every program
    /// that was ever at this address, whatever its port.
    private static let limits: ServerLimits = {
        var limits = ServerLimits()
        limits.maxHead = 65_536
        limits.maxBody = 65_536
        limits.requestTimeout = .seconds(5)
        limits.maxConnections = 64
        limits.isSingleRequest = true
        return limits
    }()

    /// The addresses that are listened at: `127.0.0.1:PORT`, `[::1]:PORT`.
    public var listeners: [String] { desk.addresses }

    /// Makes a redirect URI or an entrance reachable and returns it as it is to be sent. The port is bound and listened at before this
    /// returns. Balanced by ``close(_:)``: equal redirect URIs are counted.
    public func open(_ binding: CallbackBinding) throws(CallbackListenerError) -> String {
        let result: Result<String, CallbackListenerError> = doors.withLock { _ in
            Result { () throws(CallbackListenerError) in
                guard !desk.isShutDown else { throw .shuttingDown }
                return desk.add(binding, at: try bind(binding))
            }
        }
        return try result.get()
    }

    /// No flow waits behind this redirect URI any more. When it was the port's last, the port closes after a while.
    public func close(_ redirectURI: String) {
        guard let release = desk.remove(redirectURI) else { return }
        released.yield(release)
    }

    /// Serves until cancelled or gracefully shut down; then all ports are closed at once.
    public func run() async throws {
        defer { desk.shutDown() }
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask { [self] in
                defer { released.finish() }
                try await withGracefulShutdownHandler {
                    try await server.run()
                } onGracefulShutdown: { [desk] in
                    desk.shutDown()
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
        doors.withLock { _ in
            if desk.forget(release) { server.stopListening(port: release.port) }
        }
    }

    // MARK: Binding

    /// The port, open on all families of the binding.
    private func bind(_ binding: CallbackBinding) throws(CallbackListenerError) -> Int {
        guard binding.port == 0 else {
            try bind(binding.port, on: binding.families)
            return binding.port
        }
        if let port = desk.sharedPort(on: binding.families) { return port }
        // A port that is free in one family need not be in the other: somebody may sit on it to catch the code.
        var failure = CallbackListenerError.portInUse(port: 0, holder: nil)
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

    /// Opens what is not open yet of a fixed port: all of it or nothing.
    private func bind(_ port: Int, on families: Set<Family>) throws(CallbackListenerError) {
        let standing = desk.families(of: port)
        do throws(CallbackListenerError) {
            for family in families.subtracting(standing) { _ = try listen(family, port) }
        } catch {
            // What others wait behind stays.
            if standing.isEmpty { server.stopListening(port: port) }
            throw error
        }
    }

    private func listen(_ family: Family, _ port: Int) throws(CallbackListenerError) -> Int {
        do throws(ServerError) {
            return try server.listen(at: .loopback(host: family.address, port: port))
        } catch {
            switch error {
            case .portInUse(let port):
                throw .portInUse(port: port, holder: SocketOwner.uidListening(at: family, port: port))
            case .system(let call, let code): throw .system(call: call, errno: code)
            case .pathOccupied, .pathTooLong, .unsuitableDescriptor: throw .system(call: "bind", errno: 0)
            }
        }
    }
}
