import RingbackAPI
import RingbackBase
import Testing

@testable import RingbackClient

@Suite struct `A kept connection to the daemon` {
    /// The next response, however long it takes to come.
    private func next(_ connection: KeptConnection) throws(RingbackError) -> KeptConnection.Response {
        while true { if let response = try connection.next() { return response } }
    }

    @Test func `brings the responses in order, and says when it has ended`() throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"
        let daemon = try FakeDaemon { _ in .bytes("\(head){\"a\":1}HTTP/1.1 204 No\r\n\r\n\(head){\"a\":2}") }
        let calls = BrokerCalls(socket: daemon.path, application: "test")
        let connection = try KeptConnection(calls)
        #expect(!connection.hasServed)
        #expect(connection.send(try calls.request(.getSession, ["work"])))
        #expect(try BrokerCalls.json(next(connection))["a"] == 1)
        #expect(connection.hasServed && connection.isKept)
        #expect(try next(connection).body.isEmpty)
        #expect(try BrokerCalls.json(next(connection))["a"] == 2)
        #expect(kind { () throws(RingbackError) in try next(connection) } == .noDaemon)
        #expect(!connection.isKept)
        #expect(daemon.requests.first?.hasPrefix("GET /v1/accounts/work/session HTTP/1.1\r\n") == true)
    }

    @Test func `is not kept when the daemon closes it`() throws {
        let daemon = try FakeDaemon { _ in
            .hold("HTTP/1.1 503 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
        }
        let calls = BrokerCalls(socket: daemon.path, application: "test")
        let connection = try KeptConnection(calls)
        #expect(connection.send(try calls.request(.getMCPServer, ["work"])))
        #expect(kind { () throws(RingbackError) in try BrokerCalls.json(next(connection)) } != nil)
        #expect(connection.hasServed && !connection.isKept)
    }
}
