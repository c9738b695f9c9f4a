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
        do throws(HostFailure) {
            let found: JSONObject =
                switch order.verb {
                case .initialize:
                    try await initialize(administration, order, hostURL ?? url)
                case .migrate: try await migrate(administration, fromNothing: false)
                case .facts: try await facts(administration)
                }
            return JSONObject([.init("place", .string(url.place))] + found.members)
        } catch {
            throw DatabaseProblem(error, place: url.place)
        }
    }

    private static func initialize(
        _ administration: VaultAdministration, _ order: DatabaseOrder, _ url: PostgresURL
    ) async throws(HostFailure) -> JSONObject {
        let migration = try await migrate(administration, fromNothing: true)
        let invitation = try await administration.admit(owner: order.owner, lasting: DatabaseOrder.lasting)
        let report: JSONObject = [
            "owner": order.owner, "role": invitation.role, "store": url.text(for: invitation.role),
            "is_local": url.hosts.allSatisfy(\.isLocal), "password": invitation.password.revealed(),
            "lasting": Int(DatabaseOrder.lasting / .seconds(1)),
        ]
        return JSONObject(migration.members + report.members)
    }

    private static func migrate(
        _ administration: VaultAdministration, fromNothing: Bool
    ) async throws(HostFailure) -> JSONObject {
        do throws(DatabaseReason) {
            let former = try await administration.facts().version
            if fromNothing { try await administration.prepare() } else { try await administration.migrate() }
            return ["former_version": Int(former), "version": Int(try await administration.facts().version)]
        } catch {
            throw .database(error)
        }
    }

    private static func facts(_ administration: VaultAdministration) async throws(HostFailure) -> JSONObject {
        do throws(DatabaseReason) {
            let facts = try await administration.facts()
            let content = facts.content
            return [
                "version": Int(facts.version), "wanted_version": Int(facts.wanted),
                "listens": try await administration.listens(), "owners": content.map { Int($0.owners) },
                "hosts": content.map { Int($0.hosts) }, "size": content.map { Int($0.size) },
                "synchronous_standby": content?.hasSynchronousStandby, "durable": content?.isDurable,
                "server": content.map { Int($0.server) },
            ]
        } catch {
            throw .database(error)
        }
    }
}

/// `ringbackd --check-config`: the configuration is read and checked; no daemon is started.
enum CheckCommand {
    /// Returns 0, or 78 after every mistake was printed.
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

struct DatabaseProblem: Error {
    /// `{"problem","place"?,"state"?,"version"?,"uid"?,"option"?,"part"?}`
    let json: JSONObject

    init(_ failure: HostFailure, place: String) {
        var object: JSONObject =
            switch failure {
            case .database(let reason): Self.members(of: reason)
            case .tooManyHosts: ["problem": "too_many_hosts"]
            // What only hosts are told.
            default: ["problem": "not_permitted"]
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
        json = ["problem": "url", "option": option, "mistake": word, "part": part]
    }

    private static func members(of reason: DatabaseReason) -> JSONObject {
        switch reason {
        case .noLibrary: ["problem": "no_library"]
        case .noPassword: ["problem": "no_password"]
        case .noConnection: ["problem": "no_connection"]
        case .tls: ["problem": "tls"]
        case .authentication: ["problem": "authentication"]
        case .foreignServer(let uid): ["problem": "foreign_server", "uid": uid.map { Int($0) }]
        case .weakAuthentication: ["problem": "weak_authentication"]
        case .tooMuch: ["problem": "too_much"]
        case .timedOut: ["problem": "timed_out"]
        case .closed: ["problem": "closed"]
        case .readOnly: ["problem": "read_only"]
        case .notNow: ["problem": "not_now"]
        case .noSchema: ["problem": "no_schema"]
        case .otherSchema(let version): ["problem": "other_schema", "version": version]
        case .notPermitted: ["problem": "not_permitted"]
        case .noRoom: ["problem": "no_room"]
        case .refused(let state): ["problem": "refused", "state": state]
        case .malformed: ["problem": "malformed"]
        case .busy: ["problem": "busy"]
        case .cancelled: ["problem": "cancelled"]
        }
    }
}
