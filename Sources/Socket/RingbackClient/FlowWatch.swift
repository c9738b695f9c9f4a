package import RingbackBase
import Synchronization

/// Tells of the refused callbacks of a pending flow, each reason once. The flow goes on.
package final class RefusalWatch: Sendable {
    private let tell: @Sendable (RingbackError) -> Void
    private let told = Mutex<String?>(nil)
    package init(_ tell: @escaping @Sendable (RingbackError) -> Void) { self.tell = tell }

    func look(at flow: Flow) {
        guard flow.status == .pending, let error = flow.error else { return }
        let isNew = told.withLock { told in
            defer { told = error.detail }
            return told != error.detail
        }
        if isNew { tell(error) }
    }
}

/// Waits for a flow's end on a thread of its own, so that its caller can wait for the user's input at the same time.
package final class FlowWatch: Sendable {
    private let cancellation: Interruption
    private let ending: Interruption
    private let result = Mutex<Result<(Flow, JSON), RingbackError>?>(nil)

    /// `end` is as in ``BrokerCalls/wait(forFlow:until:onTick:)``. Throws `system_error`.
    package init(
        _ calls: BrokerCalls, flow id: String, until end: ContinuousClock.Instant? = nil
    ) throws(RingbackError) {
        cancellation = try Interruption()
        ending = try Interruption()
        var own = calls
        own.interruption = cancellation
        let failure = Blocking.start { [own, self] in
            let result = Result { () throws(RingbackError) -> (Flow, JSON) in try own.wait(forFlow: id, until: end) }
            self.result.withLock { $0 = result }
            self.ending.interrupt()
        }
        guard failure == 0 else { throw .system("pthread_create", failure) }
    }

    /// Readable once ``outcome`` has a value.
    package var descriptor: Int32 { ending.descriptor }
    /// The flow once the wait has ended; nil before. Throws the error that ended the wait.
    package var outcome: (Flow, JSON)? { get throws(RingbackError) { try result.withLock { $0 }?.get() } }

    /// Ends the wait; the flow goes on.
    package func stop() { cancellation.interrupt() }
}

extension Flow {
    /// Why the flow has ended; nil while it is pending, and if it was completed.
    package var failure: RingbackError? {
        switch status {
        case .pending, .completed: nil
        case .cancelled: error ?? RingbackError(.cancelled, "The sign-in to \(account) was cancelled.")
        case .expired:
            error
                ?? RingbackError(.flowExpired, "The sign-in to \(account) was not finished in time.", recovery: .signIn)
        default: error ?? RingbackError(.badResponse, "The sign-in to \(account) failed.", recovery: .signIn)
        }
    }
}
