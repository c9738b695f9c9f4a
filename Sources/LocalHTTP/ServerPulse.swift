internal import NIOCore

extension HTTPServer {
    /// Returns after the event loop has run a task. It never returns while the loop's thread hangs. For the watchdog: a
    /// process that does not serve its sockets has to be restarted.
    public static func turn() async {
        try? await loop.submit {}.get()
    }
}
