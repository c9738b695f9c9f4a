import Glibc

/// Ends the waits of another thread. Once interrupted it stays interrupted: a wait that starts later ends at once, so
/// that no interruption is missed.
package final class Interruption: Sendable {
    /// Readable from the interruption on.
    package let descriptor: Int32
    /// One byte written here interrupts. A signal handler can do this, since it may call `write`.
    package let trigger: Int32

    /// - Throws: `system_error` if the process has no descriptors left.
    package init() throws(RingbackError) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw .system("pipe", errno) }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            // A handler that runs very often must not block on a full pipe.
            _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
        }
        descriptor = ends[0]
        trigger = ends[1]
    }

    deinit {
        close(descriptor)
        close(trigger)
    }

    package func interrupt() {
        var byte: UInt8 = 1
        _ = unsafe write(trigger, &byte, 1)
    }

    package var isInterrupted: Bool { Interruption.poll(descriptor, events: Int16(POLLIN), milliseconds: 0) > 0 }

    /// Waits for the interruption, at most for this duration. Returns true if it was interrupted.
    @discardableResult
    package func wait(atMost duration: Duration) -> Bool {
        let end = ContinuousClock.now + duration
        while true {
            let left = Interruption.milliseconds(until: end)
            if Interruption.poll(descriptor, events: Int16(POLLIN), milliseconds: left) > 0 { return true }
            if left == 0 { return false }
        }
    }

    /// The time left, rounded up so that a wait does not end before its deadline; at most a minute.
    static func milliseconds(until end: ContinuousClock.Instant) -> Int32 {
        let left = end - ContinuousClock.now
        guard left > .zero else { return 0 }
        guard left < .seconds(60) else { return 60_000 }
        let parts = left.components
        return Int32(parts.seconds * 1_000 + parts.attoseconds / 1_000_000_000_000_000) + 1
    }

    private static func poll(_ descriptor: Int32, events: Int16, milliseconds: Int32) -> Int32 {
        var entry = pollfd(fd: descriptor, events: events, revents: 0)
        return unsafe Glibc.poll(&entry, 1, milliseconds)
    }
}
