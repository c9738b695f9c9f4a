internal import CLinux
internal import Glibc

/// Wakes a thread that waits in `poll`, by an eventfd(2). It is closed when the last reference goes.
final class Wake: Sendable {
    let descriptor: Int32

    /// Nil if there is no descriptor left.
    init?() {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard descriptor >= 0 else { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    func call() {
        var one: UInt64 = 1
        _ = unsafe write(descriptor, &one, 8)
    }

    /// Takes back all calls.
    func reset() {
        var count: UInt64 = 0
        _ = unsafe read(descriptor, &count, 8)
    }

    enum Event {
        case called
        /// The other descriptor can be read, or its other end is closed.
        case readable
        case timedOut
    }

    /// Waits for a call, an event of the other descriptor (ignored if negative), or until the time has passed.
    func wait(for duration: Duration, other: Int32 = -1) -> Event {
        var entries = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: other, events: Int16(POLLIN), revents: 0),
        ]
        let end = ContinuousClock.now + duration
        while true {
            let left = ContinuousClock.now.duration(to: end)
            if unsafe poll(&entries, 2, Self.milliseconds(left)) > 0 {
                guard entries[0].revents != 0 else { return .readable }
                reset()
                return .called
            }
            if left <= .zero { return .timedOut }
        }
    }

    /// Rounded up, so that a wait is never too short; at most a minute.
    static func milliseconds(_ duration: Duration) -> Int32 {
        guard duration > .zero else { return 0 }
        return Int32(min(duration / .milliseconds(1), 60_000).rounded(.up))
    }
}

/// A thread for what blocks. It blocks every signal: a connection that is reset must not end the process by SIGPIPE, and
/// other signals are handled by the thread that waits for them.
enum BlockingThread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts it; false if the system has no more threads.
    static func start(_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
        var all = sigset_t()
        var previous = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &previous)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }
        var thread = pthread_t()
        let retained = unsafe Unmanaged.passRetained(
            Body {
                unsafe clinux_name_thread(name)
                body()
            })
        let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
            if let context = unsafe context { unsafe Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() }
            return nil
        }
        guard unsafe pthread_create(&thread, nil, entry, retained.toOpaque()) == 0 else {
            unsafe retained.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}
