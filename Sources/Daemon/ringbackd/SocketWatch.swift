import Dispatch
import Glibc
import Logging

/// Ends the daemon when the file of its socket is removed, as the runtime directory is at the last logout. systemd ends
/// the daemon, too, then. Without systemd it would go on where no program reaches it, and keep the state from the daemon
/// of the next login.
struct SocketWatch {
    private let source: any DispatchSourceRead

    /// Watches the socket's directory. Nil if the kernel gives no watch: then the daemon is not ended.
    init?(_ socket: String, _ logger: Logger) {
        guard let slash = socket.lastIndex(of: "/") else { return nil }
        let descriptor = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
        guard descriptor >= 0 else { return nil }
        guard unsafe inotify_add_watch(descriptor, String(socket[...slash]), UInt32(IN_DELETE)) >= 0 else {
            close(descriptor)
            return nil
        }
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: .global())
        source.setCancelHandler { close(descriptor) }
        source.setEventHandler {
            var events = [UInt8](repeating: 0, count: 4_096)
            while unsafe read(descriptor, &events, events.count) > 0 {}
            // Another file of the directory was removed, or another program listens at the path now.
            guard unsafe access(socket, F_OK) != 0 else { return }
            source.cancel()
            logger.warning("\(socket) was removed, so no program can reach this daemon any more: it ends")
            kill(getpid(), SIGTERM)
        }
        source.activate()
        self.source = source
    }

    /// From here on the daemon removes the file itself.
    func end() { source.cancel() }
}
