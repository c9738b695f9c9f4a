internal import RingbackAPI
package import StrictJSON

/// A link of the app's URL scheme that the person followed, and that ended no sign-in.
public struct DeepLink: Sendable, Hashable, Identifiable {
    /// For ``BrokerClient/acknowledge(_:)``. Grows with each link.
    public let id: String
    /// In small letters, without the colon.
    public let scheme: String
    /// As it came. Anybody may have written it, a web page included: believe nothing that it says.
    public let url: String
    /// When it came.
    public let at: WallInstant

    /// - Throws: `bad_answer` if something is missing.
    package init(reading json: JSON) throws(RingbackError) {
        guard let id = json["id"]?.string else { throw .missing("id", in: "link") }
        guard let scheme = json["scheme"]?.string else { throw .missing("scheme", in: "link") }
        guard let url = json["url"]?.string else { throw .missing("url", in: "link") }
        self.id = id
        self.scheme = scheme
        self.url = url
        at = WallInstant(json["at"]) ?? WallInstant(secondsSince1970: 0)
    }
}

/// The links of one scheme, in order. See ``BrokerClient/deepLinks(_:)``.
public struct DeepLinks: AsyncSequence, Sendable {
    public typealias Element = DeepLink
    public typealias Failure = RingbackError

    /// More than the daemon keeps for one who does not acknowledge.
    private static let backlog = 64

    let scheme: String
    let application: String
    let socket: String?

    /// Gives links to one consumer; ends its connection when the consumer goes.
    public struct Iterator: AsyncIteratorProtocol {
        var base: AsyncStream<Result<DeepLink, RingbackError>>.Iterator

        public mutating func next() async throws(RingbackError) -> DeepLink? { try await base.next()?.get() }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(RingbackError) -> DeepLink? {
            try await base.next(isolation: actor)?.get()
        }
    }

    public func makeAsyncIterator() -> Iterator {
        let (stream, continuation) = AsyncStream<Result<DeepLink, RingbackError>>.makeStream(
            bufferingPolicy: .bufferingNewest(Self.backlog))
        let interruption: Interruption
        do throws(RingbackError) {
            interruption = try Interruption()
        } catch {
            continuation.yield(.failure(error))
            continuation.finish()
            return Iterator(base: stream.makeAsyncIterator())
        }
        continuation.onTermination = { _ in interruption.interrupt() }
        let pump = LinkPump(scheme: scheme, application: application, socket: socket, interruption: interruption)
        let failure = Blocking.start {
            pump.run { continuation.yield($0) }
            continuation.finish()
        }
        if failure != 0 {
            continuation.yield(.failure(.system("pthread_create", failure)))
            continuation.finish()
        }
        return Iterator(base: stream.makeAsyncIterator())
    }
}

extension BrokerClient {
    /// The links of the app's scheme from now on, those first that nobody has acknowledged.
    ///
    /// Whoever listens last gets the links: the sequence ends when another program begins to listen for the scheme, or
    /// its consumer stops. When the daemon restarts, it connects again. A link is given once, and given to the next
    /// listener until it is acknowledged, a minute at most: acknowledge it when the app has taken it over.
    ///
    /// It throws what waiting cannot mend: `not_found` (the scheme is not configured), `policy_denied`,
    /// `foreign_server`.
    public func deepLinks(_ scheme: String) -> DeepLinks {
        DeepLinks(scheme: scheme, application: application, socket: socket)
    }

    /// The app has taken the link: no other listener gets it. No error for a link that is not kept any more.
    public func acknowledge(_ link: DeepLink) async throws(RingbackError) {
        try await run { calls throws(RingbackError) in try calls.acknowledge(link) }
    }
}

extension BrokerCalls {
    /// Tells the daemon that a link was taken; one that it does not keep any more is no error.
    package func acknowledge(_ link: DeepLink) throws(RingbackError) {
        do throws(RingbackError) {
            _ = try call(.acknowledgeDeepLink, [link.id])
        } catch {
            guard error.kind == .notFound else { throw error }
        }
    }
}

/// Follows the links on a thread of its own, and again after every break.
struct LinkPump: Sendable {
    let scheme: String
    let application: String
    let socket: String?
    let interruption: Interruption
    /// The first pause before connecting again; doubles with each failure, up to ``longestPause``.
    var pause: Duration = .milliseconds(200)
    var longestPause: Duration = .seconds(10)

    /// Links that were given and not acknowledged yet come again after a break; these many are known again.
    private static let memory = 64

    func run(_ deliver: (Result<DeepLink, RingbackError>) -> Void) {
        var given: [String] = []
        var failures = 0
        while !interruption.isInterrupted {
            do throws(RingbackError) {
                if try follow(&given, &failures, deliver) { return }
            } catch {
                if error.kind == .cancelled { return }
                if LinkPump.isFinal(error) { return deliver(.failure(error)) }
            }
            let longest = min(longestPause, pause * (1 << min(failures, 10)))
            failures += 1
            // Half of it by chance, or every app on the machine would come back in the same instant.
            if interruption.wait(atMost: longest * Double.random(in: 0.5...1)) { return }
        }
    }

    /// One connection; true if it ended for good.
    private func follow(
        _ given: inout [String], _ failures: inout Int, _ deliver: (Result<DeepLink, RingbackError>) -> Void
    ) throws(RingbackError) -> Bool {
        let calls = BrokerCalls(
            socket: try SocketPlace.path(stated: socket), application: application, interruption: interruption)
        let events = try calls.openDeepLinks(scheme: scheme)
        failures = 0
        while let event = try events.next() {
            if event.name == "listener_replaced" { return true }
            guard event.name == "deep_link", let data = try? JSON(parsing: event.data.utf8),
                let link = try? DeepLink(reading: data), !given.contains(link.id)
            else { continue }
            given.append(link.id)
            if given.count > LinkPump.memory { given.removeFirst() }
            if interruption.isInterrupted { return true }
            deliver(.success(link))
        }
        return false
    }

    /// True for what no waiting changes.
    private static func isFinal(_ error: RingbackError) -> Bool {
        switch error.kind {
        case .notFound, .validationFailed, .policyDenied, .foreignServer: true
        default: false
        }
    }
}
