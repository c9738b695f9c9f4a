internal import Glibc

/// The time, as a value that tests replace. Two clocks: the wall's, which people and providers speak of and which may
/// be set to anything at any moment; and the time since boot, suspended time included, by which every expiry, bound
/// and interval of this process is judged.
public struct BrokerClock: Sendable {
    /// Unix time in seconds.
    public let now: @Sendable () -> Int
    /// Milliseconds since boot, suspended time included. Never goes back.
    public let boot: @Sendable () -> Int
    /// Different for each boot of the machine; empty if it cannot be told.
    public let bootID: String
    /// Waits; throws when cancelled.
    public let sleep: @Sendable (Duration) async throws -> Void

    public init(
        now: @escaping @Sendable () -> Int, boot: @escaping @Sendable () -> Int, bootID: String = "",
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        self.now = now
        self.boot = boot
        self.bootID = bootID
        self.sleep = sleep
    }

    /// Seconds since boot: good for intervals alone.
    public var uptime: Int { boot() / 1_000 }

    /// The present, since boot.
    public var bootInstant: BootInstant { BootInstant(milliseconds: boot()) }

    /// The present, by the wall clock.
    public var wallInstant: WallInstant { WallInstant(seconds: now()) }

    /// The system's clocks.
    public static let system = BrokerClock(
        now: {
            var time = timespec()
            _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
            return Int(time.tv_sec)
        },
        boot: {
            var time = timespec()
            _ = unsafe clock_gettime(CLOCK_BOOTTIME, &time)
            return Int(time.tv_sec) * 1_000 + Int(time.tv_nsec) / 1_000_000
        }, bootID: readBootID())

    private static func readBootID() -> String {
        let descriptor = unsafe open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = unsafe read(descriptor, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count].filter { $0 > 0x20 }, as: UTF8.self) : ""
    }
}

/// An instant that a provider set: as it was stated on the wall, and as this process judges it.
public struct Deadline: Sendable, Equatable {
    /// By the wall clock as it was set when the instant was learnt.
    public let at: WallInstant
    public let boot: BootInstant

    /// More seconds than this are as many: thirty thousand years.
    private static let farthest = 1 << 40

    /// So many seconds from now.
    public init(in seconds: Int, by clock: BrokerClock) {
        let seconds = min(max(seconds, -Deadline.farthest), Deadline.farthest)
        at = WallInstant(seconds: clock.now() + seconds)
        boot = clock.bootInstant + .seconds(seconds)
    }

    /// An instant stated in Unix seconds.
    public init(at: Int, by clock: BrokerClock) {
        let (seconds, overflow) = at.subtractingReportingOverflow(clock.now())
        self.init(in: overflow ? (at < 0 ? -Deadline.farthest : Deadline.farthest) : seconds, by: clock)
    }

    public init(at: WallInstant, boot: BootInstant) {
        self.at = at
        self.boot = boot
    }

    /// When that is by the wall clock as it is set now.
    public func wall(by clock: BrokerClock) -> WallInstant {
        let now = clock.now() + (boot - clock.bootInstant).wholeMilliseconds / 1_000
        // The two clocks do not tick in step: a difference of up to two seconds is taken for none.
        return abs(now - at.seconds) <= 2 ? at : WallInstant(seconds: now)
    }

    /// Whole seconds left, never negative.
    public func remaining(at present: BootInstant) -> Int { max((boot - present).wholeMilliseconds, 0) / 1_000 }
}
