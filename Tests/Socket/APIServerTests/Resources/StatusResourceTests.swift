import BrokerCore
import Glibc
import LocalHTTP
import RingbackBase
import Testing

@testable import APIServer
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `The daemon on the socket` {
    @Test func `its status counts the accounts by state`() async throws {
        let house = try await APIHouse()
        try await house.configure([try APIHouse.account("work"), try APIHouse.account("second")])
        try await house.signIn()
        let status = await house.ask("GET", "/v1/status")
        #expect(status["version"]?.string == APIHouse.version)
        #expect(status["build"] == "commit 1a2b3c4d5")
        #expect(status["pid"]?.integer == Int(getpid()))
        #expect(status["uptime"] == 0)
        house.clock.advance(by: 75)
        #expect(await house.ask("GET", "/v1/status")["uptime"] == 75)
        #expect(status["vault"]?["kind"] == "memory")
        #expect(status["vault"]?["locked"] == false && status["vault"]?["reason"] == nil)
        #expect(status["pending_revocations"] == 0)
        #expect(status["pending_revocations_by_account"] == .object(JSONObject()))
        #expect(status["listeners"] == ["127.0.0.1:4711"])
        let counts = try #require(status["accounts"]?.object)
        #expect(counts.names == AccountState.allCases.map(\.rawValue))
        #expect(counts["authenticated"] == 1)
        #expect(counts["unauthenticated"] == 1)
        #expect(counts["loading"] == 0)
    }

    @Test func `the peer is told what is seen of it`() async throws {
        let house = try await APIHouse()
        let own = await house.ask("GET", "/v1/peer", peer: .local(uid: 1_000, pid: getpid()))
        #expect(own["uid"] == 1_000)
        #expect(own["pid"]?.integer == Int(getpid()))
        #expect(own["executable"]?.string?.hasPrefix("/") == true)
        #expect(own["policy"] == "same-uid")
        #expect(own["operations"]?.array?.contains("token") == true)
        // A process that is gone has no executable, and root is let in.
        let gone = await house.ask("GET", "/v1/peer", peer: .local(uid: 0, pid: Int32.max))
        #expect(gone.status == 200)
        #expect(gone["executable"] == nil && gone["unit"] == nil)
    }

    @Test func `a reload answers with the accounts, or with every mistake`() async throws {
        let house = try await APIHouse()
        let good = await house.ask("POST", "/v1/reload")
        #expect(good.text == #"{"reloaded":true,"accounts":["work"]}"#)
        house.mistakes.ignore(["vault"])
        let part = await house.ask("POST", "/v1/reload")
        #expect(part.text == #"{"reloaded":true,"accounts":["work"],"restart_needed":["vault"]}"#)
        let mistake: JSON = [
            "file": "/x/config.toml", "line": 3, "key": "accounts.work.isuer", "message": "unknown key",
        ]
        house.mistakes.plant([mistake, mistake])
        let bad = await house.ask("POST", "/v1/reload", "{}")
        #expect(bad.code == "invalid_configuration")
        #expect(bad["recovery"] == "fix_configuration")
        #expect(bad["errors"] == [mistake, mistake])
    }
}
