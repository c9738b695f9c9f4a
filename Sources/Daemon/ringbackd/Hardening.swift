import APIServer
import BrokerCore
import CLinux
import Dispatch
import Glibc
import LocalHTTP
import Logging
import RingbackBase
import ServiceLifecycle
import Synchronization
import Terminal

/// Restricts this process before it reads a secret.
enum Hardening {
    /// Variables that change how libraries behave, and the caller's proxies. They are removed: the daemon's behaviour
    /// comes from its configuration.
    private static let foreignVariables: Set<String> = [
        "SSLKEYLOGFILE", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "OPENSSL_CONF", "OPENSSL_MODULES",
        "OPENSSL_ENGINES", "GCONV_PATH", "LOCPATH", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN", "MALLOC_TRACE",
    ]
    private static let proxyVariables = [
        "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
    ]
    /// The proxy variables that were set when the daemon was started. They have no effect.
    static let ignoredProxyVariables = Mutex<[String]>([])

    /// The order matters. To be called while there is one thread.
    static func apply() {
        // Swift's own crash handler prints the memory that registers point at: secrets would get into the journal.
        for number in [SIGSEGV, SIGILL, SIGBUS, SIGFPE, SIGABRT, SIGQUIT, SIGTRAP] { signal(number, SIG_DFL) }
        _ = clinux_refuse_dumps()
        var limit = rlimit(rlim_cur: 0, rlim_max: 0)
        unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
        umask(0o077)
        startWithoutLoaderVariables()
        ignoredProxyVariables.withLock { $0 = proxyVariables.filter { environment($0) != nil } }
        scrubEnvironment()
        signal(SIGPIPE, SIG_IGN)
        DescriptorBudget.raiseLimit()
        clinux_hold_little_memory()
    }

    /// Lets this process start no program any more, with all that ``clinux_forbid_programs`` says. To be called after the
    /// helper has been started. Returns nil, or the kernel's reason against it: the daemon runs then without.
    static func forbidPrograms() -> String? {
        let code = clinux_forbid_programs()
        return code == 0 ? nil : reason(code)
    }

    /// The dynamic loader has followed variables (LD_PRELOAD and the like) before this line. So the same program is
    /// started in this process again, with the same arguments, descriptors and environment, but without them. This
    /// keeps out libraries that somebody's shell preloads. A preloaded library that is hostile could prevent it: its
    /// code runs before this function.
    private static func startWithoutLoaderVariables() {
        let found = environmentVariables().keys.filter { $0.hasPrefix("LD_") || $0 == "GLIBC_TUNABLES" }
        guard !found.isEmpty else { return }
        for name in found { unsafe unsetenv(name) }
        unsafe execve(ownPath(), CommandLine.unsafeArgv, environ)
        complain("cannot start again without LD_* in the environment: \(reason(errno))")
        _exit(ExitStatus.failed)
    }

    /// The path of this executable, so that the process list shows its name. If the file has been replaced or removed,
    /// the kernel's link to it.
    private static func ownPath() -> String {
        let link = "/proc/self/exe"
        var (running, named) = (stat(), stat())
        guard let path = executablePath(), unsafe stat(link, &running) == 0, unsafe stat(path, &named) == 0,
            running.st_dev == named.st_dev, running.st_ino == named.st_ino
        else { return link }
        return path
    }

    private static func scrubEnvironment() {
        for name in environmentVariables().keys
        where foreignVariables.contains(name) || proxyVariables.contains(name) || name.hasPrefix("SWIFT_")
            // libpq's settings: those of a database come from its URL.
            || name.hasPrefix("PG")
        {
            unsafe unsetenv(name)
        }
    }
}

/// How the process's descriptors are shared out. The socket API has 16,384, or half of all where there are few. Of the rest,
/// an eighth of all is for the connections of exposed sockets (64 each at most), and what is left for the vault, the
/// providers, the audit log and the libraries.
struct DescriptorBudget: Equatable {
    /// Connections of the socket API; an idle one takes one descriptor.
    let connections: Int
    /// Connections of each exposed socket.
    let exposed: Int

    private static let most: rlim_t = 65_536
    /// More connections than this only cost memory.
    private static let mostConnections = 16_384
    private static let reserve = 1_024

    init(descriptors: Int) {
        let sockets = ExposedSocketRegistry.most
        exposed = max(1, min(ExposedAPI.mostConnections, descriptors / 8 / sockets))
        let others = min(DescriptorBudget.reserve + sockets * exposed, descriptors / 2)
        connections = min(DescriptorBudget.mostConnections, descriptors - others)
    }

    /// Raises the process's limit as far as it may be, up to ``most``.
    static func raiseLimit() {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = min(limit.rlim_max, most)
        unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    static var current: DescriptorBudget {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return DescriptorBudget(descriptors: 512)
        }
        return DescriptorBudget(descriptors: Int(clamping: limit.rlim_cur))
    }
}

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
