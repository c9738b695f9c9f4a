/// What a stream of the daemon's events is made of: how one connection is read, and which errors end the stream.
protocol EventSource: Sendable {
    associatedtype Element: Sendable

    /// Reads one connection until it breaks. Called again after each break.
    ///
    /// - Parameters:
    ///   - interruption: ends the calls when the consumer has gone.
    ///   - hasConnected: called when the daemon has answered: the next pause is the shortest again.
    ///   - deliver: takes each element.
    /// - Returns: true if the stream is over for good.
    /// - Throws: what broke the connection.
    mutating func follow(
        _ interruption: Interruption, hasConnected: () -> Void, _ deliver: (Element) -> Void
    ) throws(RingbackError) -> Bool

    /// True for an error that another connection does not mend: the consumer gets it.
    static func isFinal(_ error: RingbackError) -> Bool
}

/// Follows a stream of events on a thread of its own, and connects again after every break.
struct EventPump<Source: EventSource>: Sendable {
    let source: Source
    let interruption: Interruption
    /// The first pause before connecting again; doubles with each failure, up to ``longestPause``.
    var pause: Duration = .milliseconds(200)
    var longestPause: Duration = .seconds(10)

    /// Returns when the stream is over, or after an error that is final.
    func run(_ deliver: (Result<Source.Element, RingbackError>) -> Void) {
        var source = source
        var failures = 0
        while !interruption.isInterrupted {
            do throws(RingbackError) {
                let isOver = try source.follow(interruption, hasConnected: { failures = 0 }) { element in
                    if !interruption.isInterrupted { deliver(.success(element)) }
                }
                if isOver { return }
            } catch {
                // A consumer that has gone is told nothing.
                if error.kind == .cancelled || interruption.isInterrupted { return }
                if Source.isFinal(error) { return deliver(.failure(error)) }
            }
            // Half of the pause is random, or every app on the machine would connect in the same instant.
            let longest = min(longestPause, pause * (1 << min(failures, 10)))
            failures += 1
            if interruption.wait(atMost: longest * Double.random(in: 0.5...1)) { return }
        }
    }
}

/// Gives events to one consumer; ends its connection when the consumer goes.
public struct BrokerEventIterator<Element: Sendable>: AsyncIteratorProtocol {
    private var base: AsyncStream<Result<Element, RingbackError>>.Iterator

    /// - Parameter backlog: a consumer this many elements behind loses the oldest.
    init<Source: EventSource>(of source: Source, backlog: Int) where Source.Element == Element {
        let (stream, continuation) = AsyncStream<Result<Element, RingbackError>>.makeStream(
            bufferingPolicy: .bufferingNewest(backlog))
        base = stream.makeAsyncIterator()
        let interruption: Interruption
        do throws(RingbackError) {
            interruption = try Interruption()
        } catch {
            continuation.yield(.failure(error))
            continuation.finish()
            return
        }
        continuation.onTermination = { _ in interruption.interrupt() }
        let failure = Blocking.start {
            let pump = EventPump(source: source, interruption: interruption)
            pump.run { continuation.yield($0) }
            continuation.finish()
        }
        if failure != 0 {
            continuation.yield(.failure(.system("pthread_create", failure)))
            continuation.finish()
        }
    }

    public mutating func next() async throws(RingbackError) -> Element? { try await base.next()?.get() }

    public mutating func next(isolation actor: isolated (any Actor)?) async throws(RingbackError) -> Element? {
        try await base.next(isolation: actor)?.get()
    }
}
