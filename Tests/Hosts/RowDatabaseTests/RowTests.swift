import PostgresClient
import SharedVault
import TestSupport
import Testing

@testable import RowDatabase

@Suite(.enabled(if: PostgresServer.isPossible, "needs PostgreSQL: make test-rows"), .timeLimit(.minutes(5)))
struct `Rows in a real PostgreSQL` {
    private let key = Fresh.key()
    private let lasting = Duration.seconds(60)

    private func hosts(_ count: Int = 2) async throws -> [RowDatabase] {
        let house = try await VaultHouse()
        let owner = Fresh.owner()
        var hosts: [RowDatabase] = []
        for number in 1...count { hosts.append(try await house.host("host\(number)", of: owner).rows) }
        return hosts
    }

    private func written(_ hosts: [RowDatabase]) async throws {
        let row = try await done(hosts[0].put([1], in: key, version: 0, lease: nil, overrides: false))
        #expect(row.version == 1 && row.sealed == [1] && row.lease == nil)
    }

    private func done(_ outcome: RowOutcome) throws -> SharedRow {
        guard case .done(let row) = outcome else { throw Refused() }
        return row
    }

    private func taken(_ host: RowDatabase, _ id: LeaseID, intent: [UInt8] = []) async throws -> SharedRow {
        try done(try await host.take(key, version: 1, id: id, intent: intent, lasting: lasting))
    }

    /// Appends what was received in an attempt.
    private func append(
        _ sealed: UInt8, _ id: LeaseID, step: Int = 1, parent: Int64 = 1, epoch: Int64 = 1, isFinal: Bool = true,
        to host: RowDatabase
    ) async throws -> SharedRow {
        try await host.append(
            .init(attempt: id, step: step, parentVersion: parent, epoch: epoch, sealed: [sealed]), to: key,
            isFinal: isFinal)
    }

    private struct Refused: Error {}

    @Test func `a row that was never written is missing`() async throws {
        #expect(try await hosts(1)[0].read([key, Fresh.key()]).isEmpty)
        #expect(try await hosts(1)[0].read([]).isEmpty)
    }

    @Test func `thousands of rows are read`() async throws {
        let host = try await hosts(1)[0]
        let keys = (0..<1_200).map { _ in Fresh.key() }
        try await withThrowingDiscardingTaskGroup { group in
            for start in 0..<20 {
                group.addTask {
                    for index in stride(from: start, to: keys.count, by: 20) {
                        _ = try await host.restore([2], in: keys[index], version: 3)
                    }
                }
            }
        }
        let rows = try await host.read(keys)
        #expect(rows.count == 1_200 && rows.values.allSatisfy { $0.version == 3 && $0.sealed == [2] })
        #expect(host.client.connections <= 3)
    }

    @Test func `a refresh: taken, appended, the head moved, the lease over`() async throws {
        let hosts = try await hosts()
        try await written(hosts)
        let id = Fresh.lease()
        let row = try await taken(hosts[0], id, intent: [7])
        #expect(row.epoch == 1 && row.version == 1)
        #expect(row.lease?.id == id && row.lease?.host == "host1")
        #expect((row.lease?.left ?? .zero) > .seconds(50) && (row.lease?.left ?? .zero) <= .seconds(60))
        #expect(row.openAttempts.map(\.id) == [id] && row.openAttempts[0].intent == [7])
        let seen = try await hosts[1].read([key])[key]
        #expect(seen?.lease?.host == "host1" && seen?.openAttempts.count == 1)

        let between = try await append(2, id, isFinal: false, to: hosts[0])
        #expect(between.version == 2 && between.sealed == [2] && between.lease?.id == id)
        #expect(between.openAttempts.isEmpty && between.candidates.isEmpty)
        let end = try await append(3, id, step: 2, parent: 2, to: hosts[0])
        #expect(end.version == 3 && end.sealed == [3] && end.lease == nil && end.candidates.isEmpty)
        // Again: no change.
        #expect(try await append(3, id, step: 2, parent: 2, to: hosts[0]) == end)
    }

    @Test func `of many hosts that take at once one wins`() async throws {
        let hosts = try await hosts(6)
        for round in 0..<5 {
            let key = Fresh.key()
            _ = try await hosts[0].put([1], in: key, version: 0, lease: nil, overrides: false)
            let taken = try await withThrowingTaskGroup(of: Bool.self) { group in
                for host in hosts {
                    for _ in 0..<2 {
                        group.addTask {
                            switch try await host.take(
                                key, version: 1, id: Fresh.lease(), intent: [], lasting: .seconds(60))
                            {
                            case .done: return true
                            case .refused(let row):
                                #expect(row?.lease != nil)
                                return false
                            }
                        }
                    }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(taken == 1, "round \(round)")
        }
    }

    @Test func `another version, and no row, are not taken`() async throws {
        let hosts = try await hosts(1)
        #expect(
            try await hosts[0].take(key, version: 1, id: Fresh.lease(), intent: [], lasting: lasting) == .refused(nil))
        try await written(hosts)
        let refused = try await hosts[0].take(key, version: 2, id: Fresh.lease(), intent: [], lasting: lasting)
        guard case .refused(let row) = refused else {
            Issue.record("taken")
            return
        }
        #expect(row?.version == 1 && row?.openAttempts.isEmpty == true)
    }

    @Test func `the same take again is taken once`() async throws {
        let hosts = try await hosts(1)
        try await written(hosts)
        let id = Fresh.lease()
        for _ in 0..<2 {
            let row = try await taken(hosts[0], id)
            #expect(row.epoch == 1 && row.openAttempts.count == 1)
        }
    }

    @Test func `a lease that is over is taken, and what its host then brings is a candidate`() async throws {
        let hosts = try await hosts()
        try await written(hosts)
        let (old, new) = (Fresh.lease(), Fresh.lease())
        _ = try await hosts[0].take(key, version: 1, id: old, intent: [1], lasting: .milliseconds(1))
        let row = try await taken(hosts[1], new, intent: [2])
        #expect(row.epoch == 2 && row.openAttempts.map(\.id) == [new, old])

        let late = try await append(9, old, to: hosts[0])
        #expect(late.version == 1 && late.sealed == [1] && late.lease?.id == new)
        #expect(late.openAttempts.map(\.id) == [new])
        #expect(late.candidates == [.init(attempt: old, step: 1, parentVersion: 1, epoch: 1, sealed: [9])])
        let head = try await append(3, new, epoch: 2, to: hosts[1])
        #expect(head.version == 2 && head.sealed == [3] && head.candidates.count == 1)
    }

    @Test func `a lease that is over but not taken by another still moves the head`() async throws {
        let hosts = try await hosts()
        try await written(hosts)
        let id = Fresh.lease()
        _ = try await hosts[0].take(key, version: 1, id: id, intent: [], lasting: .milliseconds(1))
        let row = try await append(2, id, to: hosts[0])
        #expect(row.version == 2 && row.candidates.isEmpty)
    }

    @Test func `steps may arrive in any order`() async throws {
        let hosts = try await hosts()
        try await written(hosts)
        let id = Fresh.lease()
        _ = try await taken(hosts[0], id)
        _ = try await append(3, id, step: 2, to: hosts[0])
        let row = try await append(2, id, isFinal: false, to: hosts[0])
        #expect(row.version == 2 && row.sealed == [3] && row.candidates.isEmpty)
    }

    @Test func `settling closes the attempt, releasing leaves it open`() async throws {
        let hosts = try await hosts()
        try await written(hosts)
        let (first, second) = (Fresh.lease(), Fresh.lease())
        _ = try await taken(hosts[0], first)
        // Not of another lease.
        try await hosts[1].release(key, attempt: second, ends: true)
        #expect(try await hosts[1].read([key])[key]?.lease?.id == first)
        try await hosts[0].release(key, attempt: first, ends: true)
        var row = try await hosts[1].read([key])[key]
        #expect(row?.lease == nil && row?.openAttempts.isEmpty == true)
        _ = try await taken(hosts[1], second)
        try await hosts[1].release(key, attempt: second, ends: false)
        row = try await hosts[0].read([key])[key]
        #expect(row?.lease == nil && row?.openAttempts.map(\.id) == [second])
        // The outcome is known later.
        try await hosts[1].release(key, attempt: second, ends: true)
        #expect(try await hosts[0].read([key])[key]?.openAttempts.isEmpty == true)
    }

    @Test func `a write waits for no lease only if it overrides, and then ends everything`() async throws {
        let hosts = try await hosts()
        try await written(hosts)
        let id = Fresh.lease()
        _ = try await taken(hosts[0], id)
        guard case .refused(let now) = try await hosts[1].put([2], in: key, version: 1, lease: nil, overrides: false)
        else {
            Issue.record("put")
            return
        }
        #expect(now?.lease?.id == id)
        let own = try done(await hosts[0].put([2], in: key, version: 1, lease: id, overrides: false))
        #expect(own.version == 2 && own.lease?.id == id)
        _ = try await append(8, Fresh.lease(), to: hosts[1])
        let row = try done(await hosts[1].put([3], in: key, version: 2, lease: nil, overrides: true))
        #expect(row.version == 3 && row.lease == nil && row.openAttempts.isEmpty && row.candidates.isEmpty)
        let stale = try await append(9, id, parent: 2, to: hosts[0])
        #expect(stale.version == 3 && stale.sealed == [3] && stale.candidates.map(\.sealed) == [[9]])
    }

    @Test func `a write whose reply was lost is the same write when it comes again`() async throws {
        let hosts = try await hosts(1)
        try await written(hosts)
        try await written(hosts)
        #expect(
            try await hosts[0].put([5], in: key, version: 0, lease: nil, overrides: false)
                == .refused(hosts[0].read([key])[key]))
    }

    @Test func `after a failover the newer content comes back, an older one does not`() async throws {
        let hosts = try await hosts()
        #expect(try await hosts[0].restore([4], in: key, version: 4).version == 4)
        #expect(try await hosts[1].restore([9], in: key, version: 4).sealed == [4])
        #expect(try await hosts[1].restore([3], in: key, version: 3).sealed == [4])
        let row = try await hosts[1].restore([6], in: key, version: 6)
        #expect(row.version == 6 && row.sealed == [6])
        // What was received in an attempt that the database has forgotten, of a row that it has forgotten.
        let lost = try await hosts[0].append(
            .init(attempt: Fresh.lease(), step: 1, parentVersion: 7, epoch: 3, sealed: [2]), to: Fresh.key(),
            isFinal: true)
        #expect(lost.version == 8 && lost.sealed == [2] && lost.lease == nil && lost.candidates.isEmpty)
    }
}
