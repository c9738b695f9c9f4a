import Glibc
import PostgresClient
import RingbackBase
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

    @Test func `only the server of its name, by an authority that is known, is spoken to`() async throws {
        let server = try await onThread { try PostgresServer() }
        let port = try PostgresServer.freePort()
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
        func ask(_ rest: String, as role: String = "postgres") async -> DatabaseReason? {
            do throws(DatabaseReason) {
                let url = try? PostgresURL(parsing: "postgresql://\(role)@\(rest)")
                guard let url else { return .malformed }
                _ = try await VaultAdministration(url, password: .given { Secret("password") }).facts()
                return nil
            } catch { return error }
        }
        let (ca, other) = ("\(server.directory)/ca.pem", "\(server.directory)/other.pem")
        #expect(await ask("localhost:\(port)/vault?sslmode=verify-full&sslrootcert=\(ca)") == nil)
        #expect(await ask("localhost:\(port)/vault?sslmode=verify-full&sslrootcert=\(other)") == .tls)
        // The system's authorities.
        #expect(await ask("localhost:\(port)/vault?sslmode=verify-full") == .tls)
        #expect(await ask("localhost:\(port)/vault?sslmode=verify-full&sslrootcert=/none") == .tls)
        // Another name than the certificate's.
        #expect(await ask("127.0.0.1:\(port)/vault?sslmode=verify-full&sslrootcert=\(ca)") == .tls)
        // The password is told to nobody who has not proved its name, also over TLS.
        try await onThread {
            let key = String(repeating: "A", count: 43) + "="
            let script = """
                sed -i '1i hostssl all clear 127.0.0.1/32 password' '\(server.directory)/data/pg_hba.conf'
                sed -i '1i hostssl all slow,role 127.0.0.1/32 scram-sha-256' '\(server.directory)/data/pg_hba.conf'
                \(server.psql) -p \(port) -c "CREATE ROLE clear LOGIN PASSWORD 'password'" \
                    -c "CREATE ROLE role LOGIN PASSWORD 'password'" \
                    -c "CREATE ROLE slow LOGIN PASSWORD 'SCRAM-SHA-256\\$1500000:c2FsdHNhbHQ=\\$\(key):\(key)'" \
                    -c 'SELECT pg_reload_conf()'
                """
            guard Shell.run(script) == 0 else { throw ServerTrouble(what: "roles") }
        }
        let verified = "localhost:\(port)/vault?sslmode=verify-full&sslrootcert=\(ca)"
        for mode in ["prefer", "require", "verify-ca"] {
            let place = "127.0.0.1:\(port)/vault?sslmode=\(mode)&sslrootcert=\(ca)"
            #expect(await ask(place, as: "clear") == .weakAuthentication, "\(mode)")
            #expect(await ask(place, as: "role") == nil, "\(mode)")
        }
        #expect(await ask(verified, as: "clear") == nil)
        #expect(await ask(verified, as: "role") == nil)
        // More iterations than are taken. The server makes them too when the role is made.
        #expect(await ask(verified, as: "slow") == .tooMuch)
        // A server without TLS.
        try await onThread { try server.crashAndRestart("-c listen_addresses=127.0.0.1", port: port) }
        #expect(await ask("localhost:\(port)/vault?sslmode=verify-full&sslrootcert=\(ca)") == .tls)
        #expect(await ask("localhost:\(port)/vault?sslmode=disable") == nil)
    }
}
