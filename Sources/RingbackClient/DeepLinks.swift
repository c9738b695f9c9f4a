internal import RingbackAPI
package import StrictJSON

/// A link of the app's URL scheme that the user followed, and that ended no sign-in.
public struct DeepLink: Sendable, Hashable, Identifiable {
    /// For ``BrokerClient/acknowledge(_:)``. Grows with each link.
    public let id: String
    /// In lower case, without the colon.
    public let scheme: String
    /// The link as it came. Anybody may have written it, a web page for example: do not trust anything in it.
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

    /// More than the daemon keeps for a listener that acknowledges nothing.
    private static let backlog = 64

    let scheme: String
    let application: String
    let socket: String?

    /// Delivers links to one consumer, and closes its connection when the consumer stops.
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
    /// The links of the app's scheme from now on; before them, those that nobody has acknowledged.
    ///
    /// The program that listened last gets the links: the sequence ends when another program begins to listen for the
    /// scheme, or its consumer stops. When the daemon restarts, it connects again. A link is given once to each
    /// listener until it is acknowledged, for a minute at most: acknowledge it when the app has taken it over.
    ///
    /// It throws only errors that waiting does not change: `not_found` (the scheme is not configured), `policy_denied`,
    /// `foreign_server`.
    public func deepLinks(_ scheme: String) -> DeepLinks {
        DeepLinks(scheme: scheme, application: application, socket: socket)
    }

    /// The app has taken the link over: no other listener gets it. A link that is no longer kept is no error.
    public func acknowledge(_ link: DeepLink) async throws(RingbackError) {
        try await run { calls throws(RingbackError) in try calls.acknowledge(link) }
    }
}

extension BrokerCalls {
    /// Acknowledges a link. A link that the daemon no longer keeps is no error.
    package func acknowledge(_ link: DeepLink) throws(RingbackError) {
        do throws(RingbackError) {
            _ = try call(.acknowledgeDeepLink, [link.id])
        } catch {
            guard error.kind == .notFound else { throw error }
        }
    }
}

/// Follows the links on a thread of its own, and reconnects after every break.
struct LinkPump: Sendable {
    let scheme: String
    let application: String
    let socket: String?
    let interruption: Interruption
    /// The first pause before connecting again; doubles with each failure, up to ``longestPause``.
    var pause: Duration = .milliseconds(200)
    var longestPause: Duration = .seconds(10)

    /// After a break the daemon sends again what was not acknowledged. So many of the delivered links are remembered,
    /// and not delivered again.
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
            // Half of the pause is random, so that not every app on the machine reconnects in the same instant.
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

    /// True for an error that waiting does not change.
    private static func isFinal(_ error: RingbackError) -> Bool {
        switch error.kind {
        case .notFound, .validationFailed, .policyDenied, .foreignServer: true
        default: false
        }
    }
}
