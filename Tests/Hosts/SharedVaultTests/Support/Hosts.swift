import BrokerCore
import Cryptography
import RingbackBase
import SessionVault
import Synchronization

@testable import SharedVault

/// Hosts that share one database in memory, and the time.
final class Hosts: Sendable {
    let database: MemoryRows
    static let slot = VaultSlot(account: "work", binding: "https://id.example ringback")
    static let dataKey = Secret(bytes: [UInt8](repeating: 7, count: 32))

    init() {
        let time = TimeBox()
        clock = time
        database = MemoryRows { time.now }
    }

    let clock: TimeBox

    final class TimeBox: Sendable {
        private let time = Mutex<Duration>(.seconds(1_000))
        var now: Duration { time.withLock { $0 } }
        func advance(by duration: Duration) { time.withLock { $0 += duration } }
    }

    func advance(by duration: Duration) { clock.advance(by: duration) }

    /// A host with an open vault; `local` is what it had before, if it is started again.
    ///
    /// - Parameter bootedAt: when it was booted, by the database's clock; nil if it has not read that.
    func host(
        _ name: String, local: any Vault = MemoryVault(), owner: String = "alice", bootedAt: Int? = nil,
        fault: @escaping @Sendable (String) -> MemoryRows.Fault = { _ in .none }
    ) async throws -> SharedVault {
        let connection = MemoryRows.Connection(
            database, host: name, clock: bootedAt.map { $0 * 1_000 }, fault: fault)
        let vault = SharedVault(
            local: local, rows: connection, hosts: MemoryHosts.Connection(MemoryHosts(), role: name),
            place: DatabasePlace(shown: "database", role: name, database: "vault"), now: { [clock] in clock.now },
            random: { RandomToken.bytes($0) })
        try await vault.adopt(Membership(dataKey: Hosts.dataKey, owner: owner, host: name))
        return vault
    }

    func pair() async throws -> (SharedVault, SharedVault) {
        let (one, two) = (try await host("one"), try await host("two"))
        try await one.store("first", as: .replacement)
        guard try await two.text() == "first" else { throw VaultError.unreachable(.changedElsewhere) }
        return (one, two)
    }

    var row: SharedRow? { database.rows.first { $0.key != Membership.markRow } }
}

final class Wire: Sendable {
    private let state = Mutex((fault: MemoryRows.Fault.none, only: String?.none, count: Int.max))
    private let names = Mutex<[String]>([])

    func count(of name: String) -> Int { names.withLock { $0.count { $0 == name } } }

    /// What happens to statements from now on: to those of a name only, and so many of them.
    func set(_ fault: MemoryRows.Fault, for only: String? = nil, count: Int = .max) {
        state.withLock { $0 = (fault, only, count) }
    }

    func fault(_ name: String) -> MemoryRows.Fault {
        names.withLock { $0.append(name) }
        return state.withLock { state in
            guard state.fault != .none, state.only == nil || state.only == name, state.count > 0 else { return .none }
            state.count -= 1
            return state.fault
        }
    }
}

extension SharedVault {
    func text(_ slot: VaultSlot = Hosts.slot) async throws(VaultError) -> String? {
        try await load(slot)?.text.revealed()
    }

    func take(
        _ token: String = "r1", left: Duration? = .seconds(60), in slot: VaultSlot = Hosts.slot
    ) async throws(VaultError) -> Announcement {
        try await announce(slot, presenting: Secret(token), accessTokenLeft: left).withoutLease
    }

    func requestBound(_ slot: VaultSlot) async throws(VaultError) -> Duration? {
        try await requestBound(slot, under: slots[slot]?.attempt.map { .lease($0.id.bytes) } ?? .unleased)
    }

    func store(_ text: String, as write: VaultWrite) async throws(VaultError) {
        try await store(Secret(text), in: Hosts.slot, as: write)
    }
}

func failure<Value>(_ body: () async throws -> Value) async -> VaultError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? VaultError
    }
}

extension Announcement {
    /// The same, with ``RefreshLease/unleased`` in place of a lease, whose identifier is random.
    var withoutLease: Announcement {
        guard case .granted(_, let newer, let older) = self else { return self }
        return .granted(.unleased, newer: newer, older: older)
    }
}
