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
        _ = try await rows.read([])
        let clock = try #require(rows.facts.clock)
        #expect((before - 1...milliseconds() + 1).contains(clock + 100_000))
    }

    @Test func `is read again after ten minutes and at another connection, and never by a slow answer`() {
        var clock = ServerClock()
        #expect(clock.isDue(at: .zero) && clock.boot == nil)
        clock.note(1_000_000, from: .seconds(10), to: .seconds(12))
        #expect(clock.isDue(at: .seconds(12)) && clock.boot == nil)
        clock.note(1_000_000, from: .seconds(13), to: .milliseconds(13_500))
        #expect(clock.boot == 1_000_000 - 13_250)
        #expect(!clock.isDue(at: .seconds(600)) && clock.isDue(at: .seconds(614)))
        clock.readAgain()
        #expect(clock.isDue(at: .seconds(14)) && clock.boot == 1_000_000 - 13_250)
        clock.note(-1, from: .seconds(14), to: .seconds(14))
        #expect(clock.boot == 1_000_000 - 13_250)
    }

    private func milliseconds() -> Int {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int(time.tv_sec) * 1_000 + time.tv_nsec / 1_000_000
    }
}
