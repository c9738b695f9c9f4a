import CallbackListener
import Glibc
import LocalHTTP
import TestSupport
import Testing

@Suite struct `The owner of a socket` {
    private func peer(overIPv6: Bool = false, client: Int, server: Int) -> Peer {
        let address: [UInt8] = overIPv6 ? Array(repeating: 0, count: 15) + [1] : [127, 0, 0, 1]
        return .network(
            client: address, clientPort: UInt16(client), server: address, serverPort: UInt16(server))
    }

    @Test(arguments: [false, true]) func `is known while it stands`(overIPv6: Bool) throws {
        let listener = try #require(Visitor.occupy(overIPv6: overIPv6))
        defer { close(listener.descriptor) }
        let client = try #require(Visitor.connected(to: listener.port, overIPv6: overIPv6))
        let peer = peer(overIPv6: overIPv6, client: localPort(of: client), server: listener.port)
        #expect(SocketOwner.uid(of: peer) == geteuid())
        close(client)
        #expect(SocketOwner.uid(of: peer) == nil)
    }

    @Test func `is nobody for a connection that never was`() {
        #expect(SocketOwner.uid(of: peer(client: 1, server: 2)) == nil)
        #expect(SocketOwner.uid(of: .local(uid: getuid(), pid: 1)) == nil)
        #expect(SocketOwner.uid(of: .network(client: [127], clientPort: 1, server: [1, 2], serverPort: 2)) == nil)
    }

    /// The kernel answers a question for a connection that is gone with a listener at its address.
    @Test func `is not the owner of a socket that listens where the client was`() throws {
        let listener = try #require(Visitor.occupy())
        defer { close(listener.descriptor) }
        #expect(SocketOwner.uid(of: peer(client: listener.port, server: 2)) == nil)
    }
}
