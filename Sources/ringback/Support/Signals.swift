import Glibc
import RingbackClient

/// The write end that the handler below may use; set once, before the handler is.
nonisolated(unsafe) private var trigger: Int32 = -1
nonisolated(unsafe) private var caught = false
/// Its descriptors stay open for as long as the handler may write to one, whoever has stopped waiting.
nonisolated(unsafe) private var kept: Interruption?

/// SIGINT, SIGTERM and SIGHUP as an interruption of what is being waited for, so that a verb can withdraw what it
/// began.
enum Signals {
    /// From now on a first signal interrupts; a second one ends the process at once. A hangup that was ignored at the
    /// start (nohup) stays so.
    static func interruption() throws(RingbackError) -> Interruption {
        let interruption = try Interruption()
        unsafe kept = interruption
        unsafe trigger = interruption.trigger
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_handler = { number in
            // Nothing here but what a handler may do: a flag, a write, an exit. A closed terminal may hang up twice, by
            // the kernel and by the shell: that is no second wish.
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
