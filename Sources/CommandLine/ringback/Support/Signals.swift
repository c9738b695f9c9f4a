import Glibc
import RingbackClient

/// The write end that the handler uses; set once, before the handler is.
nonisolated(unsafe) private var trigger: Int32 = -1
nonisolated(unsafe) private var caught = false
/// Keeps the descriptors open, since the handler may write to one at any time.
nonisolated(unsafe) private var kept: Interruption?

/// SIGINT, SIGTERM and SIGHUP as an interruption of what is being waited for, so that a verb can cancel what it began.
enum Signals {
    /// From now on a first signal interrupts; a second one ends the process at once. A hangup that was ignored at the
    /// start (nohup) stays ignored.
    static func interruption() throws(RingbackError) -> Interruption {
        let interruption = try Interruption()
        unsafe kept = interruption
        unsafe trigger = interruption.trigger
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_handler = { number in
            // Only what a handler may do: set a flag, write, exit. A closed terminal may send two hangups, one from the
            // kernel and one from the shell: the second does not end the process.
            if unsafe caught, number != SIGHUP { _exit(128 + number) }
            unsafe caught = true
            let saved = errno
            var byte: UInt8 = 1
            _ = unsafe write(trigger, &byte, 1)
            errno = saved
        }
        for number in [SIGINT, SIGTERM] { unsafe sigaction(number, &action, nil) }
        var found = sigaction()
        unsafe sigaction(SIGHUP, nil, &found)
        let isIgnored = unsafe unsafeBitCast(found.__sigaction_handler.sa_handler, to: Int.self) == Signals.ignored
        if !isIgnored { unsafe sigaction(SIGHUP, &action, nil) }
        return interruption
    }

    private static let ignored = unsafe unsafeBitCast(SIG_IGN, to: Int.self)
}
