import RingbackBase
import Testing

@testable import Records

@Suite struct `The name of a host that shares a vault` {
    @Test func `is in every line from when it is known`() async throws {
        let folder = try Folder()
        let log = folder.log()
        log.write("daemon_started", JSONObject())
        log.setHost { "laptop" }
        log.write("host_removed", JSONObject([.init("host", "desktop")]))
        let entries = await log.entries(since: nil, account: nil, limit: 10).entries
        #expect(entries.map { $0["on_host"]?.string } == [nil, "laptop"])
        #expect(entries.last?["host"] == "desktop")
    }
}
