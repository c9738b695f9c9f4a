import HTTPMessages
import Testing

@testable import CurlTransport

@Suite struct `A request to a name that another party chose` {
    private let client = CurlClient(version: "0.0.0-test")

    @Test(arguments: [
        "10.1.2.3", "172.16.0.1", "172.31.255.254", "192.168.1.1", "100.64.0.1", "[fd00::1]", "[::ffff:10.0.0.1]",
        "127.0.0.1", "169.254.1.1", "[fe80::1]",
    ]) func `a name that somebody else chose leads into no private network`(address: String) async throws {
        var request = HTTPRequest(url: "https://\(address):9/")
        request.refusesPrivateAddresses = true
        // A socket that is not opened fails at once; a connection into nothing would take the whole time.
        request.limits.timeout = .seconds(8)
        await #expect { try await client.send(request) } throws: { error in
            if case .unreachable? = error as? HTTPClientError { true } else { false }
        }
    }

    @Test func `a response says that its server is on this machine`() async throws {
        let server = ScriptedServer { connection in
            _ = connection.readRequest()
            connection.answer("200 OK", fields: "", body: "here")
        }
        #expect(try await client.send(HTTPRequest(url: server.url("/"))).peer == .inside)
    }
}
