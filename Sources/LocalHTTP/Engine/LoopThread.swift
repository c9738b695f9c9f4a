internal import CLinux
internal import Glibc

extension EventLoop {
    /// Starts the loop's thread. Without it no local socket can be served, so the process ends if the system has no thread
    /// or no descriptor left for it.
    static func started() -> EventLoop {
        do throws(ServerError) {
            let loop = try EventLoop()
            guard loop.startThread() else { fatalError("no thread could be started for the local sockets") }
            return loop
        } catch {
            fatalError("no local socket can be served: \(error)")
        }
    }

    private func startThread() -> Bool {
        // The thread inherits a mask that blocks every signal: signals are handled by the thread that waits for them.
        var all = sigset_t()
        var previous = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &previous)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }
        var thread = pthread_t()
        let retained = unsafe Unmanaged.passRetained(self)
        let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
            guard let context = unsafe context else { return nil }
            // The thread's name, for those who look at it from outside.
            unsafe clinux_name_thread("sockets")
            unsafe Unmanaged<EventLoop>.fromOpaque(context).takeRetainedValue().run()
        }
        guard unsafe pthread_create(&thread, nil, entry, retained.toOpaque()) == 0 else {
            unsafe retained.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}
