import Glibc
import LocalHTTP
import RingbackBase

/// The server of the local sockets with a handler that returns the same response each time: what the engine alone costs,
/// without the API. For `make bench`; it is not installed.
///
///     engine-server SOCKET BYTES
@main enum EngineServer {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let length = Int(arguments[2]) else {
            fatalError("usage: engine-server SOCKET BYTES")
        }
        // The same fields as those of the daemon. The server itself adds Content-Length.
        var fields = HTTPFields()
        fields.set("Content-Type", "application/json")
        fields.set("Cache-Control", "no-store")
        let response = ServerResponse(status: 200, fields: fields, body: [UInt8](repeating: 0x78, count: length))
        let known = Known()
        PeerProcess.prepare()
        let server = HTTPServer(
            immediate: { request in
                // Like the daemon: then the process is not asked for again in each request of the connection.
                if request.memory.value == nil { request.memory.value = known }
                return response
            },
            handler: { _ in response })
        _ = try server.listen(at: .unix(path: arguments[1]))
        let line = Array("listening\n".utf8)
        _ = unsafe write(STDOUT_FILENO, line, line.count)
        try await server.run()
    }
}

private final class Known: Sendable {}
