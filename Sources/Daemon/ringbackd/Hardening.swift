import APIServer
import BrokerCore
import CLinux
import Glibc
import Synchronization

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
