internal import Glibc
internal import NIOCore

extension Peer {
    /// Asks the kernel who is at the other end: credentials are never taken from anything a client sends.
    init?(of channel: any Channel) {
        if let client = channel.remoteAddress, let server = channel.localAddress,
            let (clientAddress, clientPort) = client.parts, let (serverAddress, serverPort) = server.parts
        {
            self = .network(
                client: clientAddress, clientPort: clientPort, server: serverAddress, serverPort: serverPort)
            return
        }
        var found: Peer?
        // On the channel's own loop the answer is there at once.
        (channel as? any SocketOptionProvider)?.unsafeGetSocketOption(level: .socket, name: .peerCredentials)
            .assumeIsolated().whenSuccess { (credentials: Credentials) in
                // A TCP client that has left already has no address any more; asked like this, it has no owner either.
                guard credentials.uid != UInt32.max else { return }
                found = .local(uid: credentials.uid, pid: credentials.pid)
            }
        guard let found else { return nil }
        self = found
    }
}

extension HTTPConnection {
    /// Whose socket is at the other end, by the server's ``HTTPServer/ownerOf``; nil is nobody. A look-up by addresses
    /// finds whoever has them at that moment: a client may send a request, reset its connection, and leave its port to
    /// somebody else's next one. While our own end is established, no other connection can have the same addresses. So
    /// the answer counts only if it was established before and after.
    func owner(of peer: Peer, over channel: any Channel) -> UInt32? {
        guard let ownerOf = server.ownerOf, HTTPConnection.isEstablished(channel), let owner = ownerOf(peer),
            HTTPConnection.isEstablished(channel)
        else { return nil }
        return owner
    }

    /// The process of a local peer, for whoever keeps what it says in the connection's memory.
    func process(of peer: Peer, over channel: any Channel) -> PeerProcess? {
        guard case .local = peer, memory.value == nil else { return nil }
        return PeerProcess(of: channel)
    }

    /// The kernel's word (TCP_INFO); false for what is no TCP connection.
    private static func isEstablished(_ channel: any Channel) -> Bool {
        var isEstablished = false
        // On the channel's own loop the answer is there at once.
        (channel as? any SocketOptionProvider)?.unsafeGetSocketOption(level: .tcp, name: .information).assumeIsolated()
            .whenSuccess { (information: Information) in isEstablished = information.state == Information.established }
        return isEstablished
    }
}

/// How the C library's `struct tcp_info` begins; the kernel fills as much of it as there is room for.
private struct Information: Sendable {
    /// TCP_ESTABLISHED.
    static let established: UInt8 = 1

    let state: UInt8
    let rest: (UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8)
}

extension SocketAddress {
    /// Address and port of a TCP end, read where the kernel puts them: two bytes of port at 2, the address at 4 (IPv4)
    /// or 8 (IPv6).
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

/// What SO_PEERCRED gives: the C library's `struct ucred`, which its Swift module does not show.
private struct Credentials: Sendable {
    let pid: Int32
    let uid: UInt32
    let gid: UInt32
}

extension NIOBSDSocket.Option {
    fileprivate static let peerCredentials = NIOBSDSocket.Option(rawValue: SO_PEERCRED)
    fileprivate static let information = NIOBSDSocket.Option(rawValue: TCP_INFO)
}
