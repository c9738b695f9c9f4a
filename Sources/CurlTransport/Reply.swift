// An answer is given once and awaited once; the first one given counts, whoever gives it.

internal import HTTPMessages
internal import Synchronization

/// Where the outcome of a transfer meets the caller who waits for it.
final class Reply: Sendable {
    typealias Outcome = Result<HTTPResponse, HTTPClientError>

    private enum State {
        case open
        case awaited(CheckedContinuation<Outcome, Never>)
        case given(Outcome)
    }

    private let state = Mutex(State.open)

    /// True once nobody waits for the transfer any more.
    var isGiven: Bool {
        state.withLock { state in
            if case .given = state { true } else { false }
        }
    }

    /// Resumes the caller, unless that was done before.
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

    /// Waits for the outcome. Called once.
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
