import APIServer
import BrokerCore
import Glibc

/// How the process's descriptors are shared out. The socket API has 16,384, or half of all where there are few. Of the rest,
/// an eighth of all is for the connections of exposed sockets (64 each at most), and what is left for the vault, the
/// providers, the audit log and the libraries.
struct DescriptorBudget: Equatable {
    /// How many connections the socket API keeps; an idle one takes one descriptor.
    let connections: Int
    /// How many connections each exposed socket keeps.
    let exposed: Int

    /// The most that is asked of the system.
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

    /// Of the process's limit as it is now.
    static var current: DescriptorBudget {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return DescriptorBudget(descriptors: 512)
        }
        return DescriptorBudget(descriptors: Int(clamping: limit.rlim_cur))
    }
}
