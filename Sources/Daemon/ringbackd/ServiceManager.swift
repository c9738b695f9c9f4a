import APIServer
import BrokerCore
import Dispatch
import Glibc
import LocalHTTP
import Logging
import RingbackBase
import ServiceLifecycle
import Terminal

/// The protocols between systemd and a service: a listening socket from systemd (sd_listen_fds(3)), and messages about
/// the daemon's state to it (sd_notify(3)).
enum ServiceManager {
    /// The socket that systemd opened for us, if it did, close-on-exec; the variables are removed either way.
    static func takeSocket() throws(PlaceError) -> Int32? {
        defer { for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsafe unsetenv(name) } }
        guard let pid = environment("LISTEN_PID").flatMap(Int32.init), pid == getpid(),
            let count = environment("LISTEN_FDS").flatMap(Int.init), count > 0
        else { return nil }
        guard count == 1 else { throw PlaceError(reason: "systemd passed \(count) sockets; one is expected") }
        let descriptor: Int32 = 3
        let flags = fcntl(descriptor, F_GETFD)
        guard flags >= 0, fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC) == 0, isListeningUnixStream(descriptor) else {
            throw PlaceError(reason: "the socket that systemd passed is not a listening Unix stream socket")
        }
        try checkDirectory(of: try path(of: descriptor))
        return descriptor
    }

    private static func isListeningUnixStream(_ descriptor: Int32) -> Bool {
        option(SO_DOMAIN, of: descriptor) == AF_UNIX && option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue)
            && option(SO_ACCEPTCONN, of: descriptor) == 1
    }

    private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return unsafe getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }

    /// The socket's file name. An abstract or unnamed socket is refused: it has no mode that keeps others out.
    private static func path(of descriptor: Int32) throws(PlaceError) -> String {
        var address = sockaddr_un()
        var length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor, $0, &length)
            }
        }
        let name = unsafe withUnsafeBytes(of: &address.sun_path) { unsafe Array($0.prefix { $0 != 0 }) }
        guard result == 0, name.first == UInt8(ascii: "/") else {
            throw PlaceError(reason: "the socket that systemd passed has no file name")
        }
        return String(decoding: name, as: UTF8.self)
    }

    private static func checkDirectory(of path: String) throws(PlaceError) {
        var places = stat()
        let directory = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        guard unsafe lstat(directory, &places) == 0, places.st_mode & S_IFMT == S_IFDIR, places.st_uid == getuid(),
            places.st_mode & 0o077 == 0
        else {
            throw PlaceError(
                reason: "the directory of systemd's socket must be yours and closed to others",
                step: .remedy(.openToOthers, directory))
        }
        try Places.checkParents(of: directory)
    }

    /// Sends a state to systemd. Does nothing without systemd.
    static func notify(_ state: String) {
        guard let path = environment("NOTIFY_SOCKET"), path.hasPrefix("/") || path.hasPrefix("@") else { return }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        guard name.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
        if name[0] == UInt8(ascii: "@") { name[0] = 0 }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: name) }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let bytes = Array(state.utf8)
        _ = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, length)
            }
        }
    }
}

/// Tells systemd that the daemon works (`WatchdogSec=`, sd_watchdog_enabled(3)), and only while it does: before each
/// message the sockets' thread, the session manager and the flow registry have each run a turn. Waiting for a provider
/// or a disk must not end the daemon, so neither the network nor the vault is asked.
struct Watchdog: Service {
    private let broker: Broker
    private let interval: Duration

    /// Nil if systemd does not watch. The variables are removed in any case: what the daemon starts is not watched.
    init?(_ broker: Broker) {
        defer { for name in ["WATCHDOG_USEC", "WATCHDOG_PID"] { unsafe unsetenv(name) } }
        guard let patience = environment("WATCHDOG_USEC").flatMap(Int.init), patience > 0 else { return nil }
        if let pid = environment("WATCHDOG_PID"), Int32(pid) != getpid() { return nil }
        self.broker = broker
        // Three messages in the allowed time, so that one that is late does not end the daemon.
        interval = .microseconds(max(patience / 3, 10_000))
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            repeat {
                await HTTPServer.turn()
                _ = await broker.accounts()
                ServiceManager.notify("WATCHDOG=1")
                // systemd's clock stops while the machine is suspended, and so does this one.
            } while (try? await Task.sleep(for: interval, clock: .suspending)) != nil
        }
    }
}

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
