internal import Dispatch
internal import Synchronization

/// Calls once after a while, unless it is cancelled before; then nothing of it is left. A `Task.sleep` that is cancelled
/// leaves its alarm behind until it would have rung: thousands of short waits with long bounds are megabytes.
final class WaitTimer: Sendable {
    private let source: Mutex<(any DispatchSourceTimer)?>
    private static let queue = DispatchQueue(label: "ringback.waits")

    init(after bound: Duration, _ body: @escaping @Sendable () -> Void) {
        let timer = DispatchSource.makeTimerSource(queue: WaitTimer.queue)
        let (seconds, attoseconds) = bound.components
        // A day is as good as for ever to whoever waits.
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
