internal import NIOCore

extension HTTPServer {
    /// Comes back once the thread that serves every local socket of the process has taken a turn; while that thread
    /// hangs, never. For a watchdog: a process whose sockets nobody serves is as good as dead.
    public static func turn() async {
        try? await loop.submit {}.get()
    }
}
