internal import Glibc
internal import NIOCore

extension Peer {
    /// Asks the kernel for the peer. Nothing that a client sends is used for this. Nil if the kernel reports no peer.
    init?(of channel: any Channel) {
        if let client = channel.remoteAddress, let server = channel.localAddress,
            let (clientAddress, clientPort) = client.parts, let (serverAddress, serverPort) = server.parts
        {
            self = .network(
                client: clientAddress, clientPort: clientPort, server: serverAddress, serverPort: serverPort)
            return
        }
        var found: Peer?
        // On the channel's own event loop the result is available at once.
        (channel as? any SocketOptionProvider)?.unsafeGetSocketOption(level: .socket, name: .peerCredentials)
            .assumeIsolated().whenSuccess { (credentials: Credentials) in
                // A TCP client that has already disconnected has no remote address and reaches this point; its
                // credentials have no uid.
                guard credentials.uid != UInt32.max else { return }
                found = .local(uid: credentials.uid, pid: credentials.pid)
            }
        guard let found else { return nil }
        self = found
    }
}

extension HTTPConnection {
    /// The uid that owns the client's socket, by ``HTTPServer/ownerOf``; nil if it cannot be determined. Race: a
    /// look-up by addresses finds the socket that has them at that moment. A client could send a request, reset its
    /// connection, and let another user's next connection reuse its port. While our end is established, no other
    /// connection can have the same addresses. The result therefore counts only if our end was established before and
    /// after the look-up.
    func owner(of peer: Peer, over channel: any Channel) -> UInt32? {
        guard let ownerOf = server.ownerOf, HTTPConnection.isEstablished(channel), let owner = ownerOf(peer),
            HTTPConnection.isEstablished(channel)
        else { return nil }
        return owner
    }

    /// The process of a local peer, while nothing is kept in the connection's memory yet.
    func process(of peer: Peer, over channel: any Channel) -> PeerProcess? {
        guard case .local = peer, memory.value == nil else { return nil }
        return PeerProcess(of: channel)
    }

    /// True if the kernel reports the state ESTABLISHED (TCP_INFO); false if the channel is not a TCP connection.
    private static func isEstablished(_ channel: any Channel) -> Bool {
        var isEstablished = false
        // On the channel's own event loop the result is available at once.
        (channel as? any SocketOptionProvider)?.unsafeGetSocketOption(level: .tcp, name: .information).assumeIsolated()
            .whenSuccess { (information: Information) in isEstablished = information.state == Information.established }
        return isEstablished
    }
}

/// The first 8 bytes of the C library's `struct tcp_info`. The kernel copies no more than the given size.
private struct Information: Sendable {
    /// TCP_ESTABLISHED.
    static let established: UInt8 = 1

    let state: UInt8
    let rest: (UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8)
}

extension SocketAddress {
    /// Address bytes and port of a TCP endpoint, read from the `sockaddr`: the address is at offset 4 (IPv4) or 8
    /// (IPv6).
    fileprivate var parts: (address: [UInt8], port: UInt16)? {
        guard let port = self.port else { return nil }
        let bytes = unsafe withSockAddr { address, size in
            unsafe Array(UnsafeRawBufferPointer(start: address, count: size))
        }
        switch self.protocol {
        case .inet where bytes.count >= 8: return (Array(bytes[4..<8]), UInt16(port))
        case .inet6 where bytes.count >= 24: return (Array(bytes[8..<24]), UInt16(port))
        default: return nil
        }
    }
}

/// The result of SO_PEERCRED: the C library's `struct ucred`, which Swift's module of it does not export.
private struct Credentials: Sendable {
    let pid: Int32
    let uid: UInt32
    let gid: UInt32
}

extension NIOBSDSocket.Option {
    fileprivate static let peerCredentials = NIOBSDSocket.Option(rawValue: SO_PEERCRED)
    fileprivate static let information = NIOBSDSocket.Option(rawValue: TCP_INFO)
}
