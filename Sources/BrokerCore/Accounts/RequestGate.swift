internal import HTTPMessages
internal import Synchronization

/// What is asked before a request is sent.
///
/// A type of its own: with a function as the value of a task-local variable, code that the optimizer of Swift 6.3 made from
/// it crashes, because the type of a function that throws a typed error is not known at run time.
struct RequestGate: Sendable {
    /// Throws if the request must not be sent any more. Returns how long it may take at most; nil for no bound.
    let bound: @Sendable () async throws(BrokerError) -> Duration?
    let requests = BegunRequests()
}

/// The requests that have passed a gate.
final class BegunRequests: Sendable {
    private let marks = Mutex<[UnsentMark]>([])

    /// Of a request that is about to be sent.
    func begin() -> UnsentMark {
        let mark = UnsentMark()
        marks.withLock { $0.append(mark) }
        return mark
    }

    /// There were requests, and all of them failed before they were sent.
    var areUnsent: Bool { marks.withLock { !$0.isEmpty && $0.allSatisfy(\.isNoted) } }
}
