import PostgresClient
import RowDatabase
import SessionVault
import SharedVault
import StrictJSON

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
        switch reason {
        case .noLibrary: return problem("no_library")
        case .noPassword: return problem("no_password")
        case .noConnection: return problem("no_connection")
        case .tls: return problem("tls")
        case .authentication: return problem("authentication")
        case .foreignServer(let uid):
            var object = problem("foreign_server")
            object["uid"] = uid.map { .integer(Int($0)) }
            return object
        case .weakAuthentication: return problem("weak_authentication")
        case .tooMuch: return problem("too_much")
        case .timedOut: return problem("timed_out")
        case .closed: return problem("closed")
        case .readOnly: return problem("read_only")
        case .notNow: return problem("not_now")
        case .noSchema: return problem("no_schema")
        case .otherSchema(let version):
            var object = problem("other_schema")
            object["version"] = .integer(version)
            return object
        case .notPermitted: return problem("not_permitted")
        case .noRoom: return problem("no_room")
        case .refused(let state):
            var object = problem("refused")
            object["state"] = .string(state)
            return object
        case .malformed: return problem("malformed")
        case .busy: return problem("busy")
        case .cancelled: return problem("cancelled")
        }
    }
}
