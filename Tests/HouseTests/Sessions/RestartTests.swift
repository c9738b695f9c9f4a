import Glibc
import RingbackBase
import Testing

@Suite struct `A session and a restart` {
    @Test(arguments: [SIGTERM, SIGKILL])
    func `a valid session is served after a restart without the network`(signal: Int32) async throws {
        try await Stage.playSignedIn { stage in
            let token = try await stage.token()
            stage.daemon?.send(signal)
            _ = try await stage.daemon?.end()
            let before = try await stage.sandbox.counters().requests("token")
            try await stage.sandbox.control(["faults": [["endpoint": "token", "kind": "hang"]]])
            try await stage.startDaemon()
            #expect(try await stage.token() == token)
            let account = try await stage.account()
            #expect(account["state"]?.string == "authenticated" && account["subject"]?.string == "alice")
            #expect(try await stage.sandbox.counters().requests("token") == before)
        }
    }

    @Test func `PR-17: a refresh that a kill interrupted is repeated at the start`() async throws {
        try await Stage.playSignedIn { stage in
            try await stage.sandbox.control(["reuse_grace": 60])
            // The provider rotates, and its answer is never heard.
            try await stage.sandbox.control([
                "faults": [["endpoint": "token", "kind": "gate", "processed": true, "count": 1]]
            ])
            async let refresh = stage.api("POST", "/v1/accounts/work/refresh", ["force": true])
            try await stage.sandbox.wait("token")
            stage.daemon?.send(SIGKILL)
            _ = try await stage.daemon?.end()
            _ = try? await refresh
            try await stage.sandbox.control(["clear": true])
            let before = try await stage.sandbox.counters().tokenRequests("refresh_token")
            try await stage.startDaemon()
            #expect(try await stage.token() != nil)
            try await stage.eventually("a refresh that nobody asked for") {
                let state = try await stage.account()["state"]?.string
                return try await stage.sandbox.counters().tokenRequests("refresh_token") > before
                    && state == "authenticated"
            }
            #expect(try await stage.account()["error"] == nil)
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
        }
    }

    @Test func `REV-06: a sign-out deletes everything here although the provider is unreachable`() async throws {
        try await Stage.playSignedIn { stage in
            _ = await stage.sandbox.stop()
            try await stage.ringback("logout", "work", status: 0, out: "Signed out of work\n")
            try await stage.expectNothingHeld(error: nil)
            try await stage.ringback("token", "work", status: 3)
            // What is still to be told is said where one asks how things stand.
            #expect(try await stage.api("GET", "/v1/status")["pending_revocations"]?.integer == 1)
            #expect(SecretSearch.files(in: stage.directory) == [])
        }
    }
}
