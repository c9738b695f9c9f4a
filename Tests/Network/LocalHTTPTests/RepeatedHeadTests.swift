import LocalHTTP
import RingbackBase
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The head of a response at once` {
    /// The head of the response before is used again where it is the same.
    @Test func `sends each response at once with its own head`() async throws {
        let server = HTTPServer(immediate: { request in
            switch request.path {
            case "/a": ServerResponse(status: 200, fields: HTTPFields([("X", "1"), ("Y", "2")]), body: [0x61])
            case "/b": ServerResponse(status: 200, fields: HTTPFields([("X", "1"), ("Y", "3")]), body: [])
            case "/c": ServerResponse(status: 200, body: [UInt8](repeating: 0x63, count: 12_345))
            case "/d": ServerResponse(status: 201, fields: HTTPFields([("X", "1"), ("Y", "2")]), body: [0x61])
            default: ServerResponse(status: 204)
            }
        }) { _ in .text("never") }
        let expected: [String: [String]] = [
            "/a": ["HTTP/1.1 200 OK", "X: 1", "Y: 2", "Content-Length: 1"],
            "/b": ["HTTP/1.1 200 OK", "X: 1", "Y: 3", "Content-Length: 0"],
            "/c": ["HTTP/1.1 200 OK", "Content-Length: 12345"],
            "/d": ["HTTP/1.1 201 Created", "X: 1", "Y: 2", "Content-Length: 1"],
            "/e": ["HTTP/1.1 204 No Content"],
        ]
        try await TestServer.talk(server) { client throws in
            for path in ["/a", "/a", "/b", "/a", "/c", "/c", "/d", "/a", "/e", "/a", "/a"] {
                client.get(path)
                #expect(try client.answer().head == expected[path])
            }
            client.get("/a", "Connection: close\r\n")
            #expect(try client.answer().head == (expected["/a"] ?? []) + ["Connection: close"])
            #expect(try client.readToEnd().isEmpty)
        }
    }
}
