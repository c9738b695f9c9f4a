internal import Cryptography
internal import Glibc

/// The time, as a value that tests replace: the wall clock, which may be set to anything at any moment, and the time
/// since boot, suspended time included, by which every expiry, deadline and interval is measured. It also tells which
/// boot of which machine this is.
public struct BrokerClock: Sendable {
    public let now: @Sendable () -> Int
    /// Milliseconds since boot, suspended time included. Never goes back.
    public let boot: @Sendable () -> Int
    /// Different for each boot of the machine; empty if it cannot be read.
    public let bootID: String
    /// The same for each boot of the machine, and for its clones; empty if it is not known or does not matter.
    public private(set) var machineID: String
    public let sleep: @Sendable (Duration) async throws -> Void

    public init(
        now: @escaping @Sendable () -> Int, boot: @escaping @Sendable () -> Int, bootID: String = "",
        machineID: String = "",
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        self.now = now
        self.boot = boot
        self.bootID = bootID
        self.machineID = machineID
        self.sleep = sleep
    }

    public var bootInstant: BootInstant { BootInstant(milliseconds: boot()) }
    public var wallInstant: WallInstant { WallInstant(seconds: now()) }

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
        }, bootID: line(of: "/proc/sys/kernel/random/boot_id"), machineID: hash(line(of: "/etc/machine-id")))

    /// Several machines may share the sessions: none of them is a copy of another.
    public func ofSharedVault() -> BrokerClock {
        var clock = self
        clock.machineID = ""
        return clock
    }

    /// The machine's own identifier must not become known to others: machine-id(5) asks for a hash. A system that has
    /// none yet says `uninitialized`.
    private static func hash(_ machineID: String) -> String {
        machineID.utf8.count == 32 ? Digest.hex(Digest.sha256("machine of a vault \(machineID)")) : ""
    }

    private static func line(of path: String) -> String {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = unsafe read(descriptor, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count].filter { $0 > 0x20 }, as: UTF8.self) : ""
    }
}

/// An instant that a provider set: as it was stated by the wall clock, and since boot, which this process compares.
public struct Deadline: Sendable, Equatable {
    /// By the wall clock as it was set when the instant was learnt.
    public let at: WallInstant
    public let boot: BootInstant

    /// The longest time that is counted, about 35,000 years. A longer one is cut to it.
    private static let farthest: Duration = .seconds(1 << 40)

    public init(in duration: Duration, by clock: BrokerClock) {
        let duration = min(max(duration, .zero - Deadline.farthest), Deadline.farthest)
        at = clock.wallInstant + duration
        boot = clock.bootInstant + duration
    }

    public init(at: WallInstant, by clock: BrokerClock) { self.init(in: at - clock.wallInstant, by: clock) }

    public init(at: WallInstant, boot: BootInstant) {
        self.at = at
        self.boot = boot
    }

    public func wall(by clock: BrokerClock) -> WallInstant { wall(by: clock, at: clock.bootInstant) }

    func wall(by clock: BrokerClock, at present: BootInstant) -> WallInstant {
        let now = WallInstant(seconds: clock.wallInstant.seconds + left(at: present))
        // The two clocks do not run exactly alike: a difference of up to two seconds is ignored.
        return abs(now.seconds - at.seconds) <= 2 ? at : now
    }

    /// The time that is left, in whole seconds, rounded down; never negative.
    public func remaining(at present: BootInstant) -> Duration { .seconds(max(left(at: present), 0)) }

    /// Whole seconds, rounded toward zero. Integers, since the arithmetic of `Duration` is slow in a hot path.
    private func left(at present: BootInstant) -> Int {
        let (left, overflows) = boot.milliseconds.subtractingReportingOverflow(present.milliseconds)
        return (overflows ? .min : left) / 1_000
    }
}

/// An instant of this boot, in milliseconds, suspended time included. It never goes back, and means nothing later.
public struct BootInstant: Sendable, Hashable, Comparable {
    public let milliseconds: Int

    public init(milliseconds: Int) { self.milliseconds = milliseconds }

    public static func < (left: BootInstant, right: BootInstant) -> Bool { left.milliseconds < right.milliseconds }

    /// The instant that is `duration` later, at most the largest one that can be represented.
    public static func + (instant: BootInstant, duration: Duration) -> BootInstant {
        let (sum, overflows) = instant.milliseconds.addingReportingOverflow(duration.wholeMilliseconds)
        return BootInstant(milliseconds: overflows ? (duration < .zero ? .min : .max) : sum)
    }

    public static func - (instant: BootInstant, duration: Duration) -> BootInstant {
        instant + (.zero - duration)
    }

    public static func - (left: BootInstant, right: BootInstant) -> Duration {
        .milliseconds(left.milliseconds) - .milliseconds(right.milliseconds)
    }

    /// The largest instant that can be represented. It is never reached.
    public static let never = BootInstant(milliseconds: .max)
}

/// An instant by the wall clock: Unix time in seconds. No decision depends on it alone.
public struct WallInstant: Sendable, Hashable, Comparable {
    public let seconds: Int

    public init(seconds: Int) { self.seconds = seconds }

    public static func < (left: WallInstant, right: WallInstant) -> Bool { left.seconds < right.seconds }

    /// `duration` later, rounded up to a whole second; at most the largest one that can be represented.
    public static func + (instant: WallInstant, duration: Duration) -> WallInstant {
        let (sum, overflows) = instant.seconds.addingReportingOverflow(duration.secondsRoundedUp)
        return WallInstant(seconds: overflows ? (duration < .zero ? .min : .max) : sum)
    }

    public static func - (left: WallInstant, right: WallInstant) -> Duration {
        .seconds(left.seconds) - .seconds(right.seconds)
    }
}

extension Duration {
    public var wholeSeconds: Int {
        let (seconds, attoseconds) = components
        return Int(seconds) - (attoseconds < 0 ? 1 : 0)
    }

    /// Whole seconds, rounded up: waiting this long is long enough.
    public var secondsRoundedUp: Int {
        let (seconds, attoseconds) = components
        return Int(seconds) + (attoseconds > 0 ? 1 : 0)
    }

    /// Whole milliseconds, rounded toward zero; limited to what an `Int` can hold.
    var wholeMilliseconds: Int {
        let (seconds, attoseconds) = components
        let (whole, overflows) = Int(seconds).multipliedReportingOverflow(by: 1_000)
        guard !overflows else { return seconds < 0 ? .min : .max }
        let (sum, isTooLong) = whole.addingReportingOverflow(Int(attoseconds / 1_000_000_000_000_000))
        return isTooLong ? (seconds < 0 ? .min : .max) : sum
    }
}
