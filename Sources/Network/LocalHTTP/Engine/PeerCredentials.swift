internal import CLinux
internal import Glibc

extension Peer {
    /// Gets the peer of a connected socket from the kernel, not from anything that the client sends. Nil if the kernel
    /// reports no peer.
    ///
    /// - Parameter server: the address and the port that a TCP server listens at; nil for a Unix socket.
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

/// The address and the port of one end of a TCP connection.
struct SocketAddress {
    /// In network byte order.
    let address: [UInt8]
    let port: UInt16

    /// - Parameter name: `getsockname` or `getpeername`. Nil if it fails, and for other sockets than those of TCP.
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
    /// The uid that owns the client's socket, by ``ConnectionRules/ownerOf``; nil if it cannot be determined. Race: a
    /// look-up by addresses finds the socket that has them at that moment. A client could send a request, reset its
    /// connection, and let another user's next connection reuse its port. While our end is established, no other
    /// connection can have the same addresses. The result therefore counts only if our end was established before and
    /// after the look-up.
    func owner(of peer: Peer, over socket: Int32) -> UInt32? {
        guard let ownerOf = server.ownerOf, HTTPConnection.isEstablished(socket), let owner = ownerOf(peer),
            HTTPConnection.isEstablished(socket)
        else { return nil }
        return owner
    }

    /// The process of a local peer. Nil if the connection's memory already has a value. The process needs a descriptor;
    /// if none is free, see ``EventLoop/freeDescriptor(for:)``.
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

    /// True if the kernel reports the state ESTABLISHED (TCP_INFO); false if the socket is not a TCP connection.
    private static func isEstablished(_ socket: Int32) -> Bool {
        // The state is the first byte of the C library's `struct tcp_info`. The kernel copies no more than the given
        // size.
        var state: UInt8 = 0
        var length = socklen_t(1)
        // 1 is TCP_ESTABLISHED.
        return unsafe getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &state, &length) == 0 && state == 1
    }
}
