import BrokerCore
import Records
import Synchronization
import Testing

@testable import APIServer

@Suite struct `The record keeper` {
    @Test func `a year of facts leaves it as it was: who asked to be told is told`() async throws {
        let folder = try AuditFolder()
        let records = RecordKeeper(
            audit: AuditLog(path: folder.file, options: AuditLog.Options(now: { 0 }, report: { _ in })))
        let told = Mutex<[String?]>([])
        records.whenGone { name in told.withLock { $0.append(name) } }
        let account = try #require(AccountName("work"))
        // Each look wrapped the listener once more: that many made the next word to it overflow the stack.
        for _ in 0..<300_000 { records.note(.refreshStarted(account, reason: .scheduled)) }
        records.note(.vaultLocked)
        #expect(told.withLock { $0 } == [nil])
    }
}
