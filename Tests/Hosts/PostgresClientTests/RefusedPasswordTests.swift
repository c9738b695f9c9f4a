import RingbackBase
import Testing

@testable import PostgresClient

@Suite(.timeLimit(.minutes(1))) struct `A server that refuses a password` {
    /// The failure after an exchange of SCRAM that the server ends with an error.
    private func failure(state: String) async throws -> DatabaseReason? {
        let server = try SpokenServer([
            .say(SpokenServer.request(10, "SCRAM-SHA-256\0\0")),
            .say(
                SpokenServer.message("E", Array("SFATAL\0VFATAL\0C\(state)\0MSASL authentication failed\0\0".utf8))),
        ])
        return try await server.failure()
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

extension SpokenServer {
    static let password = "correct horse"

    func failure(_ query: String = "") async throws -> DatabaseReason? {
        let client = PostgresClient(
            try PostgresURL(parsing: "postgresql://role@\(host)/vault\(query)"),
            password: .given { Secret(SpokenServer.password) })
        defer { withExtendedLifetime(self) { client.shutdown() } }
        do throws(DatabaseReason) {
            _ = try await client.run("SELECT 1", [], within: .seconds(20))
            return nil
        } catch {
            return error
        }
    }
}
