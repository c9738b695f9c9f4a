import FoundationEssentials
import Glibc
import LocalHTTP
import Synchronization
import TestSupport

struct TestServer: Sendable {
    let server: HTTPServer
    let place: ServerPlace

    func client() throws -> RawClient { try RawClient(place) }

    func ask(_ request: String) async throws -> RawClient.Answer {
        let place = place
        return try await onThread {
            let client = try RawClient(place)
            client.send(request)
            return try client.answer()
        }
    }

    static func withDirectory<Value>(_ body: (String) async throws -> Value) async throws -> Value {
        let directory = FileManager.default.temporaryDirectory.appending(
            path: "local-http-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        return try await body(directory.path())
    }

    static func run<Value>(_ server: HTTPServer, _ body: (TestServer) async throws -> Value) async throws -> Value {
        try await withDirectory { directory in
            let path = directory + "/test.sock"
            _ = try server.listen(at: .unix(path: path))
            return try await serve(TestServer(server: server, place: .unix(path)), body)
        }
    }

    static func runTCP<Value>(
        _ server: HTTPServer, host: String = "127.0.0.1", _ body: (TestServer) async throws -> Value
    ) async throws -> Value {
        let port = try server.listen(at: .loopback(host: host, port: 0))
        return try await serve(TestServer(server: server, place: host == "::1" ? .ipv6(port) : .ipv4(port)), body)
    }

    /// Runs a server on a Unix socket, and talks to it as one client on a thread.
    static func talk(_ server: HTTPServer, _ body: @escaping @Sendable (RawClient) throws -> Void) async throws {
        try await run(server) { test in try await onThread { try body(test.client()) } }
    }

    static func talkTCP(_ server: HTTPServer, _ body: @escaping @Sendable (RawClient) throws -> Void) async throws {
        try await runTCP(server) { test in try await onThread { try body(test.client()) } }
    }

    private static func serve<Value>(_ test: TestServer, _ body: (TestServer) async throws -> Value) async throws
        -> Value
    {
        let running = Task { try await test.server.run() }
        let result: Result<Value, any Error>
        do {
            result = .success(try await body(test))
        } catch {
            result = .failure(error)
        }
        running.cancel()
        try await running.value
        return try result.get()
    }
}

final class Counter: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .relaxed) }

    @discardableResult
    func increment() -> Int { count.wrappingAdd(1, ordering: .relaxed).newValue }
}

extension ServerResponse {
    static func text(_ text: String, status: Int = 200) -> ServerResponse {
        ServerResponse(status: status, body: Array(text.utf8))
    }
}

struct Unexpected: Error {
    let what: String
    init<Value>(_ what: Value) { self.what = "\(what)" }
}
