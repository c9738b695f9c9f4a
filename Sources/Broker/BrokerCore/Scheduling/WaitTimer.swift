internal import Dispatch
internal import Synchronization

/// Calls a closure once after a while, unless it is cancelled before. A cancelled timer is freed at once. A cancelled
/// `Task.sleep` keeps its timer until its time is over, so that thousands of short waits with long limits cost
/// megabytes.
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
