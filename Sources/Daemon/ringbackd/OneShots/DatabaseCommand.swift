import Glibc
import PostgresClient
import RowDatabase
import Secrets
import SharedVault
import StrictJSON

/// `ringbackd --database`: what an administrator of the vault's database does. It reads no configuration and starts no
/// daemon. Its output is one line of JSON for `ringback`, which has the sentences.
enum DatabaseCommand {
    /// Returns 0, or 1 after a report with a `problem`.
    static func run(_ order: DatabaseOrder, _ credentials: Credentials) async -> Int32 {
        let password = try? credentials.secret(named: DatabaseOrder.credential)
        do throws(DatabaseProblem) {
            show(try await report(order, password))
            return 0
        } catch {
            show(error.json)
            return ExitStatus.failed
        }
    }

    /// Not by `print`, whose buffer is lost when the process ends without the cleanup of its libraries.
    private static func show(_ report: JSONObject) {
        let bytes = Array("\(JSON.object(report).text)\n".utf8)
        _ = unsafe write(STDOUT_FILENO, bytes, bytes.count)
    }

    private static func report(
        _ order: DatabaseOrder, _ password: Secret?
    ) async throws(DatabaseProblem) -> JSONObject {
        var url = try DatabaseProblem.url(order.url, "url")
        url.serverUID = order.serverUID
        let hostURL = try order.hostURL.map { text throws(DatabaseProblem) in
            try DatabaseProblem.url(text, "host_url")
        }
        let administration = VaultAdministration(
            url, password: password.map { secret in .given { secret } } ?? .passwordFile)
        var report = JSONObject([.init("place", .string(url.place))])
        do throws(HostFailure) {
            switch order.verb {
            case .initialize:
                try await prepare(administration, &report)
                let invitation = try await administration.admit(owner: order.owner, lasting: DatabaseOrder.lasting)
                report["owner"] = .string(order.owner)
                report["role"] = .string(invitation.role)
                report["store"] = .string((hostURL ?? url).text(for: invitation.role))
                report["is_local"] = .bool((hostURL ?? url).hosts.allSatisfy(\.isLocal))
                report["password"] = .string(invitation.password.revealed())
                report["lasting"] = .integer(Int(DatabaseOrder.lasting / .seconds(1)))
            case .migrate: try await migrate(administration, &report)
            case .facts: try await facts(administration, &report)
            }
            return report
        } catch {
            throw DatabaseProblem(error, place: url.place)
        }
    }

    private static func prepare(
        _ administration: VaultAdministration, _ report: inout JSONObject
    ) async throws(HostFailure) {
        do throws(RowError) {
            let before = try await administration.facts().version
            try await administration.prepare()
            note(before, try await administration.facts().version, in: &report)
        } catch {
            throw .database(error)
        }
    }

    private static func migrate(
        _ administration: VaultAdministration, _ report: inout JSONObject
    ) async throws(HostFailure) {
        do throws(RowError) {
            let before = try await administration.facts().version
            try await administration.migrate()
            note(before, try await administration.facts().version, in: &report)
        } catch {
            throw .database(error)
        }
    }

    private static func note(_ before: Int64, _ after: Int64, in report: inout JSONObject) {
        report["former_version"] = .integer(Int(before))
        report["version"] = .integer(Int(after))
    }

    private static func facts(
        _ administration: VaultAdministration, _ report: inout JSONObject
    ) async throws(HostFailure) {
        do throws(RowError) {
            let facts = try await administration.facts()
            report["version"] = .integer(Int(facts.version))
            report["wanted_version"] = .integer(Int(facts.wanted))
            report["listens"] = .bool(try await administration.listens())
            guard let content = facts.content else { return }
            report["owners"] = .integer(Int(content.owners))
            report["hosts"] = .integer(Int(content.hosts))
            report["size"] = .integer(Int(content.size))
            report["synchronous_standby"] = .bool(content.hasSynchronousStandby)
            report["durable"] = .bool(content.isDurable)
            report["server"] = .integer(Int(content.server))
        } catch {
            throw .database(error)
        }
    }
}
