import Glibc
import PostgresClient
import RingbackBase
import SharedVault
import Synchronization
import TestSupport
import Testing

@testable import RowDatabase

struct VaultHouse {
    let server: PostgresServer
    let database: String

    private static let prepared = Mutex(Set<String>())

    init(_ database: String = "trusting") async throws {
        try await self.init(try await onThread { try PostgresServer.running() }, database)
    }

    init(_ server: PostgresServer, _ database: String = "trusting") async throws {
        self.server = server
        self.database = database
        guard VaultHouse.prepared.withLock({ $0.insert("\(server.directory) \(database)").inserted }) else {
            // Another test makes it.
            while try await administration.facts().version == 0 { await Task.yield() }
            return
        }
        try await administration.prepare()
    }

    var administration: VaultAdministration {
        get throws { VaultAdministration(try server.url("postgres", database), password: .none) }
    }

    func host(_ name: String, of owner: String) async throws -> Member {
        let invitation = try await administration.admit(owner: owner, lasting: .seconds(600))
        return try await join(name, invitation)
    }

    func join(_ name: String, _ invitation: Invitation) async throws -> Member {
        let first = try connect(invitation.role, invitation.password)
        defer { first.shutdown() }
        let password = Invitation.newPassword()
        try await first.accept(as: name, password: password, publicKey: Array(name.utf8))
        return Member(role: invitation.role, password: password, rows: try connect(invitation.role, password))
    }

    func connect(_ role: String, _ password: Secret) throws -> RowDatabase {
        RowDatabase(try server.url(role, database), password: .given { password })
    }

    func client(_ role: String, _ password: Secret? = nil) throws -> PostgresClient {
        PostgresClient(try server.url(role, database), password: .given { password ?? Secret("none") })
    }
}

struct Member {
    let role: String
    let password: Secret
    let rows: RowDatabase
}

extension RowKey {
    var hex: String { bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}

enum Fresh {
    private static let number = Atomic(0)
    static func owner(_ name: String = "owner") -> String {
        "\(name)-\(number.add(1, ordering: .relaxed).newValue)"
    }
    static func key() -> RowKey {
        RowKey(bytes: [UInt8](repeating: 0, count: 24) + bytes(number.add(1, ordering: .relaxed).newValue))
    }
    static func lease() -> LeaseID {
        LeaseID(bytes: [UInt8](repeating: 0, count: 8) + bytes(number.add(1, ordering: .relaxed).newValue))
    }
    private static func bytes(_ number: Int) -> [UInt8] {
        (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
}
