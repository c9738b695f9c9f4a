import BrokerCore
import Configuration
import Glibc
import PostgresClient
import RingbackBase
import RowDatabase
import SessionVault
import SharedVault

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
                try await migrate(administration, fromNothing: true, &report)
                let invitation = try await administration.admit(owner: order.owner, lasting: DatabaseOrder.lasting)
                report["owner"] = .string(order.owner)
                report["role"] = .string(invitation.role)
                report["store"] = .string((hostURL ?? url).text(for: invitation.role))
                report["is_local"] = .bool((hostURL ?? url).hosts.allSatisfy(\.isLocal))
                report["password"] = .string(invitation.password.revealed())
                report["lasting"] = .integer(Int(DatabaseOrder.lasting / .seconds(1)))
            case .migrate: try await migrate(administration, fromNothing: false, &report)
            case .facts: try await facts(administration, &report)
            }
            return report
        } catch {
            throw DatabaseProblem(error, place: url.place)
        }
    }

    private static func migrate(
        _ administration: VaultAdministration, fromNothing: Bool, _ report: inout JSONObject
    ) async throws(HostFailure) {
        do throws(RowError) {
            report["former_version"] = .integer(Int(try await administration.facts().version))
            if fromNothing { try await administration.prepare() } else { try await administration.migrate() }
            report["version"] = .integer(Int(try await administration.facts().version))
        } catch {
            throw .database(error)
        }
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

/// `ringbackd --check-config`: the configuration is read and checked; no daemon is started.
enum CheckCommand {
    /// Checks the configuration without a running daemon. Returns 0, or 78 after every mistake was printed.
    static func run(_ place: ConfigurationPlace, _ options: Options) -> Int32 {
        var place = place
        place.candidate = options.candidate
        if let path = options.draft.path, let original = options.draft.original {
            place.draft = ConfigurationPlace.Draft(of: original, at: path)
        }
        place.credentials = environment("CREDENTIALS_DIRECTORY").map {
            GivenCredentials(directory: $0, names: Set(options.credentials.map(\.name)))
        }
        let report = ConfigurationReport(of: place, exposedByHand: exposedByHand(options))
        if options.isJSON {
            print(report.json)
        } else if report.isValid {
            print("The configuration has no mistakes.")
        } else {
            complain("the configuration has mistakes:\n\(StartAdvice.text(report.errors))")
        }
        return report.isValid ? 0 : ExitStatus.badConfiguration
    }

    /// The names of the sockets that calls made, if the state directory is known to belong to this configuration: a
    /// file that is named may be for another daemon.
    private static func exposedByHand(_ options: Options) -> Set<String> {
        guard options.configuration == nil || options.state != nil, let state = Places.state(options) else { return [] }
        return ExposedSocketRegistry.namesOfCalls(in: ExposedSocketRegistry.file(in: state))
    }
}

/// What `ringbackd --database` is to do.
struct DatabaseOrder {
    enum Verb: String, CaseIterable {
        /// Makes or migrates the schema, and invites a host of an owner.
        case initialize = "init"
        case migrate
        case facts
    }

    let verb: Verb
    var url = ""
    var owner = ""
    /// The URL by which hosts reach the database, if it is another one than the administrator's.
    var hostURL: String?
    /// A further user of this machine whose process may be the server.
    var serverUID: UInt32?

    /// An invitation is good for so long.
    static let lasting: Duration = .seconds(3_600)

    /// The name of the credential with the role's password (`--credential-fd password=N`).
    static let credential = "password"

    init(_ verb: Verb) { self.verb = verb }

    /// Why it cannot be done as it is written; nil if it can.
    var mistake: String? {
        if url.isEmpty { return "--database needs --url" }
        guard verb == .initialize else {
            return owner.isEmpty && hostURL == nil ? nil : "--owner and --host-url are for --database init"
        }
        guard (1...64).contains(owner.utf8.count), !owner.unicodeScalars.contains(where: { $0.value < 0x20 }) else {
            return "--owner needs a name of 1 to 64 bytes"
        }
        return nil
    }
}

/// Why `ringbackd --database` did not do what it was asked for.
struct DatabaseProblem: Error {
    /// `{"problem","place"?,"state"?,"version"?,"uid"?,"option"?,"part"?}`
    let json: JSONObject

    init(_ failure: HostFailure, place: String) {
        var object: JSONObject
        switch failure {
        case .database(.unreachable(let reason)), .database(.refused(let reason)): object = Self.members(of: reason)
        case .tooManyHosts: object = Self.problem("too_many_hosts")
        // What only hosts are told.
        case .noHost, .notJoined, .invitationUsed, .nameTaken, .cryptography: object = Self.problem("not_permitted")
        }
        object["place"] = .string(place)
        json = object
    }

    /// Reads the URL of an option. Nothing of a URL that cannot be read is shown: it may have a password.
    static func url(_ text: String, _ option: String) throws(DatabaseProblem) -> PostgresURL {
        do throws(PostgresURLError) { return try PostgresURL(parsing: text) } catch {
            throw DatabaseProblem(error, option)
        }
    }

    private init(_ error: PostgresURLError, _ option: String) {
        let (word, part): (String, String?) =
            switch error {
            case .scheme: ("scheme", nil)
            case .malformed: ("malformed", nil)
            case .noUser: ("no_role", nil)
            case .password: ("password", nil)
            case .badHost: ("host", nil)
            case .badPort: ("port", nil)
            case .unknownParameter(let name): ("unknown_parameter", name)
            case .repeatedParameter(let name): ("repeated_parameter", name)
            case .badValue(let name): ("value", name)
            case .weakTLS: ("weak_tls", nil)
            }
        var object = Self.problem("url")
        object["option"] = .string(option)
        object["mistake"] = .string(word)
        object["part"] = part.map { .string($0) }
        json = object
    }

    private static func problem(_ word: String) -> JSONObject { JSONObject([.init("problem", .string(word))]) }

    private static func members(of reason: DatabaseReason) -> JSONObject {
        let word =
            switch reason {
            case .noLibrary: "no_library"
            case .noPassword: "no_password"
            case .noConnection: "no_connection"
            case .tls: "tls"
            case .authentication: "authentication"
            case .foreignServer: "foreign_server"
            case .weakAuthentication: "weak_authentication"
            case .tooMuch: "too_much"
            case .timedOut: "timed_out"
            case .closed: "closed"
            case .readOnly: "read_only"
            case .notNow: "not_now"
            case .noSchema: "no_schema"
            case .otherSchema: "other_schema"
            case .notPermitted: "not_permitted"
            case .noRoom: "no_room"
            case .refused: "refused"
            case .malformed: "malformed"
            case .busy: "busy"
            case .cancelled: "cancelled"
            }
        var object = problem(word)
        switch reason {
        case .foreignServer(let uid): object["uid"] = uid.map { .integer(Int($0)) }
        case .otherSchema(let version): object["version"] = .integer(version)
        case .refused(let state): object["state"] = .string(state)
        default: break
        }
        return object
    }
}
