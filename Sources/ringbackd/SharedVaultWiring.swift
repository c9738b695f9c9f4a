import APIServer
import BrokerCore
import Configuration
import Cryptography
import PostgresClient
import RowDatabase
import ServiceLifecycle
import SessionVault
import SharedVault

/// The daemon's vault: of this host alone, or the rows that several hosts share over it.
struct DaemonVault: Sendable {
    let vault: any Vault
    private let shared: (vault: SharedVault, database: RowDatabase)?

    init(_ local: SealedFileVault, _ configuration: VaultConfiguration, _ records: RecordKeeper) {
        guard let url = configuration.store else {
            (vault, shared) = (local, nil)
            return
        }
        let database = RowDatabase(
            url, password: configuration.passwordFile.map { .file($0) } ?? .passwordFile)
        let clock = BrokerClock.system
        let made = SharedVault(
            local: local, rows: database, place: url.place,
            identify: { () throws(VaultError) in
                do throws(HostFailure) {
                    let identity = try await database.identity()
                    return (Digest.hex(identity.owner), identity.name)
                } catch {
                    throw VaultError(error)
                }
            }, now: { .milliseconds(clock.boot()) }, random: { RandomToken.bytes($0) },
            tell: { records.note(.databaseTurned($0)) })
        (vault, shared) = (made, (made, database))
    }

    /// Adds what follows the rows, if there are any: it ends after everything that changes sessions.
    func addService(to group: inout ServiceGroupConfiguration) {
        guard shared != nil else { return }
        // After the first one, which is shut down last.
        group.services.insert(.init(service: SharedRowsService(vault: self), serviceName: "shared rows"), at: 1)
    }

    /// Follows what other hosts do, until the daemon ends.
    func follow() async {
        guard let shared else { return }
        shared.database.start()
        await shared.vault.follow()
    }

    /// The network may be back.
    func networkReturned() { shared?.database.tryAgain() }

    /// Ends the connections.
    func shutdown() { shared?.database.shutdown() }
}

/// Keeps the rows in view as long as sessions may change.
struct SharedRowsService: Service {
    let vault: DaemonVault

    func run() async throws {
        await cancelWhenGracefulShutdown { await vault.follow() }
        vault.shutdown()
    }
}

extension PostgresURL {
    /// Where the database is, for a status: without a password, which the URL never has.
    var place: String {
        let places = hosts.map { host in
            switch host.place {
            case .socket(let path): path
            case .address(let text): text.contains(":") ? "[\(text)]:\(host.port)" : "\(text):\(host.port)"
            case .name(let name): "\(name):\(host.port)"
            }
        }
        return "postgresql://\(user)@\(places.joined(separator: ","))/\(database)"
    }
}

extension VaultError {
    fileprivate init(_ failure: HostFailure) {
        switch failure {
        case .database(let error):
            switch error {
            case .unreachable(let reason): self = .unreachable(.databaseAway(reason))
            case .refused(let reason): self = .unreachable(.databaseRefused(reason))
            }
        case .noHost, .notJoined, .invitationUsed, .tooManyHosts, .nameTaken: self = .locked(.noHost)
        }
    }
}
