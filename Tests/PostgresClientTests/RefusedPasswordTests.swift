import Glibc
import Secrets
import Synchronization
import TestSupport
import Testing

@testable import PostgresClient

/// Says to each connection what a server says that asks for a SCRAM exchange and then refuses it with one SQLSTATE.
private final class RefusingServer: Sendable {
    let directory: String
    private let listener: Int32

    init(state: String) throws {
        var template = Array("/tmp/rb-pg-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw SystemError(call: "mkdtemp", code: errno) }
        directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        let path = Array("\(directory)/.s.PGSQL.5432".utf8)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path) }
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let isBound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe bind(listener, $0, size) == 0 }
        }
        guard isBound, listen(listener, 8) == 0 else { throw SystemError(call: "bind", code: errno) }
        startThread { [listener] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                RefusingServer.serve(connection, state)
                close(connection)
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        _ = unsafe unlink("\(directory)/.s.PGSQL.5432")
        _ = unsafe rmdir(directory)
    }

    private static func serve(_ connection: Int32, _ state: String) {
        func receive() -> Bool {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            return unsafe read(connection, &buffer, buffer.count) > 0
        }
        func send(_ kind: Character, _ body: [UInt8]) {
            let length = UInt32(body.count + 4)
            let bytes =
                Array(String(kind).utf8) + (0..<4).map { UInt8(truncatingIfNeeded: length >> (24 - 8 * $0)) } + body
            _ = unsafe Glibc.send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        }
        guard receive() else { return }
        send("R", [0, 0, 0, 10] + Array("SCRAM-SHA-256\0\0".utf8))
        guard receive() else { return }
        send("E", Array("SFATAL\0VFATAL\0C\(state)\0MSASL authentication failed\0\0".utf8))
        _ = receive()
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A server that refuses a password` {
    private func failure(state: String) async throws -> PostgresFailure? {
        let server = try RefusingServer(state: state)
        let host = server.directory.split(separator: "/").map { "%2F\($0)" }.joined()
        let client = PostgresClient(
            try PostgresURL(parsing: "postgresql://role@\(host)/vault"), password: .given { Secret("wrong") })
        defer { withExtendedLifetime(server) { client.shutdown() } }
        do throws(PostgresFailure) {
            _ = try await client.run("SELECT 1", [], within: .seconds(20))
            return nil
        } catch {
            return error
        }
    }

    /// 28P01 is PostgreSQL's, 08P01 pgbouncer's: both mean the password, so that a host that joins tries its other one.
    @Test(arguments: ["28P01", "08P01"]) func `is told from one that cannot be reached`(state: String) async throws {
        let failure = try await failure(state: state)
        // Without libpq nothing can be tried.
        #expect(failure == .authentication || failure == .noLibrary, "\(String(describing: failure))")
    }

    @Test func `is not any server that breaks off`() async throws {
        let failure = try await failure(state: "08006")
        #expect(failure == .noConnection || failure == .noLibrary, "\(String(describing: failure))")
    }
}
