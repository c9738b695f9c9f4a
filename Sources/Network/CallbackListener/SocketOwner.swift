// Every user of the machine can read a browser's argument list, and so learn the URL with the state. They cannot have a
// socket that this user owns, and the kernel tells who owns the socket that a callback comes from.

internal import CLinux
internal import Glibc
public import LocalHTTP

/// Asks the kernel for the owner of the socket at the other end.
public enum SocketOwner {
    /// The uid that owns the client's socket; nil if the socket has vanished, because its owner is then unknown. It is
    /// the owner of the socket that has the addresses now; ``HTTPServer`` checks that it belongs to the same
    /// connection.
    @Sendable public static func uid(of peer: Peer) -> UInt32? {
        guard case .network(let client, let clientPort, let server, let serverPort) = peer else { return nil }
        return owner(client, clientPort, server, serverPort)
    }

    /// The uid that owns the socket listening at a port; nil if there is none or the kernel does not tell.
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
