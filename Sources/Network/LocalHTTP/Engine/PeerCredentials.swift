internal import CLinux
internal import Glibc

extension Peer {
    /// From the kernel, not from anything that the client sends. `server` is what a TCP server listens at; nil for a
    /// Unix socket.
    init?(of socket: Int32, server: SocketAddress?) {
        if let server {
            // A client that has already disconnected has no address.
            guard let client = unsafe SocketAddress(of: socket, getpeername) else { return nil }
            self = .network(
                client: client.address, clientPort: client.port, server: server.address, serverPort: server.port)
        } else {
            var (pid, uid, gid): (pid_t, uid_t, gid_t) = (0, 0, 0)
            guard unsafe clinux_peer_credentials(socket, &pid, &uid, &gid) == 0 else { return nil }
            self = .local(uid: uid, pid: pid)
        }
    }
}

/// One end of a TCP connection.
struct SocketAddress {
    /// In network byte order.
    let address: [UInt8]
    let port: UInt16

    /// `name` is `getsockname` or `getpeername`. Nil if it fails, and for other sockets than those of TCP.
    init?(
        of socket: Int32, _ name: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe name(socket, $0, &length) }
        }
        guard result == 0 else { return nil }
        let bytes = unsafe withUnsafeBytes(of: &storage) { unsafe Array($0.prefix(24)) }
        // The address is at offset 4 (IPv4) or 8 (IPv6), the port at offset 2, after the two bytes of the family.
        switch Int32(storage.ss_family) {
        case AF_INET: address = Array(bytes[4..<8])
        case AF_INET6: address = Array(bytes[8..<24])
        default: return nil
        }
        port = UInt16(bytes[2]) << 8 | UInt16(bytes[3])
    }
}

extension HTTPConnection {
    /// The uid that owns the client's socket; nil if it cannot be determined. Race: a look-up by addresses finds the
    /// socket that has them at that moment. A client could reset its connection, and let another user's next connection
    /// reuse its port. While our end is established, no other connection can have the same addresses. The result
    /// therefore counts only if our end was established before and after the look-up.
    func owner(of peer: Peer, over socket: Int32) -> UInt32? {
        guard let ownerOf = server.ownerOf, HTTPConnection.isEstablished(socket), let owner = ownerOf(peer),
            HTTPConnection.isEstablished(socket)
        else { return nil }
        return owner
    }

    /// The process of a local peer. Nil if the connection's memory already has a value. The process needs a descriptor.
    func process(of peer: Peer, over socket: Int32) -> PeerProcess? {
        guard case .local(_, let number) = peer, memory.value == nil, PeerProcess.isSupported else { return nil }
        let now = loop.now
        if let listener, let known = loop.processes.find(number, at: listener, age: age, now: now) { return known }
        var found = loop.processOf(socket)
        let code = found == nil ? errno : 0
        if code == EMFILE || code == ENFILE, loop.freeDescriptor(for: self) { found = loop.processOf(socket) }
        if let found, let listener { loop.processes.keep(found, number, at: listener, age: age, now: now) }
        return found
    }

    /// True in the state ESTABLISHED (TCP_INFO); false if the socket is not a TCP connection.
    fileprivate static func isEstablished(_ socket: Int32) -> Bool {
        // The first byte of the C library's `struct tcp_info`. The kernel copies no more than the given size.
        var state: UInt8 = 0
        var length = socklen_t(1)
        // 1 is TCP_ESTABLISHED.
        return unsafe getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &state, &length) == 0 && state == 1
    }
}

/// Asks the kernel for the owner of the socket at the other end. Every user of the machine can connect to a port, and read
/// the argument lists that name it, but cannot have a socket that this user owns.
public enum SocketOwner {
    /// Nil if the socket has vanished. It is the owner of the socket that has the addresses now; ``HTTPServer`` checks
    /// that it belongs to the same connection.
    @Sendable public static func uid(of peer: Peer) -> UInt32? {
        guard case .network(let client, let clientPort, let server, let serverPort) = peer else { return nil }
        return owner(client, clientPort, server, serverPort)
    }

    /// Of the client's end of an accepted connection, which is established before and after the look-up.
    public static func uid(over socket: Int32) -> UInt32? {
        guard HTTPConnection.isEstablished(socket), let server = unsafe SocketAddress(of: socket, getsockname),
            let peer = Peer(of: socket, server: server), let uid = uid(of: peer), HTTPConnection.isEstablished(socket)
        else { return nil }
        return uid
    }

    package static func owner(
        _ client: [UInt8], _ clientPort: UInt16, _ server: [UInt8], _ serverPort: UInt16
    ) -> UInt32? {
        guard client.count == server.count, client.count == 4 || client.count == 16 else { return nil }
        var (uid, inode): (UInt32, UInt32) = (0, 0)
        let family = client.count == 4 ? AF_INET : AF_INET6
        guard unsafe clinux_tcp_socket_owner(family, client, clientPort, server, serverPort, &uid, &inode) == 0,
            inode != 0
        else { return nil }
        return uid
    }
}

/// The process at the other end of a Unix socket (SO_PEERPIDFD, Linux 6.5). A process id alone could already belong to
/// another process when it is used; as long as this process lives, its id is not reused. For a client that connects
/// again it may be the process that had the id up to a second before: it is the client if ``isAlive`` is true.
public final class PeerProcess: Sendable {
    private let descriptor: Descriptor
    /// Unique for each process since boot (pidfs, Linux 6.9). Nil on older kernels, where all have the same number.
    public let identity: UInt64?

    /// Nil if the kernel does not support the option, the process has ended, or no descriptor is free, see `errno`.
    convenience init?(of socket: Int32) {
        guard let found = PeerProcess.descriptor(of: socket) else { return nil }
        self.init(found)
    }

    private static func descriptor(of socket: Int32) -> Descriptor? {
        var found: Int32 = -1
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(socket, SOL_SOCKET, peerProcessOption, &found, &size) == 0, found >= 0 else {
            return nil
        }
        return Descriptor(found)
    }

    init(_ descriptor: consuming Descriptor) {
        identity = PeerProcess.isNumbered ? PeerProcess.inode(of: descriptor) : nil
        self.descriptor = descriptor
    }

    /// If true, everything that was read before from `/proc` under this process id is about this process.
    public var isAlive: Bool {
        var question = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&question, 1, 0) == 0
    }

    /// Must be called while there are free descriptors.
    public static func prepare() { _ = (isSupported, isNumbered) }

    /// SO_PEERPIDFD.
    public static let isSupported: Bool = {
        var ends: [Int32] = [-1, -1]
        guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { return false }
        defer { for end in ends { close(end) } }
        guard PeerProcess.descriptor(of: ends[0]) != nil else { return false }
        return true
    }()

    /// Process descriptors belong to pidfs, in which each process has its own inode number.
    private static let isNumbered: Bool = {
        let number = clinux_open_process(getpid())
        guard number >= 0 else { return false }
        let descriptor = Descriptor(number)
        // PID_FS_MAGIC of linux/magic.h.
        return unsafe clinux_file_system("/proc/self/fd/\(descriptor.number)") == 0x5049_4446
    }()

    private static func inode(of descriptor: borrowing Descriptor) -> UInt64? {
        var status = stat()
        return unsafe fstat(descriptor.number, &status) == 0 ? UInt64(status.st_ino) : nil
    }
}

/// SO_PEERPIDFD of asm-generic/socket.h. The C library's headers may be too old to define it.
private let peerProcessOption: Int32 = 77
