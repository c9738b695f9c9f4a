import PostgresClient
import Secrets

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
