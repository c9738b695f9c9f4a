internal import CLinux
internal import Glibc

extension EventLoop {
    /// Starts the loop's thread. Throws ``ServerError`` if the system has no thread or no descriptor left for it.
    static func started() throws(ServerError) -> EventLoop {
        let loop = try EventLoop()
        try loop.startThread()
        return loop
    }

    private func startThread() throws(ServerError) {
        // The new thread inherits a mask that blocks every signal. Signals are handled by the thread that waits for
        // them.
        var all = sigset_t()
        var previous = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &previous)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }
        var thread = pthread_t()
        let retained = unsafe Unmanaged.passRetained(self)
        let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
            guard let context = unsafe context else { return nil }
            // The thread's name, which tools such as `top` show.
            unsafe clinux_name_thread("sockets")
            unsafe Unmanaged<EventLoop>.fromOpaque(context).takeRetainedValue().run()
        }
        let code = unsafe pthread_create(&thread, nil, entry, retained.toOpaque())
        guard code == 0 else {
            unsafe retained.release()
            throw .system(call: "pthread_create", errno: code)
        }
        pthread_detach(thread)
    }
}
