import Glibc

/// How the process's descriptors are shared out.
enum DescriptorBudget {
    /// Kept for everything but the connections of the socket API: the vault, the providers, the audit log, restricted
    /// sockets, and the libraries.
    private static let reserve = 1_024
    /// The most that is asked of the system.
    private static let most: rlim_t = 65_536
    /// More connections than this only cost memory.
    private static let mostConnections = 16_384

    /// Raises the process's limit as far as it may be, up to ``most``.
    static func raiseLimit() {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = min(limit.rlim_max, most)
        unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// How many connections the socket API keeps; an idle one takes one descriptor.
    static var connections: Int {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 256 }
        return connections(of: Int(clamping: limit.rlim_cur))
    }

    static func connections(of descriptors: Int) -> Int {
        min(mostConnections, descriptors - min(reserve, descriptors / 2))
    }
}
