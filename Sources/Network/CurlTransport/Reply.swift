// The outcome of a transfer is set once: the first one that is given counts, from the transfer or from a cancellation.

internal import HTTPMessages
internal import Synchronization

/// Passes the outcome of a transfer to the waiting caller.
final class Reply: Sendable {
    typealias Outcome = Result<HTTPResponse, HTTPClientError>

    private enum State {
        case open
        case awaited(CheckedContinuation<Outcome, Never>)
        case given(Outcome)
    }

    private let state = Mutex(State.open)

    /// True once the outcome is set: no caller waits for the transfer any more.
    var isGiven: Bool {
        state.withLock { state in
            if case .given = state { true } else { false }
        }
    }

    /// Sets the outcome and resumes the caller. Without effect if one is set already.
    func give(_ outcome: Outcome) {
        let waiter: CheckedContinuation<Outcome, Never>? = state.withLock { state in
            switch state {
            case .given: return nil
            case .open:
                state = .given(outcome)
                return nil
            case .awaited(let continuation):
                state = .given(outcome)
                return continuation
            }
        }
        waiter?.resume(returning: outcome)
    }

    /// Waits for the outcome. Must be called only once.
    func outcome() async -> Outcome {
        await withCheckedContinuation { continuation in
            let early: Outcome? = state.withLock { state in
                if case .given(let outcome) = state { return outcome }
                state = .awaited(continuation)
                return nil
            }
            if let early { continuation.resume(returning: early) }
        }
    }
}
