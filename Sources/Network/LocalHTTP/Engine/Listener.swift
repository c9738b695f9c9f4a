internal import CLinux
internal import Glibc
internal import Synchronization

/// A listening socket that a loop watches. The variables are used on the loop's thread only, hence
/// `@unchecked Sendable`.
final class Listener: @unchecked Sendable {
    /// 0 for a Unix socket.
    let port: Int
    let server: ConnectionRules
    /// The token of its events.
    let token: UInt64
    private let socket: Descriptor
    private let accepting: @Sendable (Int32) -> Int32
    /// The address at which it listens; nil for a Unix socket.
    private let address: SocketAddress?
    /// How many times `accept4` is called before other events are handled. A call that finds no connection costs as
    /// much as a successful one, so the number grows and shrinks with the number of connections.
    private var share = 1
    private var fullShares = 0

    private static let mostAtATime = 64
    private static let counter = Atomic<UInt64>(0)
    /// Marks the token of a listener. The tokens of connections are smaller.
    static let mark: UInt64 = 1 << 63

    /// - Parameter accepting: accepts one connection of a socket: a descriptor or a negative errno.
    init(
        _ socket: consuming ListeningSocket, server: ConnectionRules,
        accepting: @escaping @Sendable (Int32) -> Int32 = clinux_accept
    ) {
        self.accepting = accepting
        address = unsafe SocketAddress(of: socket.descriptor.number, getsockname)
        port = socket.port
        self.socket = socket.descriptor
        self.server = server
        token = Listener.mark | Listener.counter.wrappingAdd(1, ordering: .relaxed).newValue
    }

    var number: Int32 { socket.number }

    enum Outcome {
        case accepted
        /// The process or the system has no free descriptor or memory for the next connection.
        case exhausted
        /// The kernel, or a security module, refuses the next connection. The socket still listens.
        case refused
        /// The socket does not listen any more: the process that opened it has shut it down.
        case broken
    }

    /// Accepts waiting connections and starts to serve each of them at once.
    func accept(for loop: EventLoop) -> Outcome {
        for accepted in 0..<share {
            let descriptor = accepting(number)
            guard descriptor < 0 else {
                serve(Descriptor(descriptor), for: loop)
                continue
            }
            switch -descriptor {
            case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                // Accept one connection at a time from now on: for each, another connection may have to be closed.
                (share, fullShares) = (1, 0)
                // The kernel reserves the descriptor before it checks whether a client is waiting.
                return hasClient ? .exhausted : .accepted
            // The client has already disconnected, or a signal interrupted the call.
            case ECONNABORTED, EINTR, EPROTO, EPERM: continue
            case EAGAIN:
                (share, fullShares) = (max(accepted, 1), 0)
                return .accepted
            case EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP: return .broken
            // The error may concern only one client. If a client is still waiting, do not call `accept4` again at once.
            default: return hasClient ? .refused : .accepted
            }
        }
        fullShares += 1
        // A single connection already fills a share of 1. So the share grows only after eight full shares.
        if fullShares > 7 { (share, fullShares) = (min(share * 2, Listener.mostAtATime), 0) }
        return .accepted
    }

    /// True if a client is waiting to be accepted.
    private var hasClient: Bool {
        var question = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&question, 1, 0) > 0
    }

    private func serve(_ socket: consuming Descriptor, for loop: EventLoop) {
        if address != nil {
            var yes: Int32 = 1
            let size = socklen_t(MemoryLayout<Int32>.size)
            unsafe setsockopt(socket.number, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, size)
        }
        guard let peer = Peer(of: socket.number, server: address), server.accepts(peer) else { return }
        loop.freeConnection().open(socket, peer, server, listener: token)
    }
}
