internal import Dispatch
internal import Synchronization

/// A value that is delivered once and that many may wait for. A wait ends early when the caller is cancelled or its
/// time is over. This affects neither the value nor the other waits.
public final class Promise<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiters: [UInt64: CheckedContinuation<Value?, Never>] = [:]
        /// Waiters that were cancelled before they had begun to wait.
        var cancelled: Set<UInt64> = []
        /// Waiters with a time limit that are still waiting.
        var bounded: Set<UInt64> = []
        var next: UInt64 = 0
    }
    private let state = Mutex(State())

    public init() {}

    /// A promise that is kept already.
    convenience init(of value: Value) {
        self.init()
        fulfil(value)
    }

    var waiterCount: Int { state.withLock { $0.waiters.count } }
    public var value: Value? { state.withLock { $0.value } }

    /// Delivers the value; a second delivery is ignored.
    public func fulfil(_ value: Value) {
        let waiters = state.withLock { state in
            guard state.value == nil else { return [CheckedContinuation<Value?, Never>]() }
            state.value = value
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume(returning: value) }
    }

    public func wait(atMost bound: Duration) async -> Value? {
        if let value { return value }
        guard bound > .zero else { return nil }
        let id = state.withLock { state in
            state.next += 1
            state.bounded.insert(state.next)
            return state.next
        }
        let timer = WaitTimer(after: bound) { [weak self] in self?.giveUp(id, isBound: true) }
        defer {
            timer.cancel()
            state.withLock { state in
                state.bounded.remove(id)
                state.cancelled.remove(id)
            }
        }
        return await wait(as: id)
    }

    /// Waits even if the caller is cancelled: for changes that must keep their order.
    func settle() async {
        _ = await withCheckedContinuation { (continuation: CheckedContinuation<Value?, Never>) in
            let ready: Value? = state.withLock { state in
                if let value = state.value { return value }
                state.next += 1
                state.waiters[state.next] = continuation
                return nil
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }

    /// The value; nil when the caller was cancelled first.
    public func wait() async -> Value? {
        await wait(
            as: state.withLock { state in
                state.next += 1
                return state.next
            })
    }

    private func wait(as id: UInt64) async -> Value? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready: Value?? = state.withLock { state in
                    if let value = state.value { return value }
                    if state.cancelled.remove(id) != nil { return .some(nil) }
                    state.waiters[id] = continuation
                    return nil
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            giveUp(id, isBound: false)
        }
    }

    /// Ends one wait: at once, or as soon as it begins. If the timer fires after the wait has ended, it does nothing.
    private func giveUp(_ id: UInt64, isBound: Bool) {
        let waiter = state.withLock { state in
            guard !isBound || state.bounded.contains(id) else { return CheckedContinuation<Value?, Never>?.none }
            guard let waiter = state.waiters.removeValue(forKey: id) else {
                if state.value == nil { state.cancelled.insert(id) }
                return nil
            }
            return waiter
        }
        waiter?.resume(returning: nil)
    }
}

extension Promise {
    /// What the work yielded. Throws what it threw, or `cancelled` if the caller was cancelled first.
    public func get<Success>() async throws(BrokerError) -> Success where Value == Result<Success, BrokerError> {
        guard let result = await wait() else { throw .cancelled }
        return try result.get()
    }

    public func get<Success>(
        atMost bound: Duration
    ) async throws(BrokerError) -> Success where Value == Result<Success, BrokerError> {
        guard let result = await wait(atMost: bound) else { throw .endOfWait }
        return try result.get()
    }
}

extension Result where Failure == BrokerError {
    var failure: BrokerError? { if case .failure(let error) = self { error } else { nil } }

    public init(awaiting body: () async throws(BrokerError) -> Success) async {
        do throws(BrokerError) {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}

extension BrokerError {
    /// Why a wait with a bound ended without a value: its caller was cancelled, or the bound has passed.
    static var endOfWait: BrokerError { Task.isCancelled ? .cancelled : .timedOut }
}

/// Calls a closure once after a while, unless it is cancelled and freed before. A cancelled `Task.sleep` keeps its
/// timer: thousands of short waits with long limits would cost megabytes.
final class WaitTimer: Sendable {
    private let source: Mutex<(any DispatchSourceTimer)?>
    private static let queue = DispatchQueue(label: "ringback.waits")

    init(after bound: Duration, _ body: @escaping @Sendable () -> Void) {
        let timer = DispatchSource.makeTimerSource(queue: WaitTimer.queue)
        let (seconds, attoseconds) = bound.components
        // A wait is a day at most.
        let nanoseconds = Int(min(max(seconds, 0), 86_400)) * 1_000_000_000 + Int(max(attoseconds, 0) / 1_000_000_000)
        timer.schedule(deadline: .now() + .nanoseconds(nanoseconds))
        timer.setEventHandler(handler: body)
        timer.activate()
        source = Mutex(timer)
    }

    func cancel() {
        source.withLock { source in
            source?.cancel()
            source = nil
        }
    }

    deinit { cancel() }
}
