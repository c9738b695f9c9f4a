// What a browser is started with can be read by every user of the machine in its argument list. What they cannot have
// is a socket of ours: the kernel knows who made the one that a callback comes from.

internal import CLinux
internal import Glibc
public import LocalHTTP

/// Asks the kernel whose sockets are at the other end.
public enum SocketOwner {
    /// The uid of the client's socket; nil if it has vanished, since then nobody vouches for who it was. It is the uid of
    /// whoever has the addresses now: what holds for one connection is ``HTTPServer``'s to see.
    @Sendable public static func uid(of peer: Peer) -> UInt32? {
        guard case .network(let client, let clientPort, let server, let serverPort) = peer else { return nil }
        return owner(client, clientPort, server, serverPort)
    }

    /// The uid of the socket that listens on a port; nil if there is none or the kernel does not tell.
    static func uidListening(at family: Family, port: Int) -> UInt32? {
        guard let port = UInt16(exactly: port) else { return nil }
        switch family {
        case .ipv4: return owner([127, 0, 0, 1], port, [0, 0, 0, 0], 0)
        case .ipv6:
            let any = [UInt8](repeating: 0, count: 16)
            return owner(any.dropLast() + [1], port, any, 0)
        }
    }

    private static func owner(
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
