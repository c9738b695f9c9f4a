internal import CLinux
internal import Glibc
internal import Synchronization

/// A listening socket that a loop watches. The variables are used on the loop's thread only.
final class Listener: @unchecked Sendable {
    /// 0 for a Unix socket.
    let port: Int
    let server: ConnectionRules
    /// The token of its events.
    let token: UInt64
    private let socket: Descriptor
    private let accepting: @Sendable (Int32) -> Int32
    /// Nil for a Unix socket.
    private let address: SocketAddress?
    /// How many times `accept4` is called before other events are handled. A call that finds no connection costs as
    /// much as a successful one, so the number follows that of the connections.
    private var share = 1
    private var fullShares = 0
    private static let mostAtATime = 64
    private static let counter = Atomic<UInt64>(0)
    /// Marks the token of a listener. The tokens of connections are smaller.
    static let mark: UInt64 = 1 << 63

    /// `accepting` returns a descriptor or a negative errno.
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

    /// Starts to serve each waiting connection at once.
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
            // The error may concern only one client.
            default: return hasClient ? .refused : .accepted
            }
        }
        fullShares += 1
        // A single connection already fills a share of 1. So the share grows only after eight full shares.
        if fullShares > 7 { (share, fullShares) = (min(share * 2, Listener.mostAtATime), 0) }
        return .accepted
    }

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

/// Why a server cannot listen.
public enum ServerError: Error, Sendable, Equatable {
    /// Another socket uses the port.
    case portInUse(Int)
    /// A file that is not a socket of this user already exists at the path.
    case pathOccupied(String)
    /// Another program listens at the path.
    case pathInUse(String)
    /// The path is longer than the address of a Unix socket may be.
    case pathTooLong(String)
    /// The descriptor is not a listening Unix stream socket.
    case unsuitableDescriptor
    case system(call: String, errno: Int32)
}

/// A listening socket. Only this code decides which sockets exist and with which file mode.
package struct ListeningSocket: ~Copyable {
    let descriptor: Descriptor
    /// 0 for a Unix socket.
    package let port: Int
    /// Of a Unix socket that was opened here.
    package let file: SocketFile?
    /// Connections that the kernel keeps until they are accepted.
    static let backlog: Int32 = 1_024

    private init(_ descriptor: consuming Descriptor, port: Int = 0, file: SocketFile? = nil) {
        self.descriptor = descriptor
        self.port = port
        self.file = file
    }

    /// Throws ``ServerError``.
    package static func open(_ address: ListenAddress) throws(ServerError) -> ListeningSocket {
        switch address {
        case .descriptor(let descriptor): try adopt(descriptor)
        case .unix(let path, let mode): try openUnix(path, mode)
        case .loopback(let host, let port): try openLoopback(host, port)
        }
    }

    /// The caller has to close the descriptor.
    package consuming func release() -> Int32 { descriptor.release() }

    /// Socket activation. Only a listening Unix stream socket is accepted: for any other kind the kernel does not
    /// report the peer's credentials.
    private static func adopt(_ descriptor: Int32) throws(ServerError) -> ListeningSocket {
        guard option(SO_DOMAIN, of: descriptor) == AF_UNIX,
            option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue), option(SO_ACCEPTCONN, of: descriptor) == 1
        else { throw .unsuitableDescriptor }
        // systemd passes blocking sockets. If `accept` blocked on one, no other connection would be served meanwhile.
        guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0,
            fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0
        else { throw .system(call: "fcntl", errno: errno) }
        return ListeningSocket(Descriptor(descriptor))
    }

    private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 else { return nil }
        return value
    }

    private static func openUnix(_ path: String, _ mode: mode_t) throws(ServerError) -> ListeningSocket {
        guard var address = SocketFile.address(of: path) else { throw .pathTooLong(path) }
        var status = stat()
        if unsafe lstat(path, &status) == 0 {
            // A socket of this user at which nobody listens was left by a crash.
            guard let former = SocketFile(at: path) else { throw .pathOccupied(path) }
            guard !SocketFile.isLive(path) else { throw .pathInUse(path) }
            former.remove()
        }
        let descriptor = try openSocket(AF_UNIX)
        // `fchmod` before `bind` gives the file the descriptor's mode without the bits of the umask, which `fchmodat`
        // then adds. It does not follow a symbolic link, by which a program could have replaced the socket in a
        // directory that other programs can write to (a container's).
        guard fchmod(descriptor.number, mode) == 0, bind(descriptor.number, to: &address),
            unsafe mode & 0o077 == 0 || fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) == 0
        else { throw .system(call: "bind", errno: errno) }
        let file = SocketFile(at: path)
        try listen(descriptor.number, .system(call: "listen", errno: EADDRINUSE))
        return ListeningSocket(descriptor, file: file)
    }

    private static func openLoopback(_ host: String, _ port: Int) throws(ServerError) -> ListeningSocket {
        guard host == "127.0.0.1" || host == "::1" else { throw .system(call: "bind", errno: EADDRNOTAVAIL) }
        guard let number = in_port_t(exactly: port) else { throw .system(call: "bind", errno: EINVAL) }
        let isIPv6 = host == "::1"
        let descriptor = try openSocket(isIPv6 ? AF_INET6 : AF_INET)
        // Otherwise a fixed port could not be bound again while connections of an earlier flow are in TIME_WAIT.
        set(SO_REUSEADDR, of: descriptor.number, level: SOL_SOCKET)
        let isBound: Bool
        if isIPv6 {
            set(IPV6_V6ONLY, of: descriptor.number, level: Int32(IPPROTO_IPV6))
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = number.bigEndian
            address.sin6_addr = in6addr_loopback
            isBound = bind(descriptor.number, to: &address)
        } else {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = number.bigEndian
            address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
            isBound = bind(descriptor.number, to: &address)
        }
        guard isBound else {
            let isTaken = errno == EADDRINUSE
            throw isTaken ? .portInUse(port) : .system(call: "bind", errno: errno)
        }
        // With SO_REUSEADDR two sockets may be bound to an address, but only one can listen.
        try listen(descriptor.number, .portInUse(port))
        let bound = unsafe SocketAddress(of: descriptor.number, getsockname)
        return ListeningSocket(descriptor, port: Int(bound?.port ?? 0))
    }

    private static func openSocket(_ family: Int32) throws(ServerError) -> Descriptor {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC | O_NONBLOCK, 0)
        guard descriptor >= 0 else { throw .system(call: "socket", errno: errno) }
        return Descriptor(descriptor)
    }

    private static func set(_ name: Int32, of descriptor: Int32, level: Int32) {
        var yes: Int32 = 1
        unsafe setsockopt(descriptor, level, name, &yes, socklen_t(MemoryLayout<Int32>.size))
    }

    private static func bind<Address>(_ descriptor: Int32, to address: inout Address) -> Bool {
        unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<Address>.size)) == 0
            }
        }
    }

    private static func listen(_ descriptor: Int32, _ taken: ServerError) throws(ServerError) {
        guard Glibc.listen(descriptor, backlog) == 0 else {
            throw errno == EADDRINUSE ? taken : .system(call: "listen", errno: errno)
        }
    }
}

/// The file of a Unix socket, told by its device and inode: another program can put a socket of its own at the path.
package struct SocketFile: Sendable, Equatable {
    package let path: String
    package let device: UInt
    package let inode: UInt

    package init(path: String, device: UInt, inode: UInt) {
        self.path = path
        self.device = device
        self.inode = inode
    }

    /// Nil if there is no socket of this user.
    package init?(at path: String) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK, status.st_uid == getuid() else {
            return nil
        }
        self.init(path: path, device: status.st_dev, inode: status.st_ino)
    }

    /// Unless something else is at the path now.
    package func remove() {
        guard SocketFile(at: path) == self else { return }
        unsafe unlink(path)
    }

    /// A program listens at the path.
    package static func isLive(_ path: String) -> Bool {
        // A longer path is no socket's. It is refused where it is to be used.
        guard var address = address(of: path) else { return false }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC | O_NONBLOCK, 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let code = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0 ? 0 : errno
            }
        }
        // EAGAIN: a program listens, and its backlog is full.
        return code == 0 || code == EAGAIN
    }

    /// Nil if the path is too long.
    static func address(of path: String) -> sockaddr_un? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        return address
    }
}
