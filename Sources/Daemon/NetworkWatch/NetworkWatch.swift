internal import CLinux
internal import Dispatch
internal import Glibc
internal import Synchronization

/// Reports that the network may be available again: an address or a route was added (rtnetlink(7)). This is only a
/// hint; the receiver retries and sees whether it works.
public final class NetworkWatch: Sendable {
    private let source: Mutex<(any DispatchSourceRead)?>

    /// Calls `onReturn` for each burst of such messages, on a queue of its own. Nil if the kernel does not give us the
    /// socket (a sandbox may forbid it); sessions are then refreshed when their back-off ends.
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
