import Glibc
import PostgresClient
import SessionVault
import SharedVault
import TestSupport
import Testing

@testable import RowDatabase

/// A server with a certificate for the name localhost, by an authority of the test's own.
@Suite(.enabled(if: PostgresServer.isPossible, "needs PostgreSQL: make test-rows"), .timeLimit(.minutes(5)))
struct `A database over TLS` {
    private static let certificates = """
        umask 077; cd "$0"; exec 2>/dev/null
        openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem
        openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout other.key -out other.pem
        openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr
        printf 'subjectAltName=DNS:localhost' >names
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem
        """

    /// A port that nobody had a moment ago.
    private func freePort() -> Int {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe bind(socket, pointer, length)
                unsafe getsockname(socket, pointer, &length)
            }
            return unsafe Int(UInt16(bigEndian: pointer.pointee.sin_port))
        }
    }

    @Test func `only the server of its name, by an authority that is known, is spoken to`() async throws {
        let server = try await onThread { try PostgresServer() }
        let port = freePort()
        try await onThread {
            let script = Self.certificates.split(separator: "\"$0\"").joined(separator: "'\(server.directory)'")
            guard
                Shell.run(
                    "\(script)\ncp --preserve=mode server.key server.pem data/; chown --reference=data data/server.*")
                    == 0
            else { throw ServerTrouble(what: "openssl") }
            try server.crashAndRestart(
                "-c listen_addresses=127.0.0.1 -c ssl=on -c ssl_cert_file=server.pem -c ssl_key_file=server.key",
                port: port)
        }
        func ask(_ rest: String) async -> RowError? {
            do throws(RowError) {
                let url = try? PostgresURL(parsing: "postgresql://postgres@\(rest)")
                guard let url else { return .refused(.malformed) }
                _ = try await VaultAdministration(url, password: .none).facts()
                return nil
            } catch { return error }
        }
        let (ca, other) = ("\(server.directory)/ca.pem", "\(server.directory)/other.pem")
        #expect(await ask("localhost:\(port)/vault?sslmode=verify-full&sslrootcert=\(ca)") == nil)
        #expect(await ask("localhost:\(port)/vault?sslmode=verify-full&sslrootcert=\(other)") == .unreachable(.tls))
        // The system's authorities.
        #expect(await ask("localhost:\(port)/vault?sslmode=verify-full") == .unreachable(.tls))
        #expect(await ask("localhost:\(port)/vault?sslmode=verify-full&sslrootcert=/none") == .unreachable(.tls))
        // Another name than the certificate's.
        #expect(await ask("127.0.0.1:\(port)/vault?sslmode=verify-full&sslrootcert=\(ca)") == .unreachable(.tls))
        // A server without TLS.
        try await onThread { try server.crashAndRestart("-c listen_addresses=127.0.0.1", port: port) }
        #expect(await ask("localhost:\(port)/vault?sslmode=verify-full&sslrootcert=\(ca)") == .unreachable(.tls))
        #expect(await ask("localhost:\(port)/vault?sslmode=disable") == nil)
    }
}
