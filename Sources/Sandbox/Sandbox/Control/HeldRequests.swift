internal import Synchronization

/// Holds the requests that a gate or a hang keeps back.
final class HeldRequests: Sendable {
    private struct HeldRequest {
        let endpoint: Endpoint
        /// A request at a gate can be released. One at a hang goes only when all are.
        let isReleasable: Bool
    }

    private struct State {
        var requests: [Int: HeldRequest] = [:]
        var nextNumber = 0
    }

    let signal: Signal
    private let state = Mutex(State())

    init(signal: Signal) {
        self.signal = signal
    }

    /// Waits until released. Returns false if the client closed its connection before.
    func hold(_ endpoint: Endpoint, isReleasable: Bool) async -> Bool {
        let number = state.withLock { state in
            state.nextNumber += 1
            state.requests[state.nextNumber] = HeldRequest(endpoint: endpoint, isReleasable: isReleasable)
            return state.nextNumber
        }
        signal.send()
        let isReleased = await signal.wait { self.state.withLock { $0.requests[number] == nil } }
        state.withLock { _ = $0.requests.removeValue(forKey: number) }
        signal.send()
        return isReleased
    }

    /// Releases the first requests that wait at the endpoint, or at any. Returns how many.
    @discardableResult
    func release(_ endpoint: Endpoint? = nil, count: Int? = nil) -> Int {
        empty(atMost: count) { $0.isReleasable && (endpoint == nil || $0.endpoint == endpoint) }
    }

    /// Releases every request.
    func empty() {
        empty(atMost: nil) { _ in true }
    }

    /// How many wait at the endpoint, or at any.
    func count(_ endpoint: Endpoint? = nil) -> Int {
        state.withLock { state in state.requests.values.count { endpoint == nil || $0.endpoint == endpoint } }
    }

    @discardableResult
    private func empty(atMost count: Int?, where isPicked: (HeldRequest) -> Bool) -> Int {
        let leaving = state.withLock { state in
            let picked = state.requests.filter { isPicked($0.value) }.keys.sorted().prefix(count ?? .max)
            for number in picked { state.requests[number] = nil }
            return picked.count
        }
        signal.send()
        return leaving
    }
}
