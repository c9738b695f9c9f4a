internal import CLinux
internal import Dispatch
internal import Glibc
internal import Synchronization

/// Tells when the machine may have a way to the network again: an address or a route has come (rtnetlink(7)). What it
/// says is a hint, no more: whoever hears it tries, and sees.
public final class NetworkWatch: Sendable {
    private let source: Mutex<(any DispatchSourceRead)?>

    /// Calls `onReturn` for each burst of news, on a queue of its own. Nil if the kernel lends no such socket (a sandbox
    /// may forbid it): sessions are then renewed when their back-off ends.
    public init?(onReturn: @escaping @Sendable () -> Void) {
        let descriptor = clinux_open_network_news()
        guard descriptor >= 0 else { return nil }
        let source = DispatchSource.makeReadSource(
            fileDescriptor: descriptor, queue: DispatchQueue(label: "ringback.network"))
        source.setEventHandler { if clinux_read_network_news(descriptor) > 0 { onReturn() } }
        source.setCancelHandler { close(descriptor) }
        source.activate()
        self.source = Mutex(source)
    }

    deinit { source.withLock { $0?.cancel() } }
}
