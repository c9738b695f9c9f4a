import CLinux
import Glibc

/// What the process gives up before it reads a secret.
enum Hardening {
    /// Variables that steer libraries, and the caller's proxies: a daemon's behaviour comes from its configuration.
    private static let foreignVariables: Set<String> = [
        "SSLKEYLOGFILE", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "OPENSSL_CONF", "OPENSSL_MODULES",
        "OPENSSL_ENGINES", "GCONV_PATH", "LOCPATH", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN", "http_proxy",
        "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "MALLOC_TRACE",
    ]

    /// In this order, while there is one thread.
    static func apply() {
        resetCrashSignals()
        _ = clinux_refuse_dumps()
        var limit = rlimit(rlim_cur: 0, rlim_max: 0)
        unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
        umask(0o077)
        scrubEnvironment()
        signal(SIGPIPE, SIG_IGN)
        raiseDescriptorLimit()
        clinux_hold_little_memory()
    }

    /// Swift's own handler prints the memory that registers point at: secrets would reach the journal.
    private static func resetCrashSignals() {
        for number in [SIGSEGV, SIGILL, SIGBUS, SIGFPE, SIGABRT, SIGQUIT, SIGTRAP] {
            signal(number, SIG_DFL)
        }
    }

    private static func scrubEnvironment() {
        for name in environmentNames()
        where foreignVariables.contains(name) || name.hasPrefix("LD_") || name.hasPrefix("SWIFT_") {
            unsafe unsetenv(name)
        }
    }

    private static func environmentNames() -> [String] {
        var names: [String] = []
        var entry = unsafe environ
        while let text = unsafe entry.pointee {
            names.append(String(unsafe String(cString: text).prefix { $0 != "=" }))
            unsafe entry += 1
        }
        return names
    }

    /// Thousands of programs may keep a connection open.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = min(limit.rlim_max, 16_384)
        unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
