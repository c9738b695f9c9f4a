extension HTTPServer {
    /// Returns after the thread that serves the sockets has run a job. If that thread hangs, this function does not
    /// return. The watchdog uses it: a process that does not serve its sockets has to be restarted.
    public static func turn() async {
        guard let loop else { return }
        await withCheckedContinuation { turned in loop.execute { turned.resume() } }
    }
}
