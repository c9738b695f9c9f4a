extension HTTPServer {
    /// Returns after the sockets' thread has run a job. It never returns while that thread hangs. For the watchdog: a
    /// process that does not serve its sockets has to be restarted.
    public static func turn() async {
        guard let loop else { return }
        await withCheckedContinuation { turned in loop.execute { turned.resume() } }
    }
}
