internal import Glibc

/// The time, as a value that tests replace.
public struct BrokerClock: Sendable {
    /// Unix time in seconds.
    public let now: @Sendable () -> Int
    /// Waits; throws when cancelled.
    public let sleep: @Sendable (Duration) async throws -> Void

    public init(
        now: @escaping @Sendable () -> Int,
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        self.now = now
        self.sleep = sleep
    }

    /// The system's clocks.
    public static let system = BrokerClock(now: {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int(time.tv_sec)
    })
}
