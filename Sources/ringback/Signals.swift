import Glibc
import RingbackClient

/// The write end that the handler below may use; set once, before the handler is.
nonisolated(unsafe) private var trigger: Int32 = -1
nonisolated(unsafe) private var caught = false

/// SIGINT and SIGTERM as an interruption of what is being waited for, so that a verb can withdraw what it began.
enum Signals {
    /// From now on a first signal interrupts; a second one ends the process at once.
    static func interruption() throws(RingbackError) -> Interruption {
        let interruption = try Interruption()
        unsafe trigger = interruption.trigger
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_handler = { number in
            // Nothing here but what a handler may do: a flag, a write, an exit.
            if unsafe caught { _exit(128 + number) }
            unsafe caught = true
            let saved = errno
            var byte: UInt8 = 1
            _ = unsafe write(trigger, &byte, 1)
            errno = saved
        }
        for number in [SIGINT, SIGTERM] { unsafe sigaction(number, &action, nil) }
        return interruption
    }
}
