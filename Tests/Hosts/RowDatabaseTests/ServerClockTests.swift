import Glibc
import PostgresClient
import SharedVault
import Testing

@testable import RowDatabase

@Suite struct `The server's clock` {
    @Test func `is known with the first rows that are read`() async throws {
        let house = try await VaultHouse()
        let member = try await house.host("one", of: Fresh.owner())
        #expect(member.rows.facts.clock == nil)
        let url = try house.server.url(member.role, house.database)
        let rows = RowDatabase(url, password: .given { member.password }, now: { .seconds(100) })
        defer { rows.shutdown() }
        let before = milliseconds()
        #expect(try await rows.read([RowKey(bytes: [1])]).isEmpty)
        let clock = try #require(rows.facts.clock)
        #expect((before - 1...milliseconds() + 1).contains(clock + 100_000))
    }

    @Test func `is known by the shortest reading of ten minutes and of a connection`() {
        var clock = ServerClock()
        clock.note(1_000_000, from: .seconds(10), to: .seconds(12))
        #expect(clock.boot == 1_000_000 - 11_000)
        clock.note(2_000_000, from: .seconds(13), to: .milliseconds(13_500))
        #expect(clock.boot == 2_000_000 - 13_250)
        clock.note(3_000_000, from: .seconds(14), to: .seconds(15))
        clock.note(-1, from: .seconds(15), to: .seconds(15))
        #expect(clock.boot == 2_000_000 - 13_250)
        clock.note(3_000_000, from: .seconds(700), to: .seconds(702))
        #expect(clock.boot == 3_000_000 - 701_000)
        clock.readAgain()
        #expect(clock.boot == 3_000_000 - 701_000)
        clock.note(4_000_000, from: .seconds(703), to: .seconds(708))
        #expect(clock.boot == 4_000_000 - 705_500)
    }

    private func milliseconds() -> Int {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int(time.tv_sec) * 1_000 + time.tv_nsec / 1_000_000
    }
}
