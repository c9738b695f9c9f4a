import Glibc
import RingbackBase
import Testing

/// The rules for each response of a project are tested in SupabaseSignInTests and SupabaseAuthTests.
@Suite struct `Refresh of a Supabase session` {
    /// Plays with a session of the first kind of refresh tokens.
    private func play(_ reuseInterval: Int, _ test: (Stage) async throws -> Void) async throws {
        try await Stage.playSignedUp(["refresh_tokens": "v1", "reuse_interval": .integer(reuseInterval)], test)
    }

    private func refresh(_ stage: Stage, status: Int = 200) async throws {
        try await stage.api("POST", "/v1/accounts/app/refresh", ["force": true], status: status)
    }

    @Test func `the refresh token of the last response is on disk before the caller has its answer`() async throws {
        try await play(0) { stage in
            for _ in 0..<2 {
                try await refresh(stage)
                stage.daemon?.send(SIGKILL)
                _ = try await stage.daemon?.end()
                try await stage.startDaemon()
                #expect(try await stage.token("app") != nil)
                // A project answers an older token too, but then it does not rotate.
                let before = try await stage.sandbox.counters(issuer: "/supabase")["rotations"]
                try await refresh(stage)
                #expect(try await stage.sandbox.counters(issuer: "/supabase")["rotations"] == before + 1)
                try await stage.switchProject(["advance_clock": 60])
            }
            let tokens = try await stage.sandbox.log(issuer: "/supabase").filter { $0["endpoint"] == "supabase_token" }
                .compactMap { $0["document"]?["refresh_token"]?.string }
            #expect(Set(tokens).count == tokens.count)
        }
    }

    @Test func `a lost response that changes the kind of token is requested again without a caller`() async throws {
        try await play(600) { stage in
            try await stage.setProject(["refresh_tokens": "v2", "upgrade": 100])
            let before = try await stage.sandbox.counters(issuer: "/supabase")["refreshes"]
            let fault: JSON = [
                "endpoint": "supabase_token", "grant_type": "refresh_token", "count": 1, "kind": "status",
                "status": 504, "processed": true,
            ]
            try await stage.switchProject(["faults": [fault]])
            try await refresh(stage, status: 503)
            try await stage.eventually("another refresh") {
                try await stage.sandbox.counters(issuer: "/supabase")["refreshes"] >= before + 2
            }
            // The server has counted it; the daemon must have read the answer, or the next one joins it.
            try await stage.eventually("what it answered") {
                try await stage.account("app")["state"]?.string == "authenticated"
            }
            // The older token is not accepted any more after the interval.
            try await stage.switchProject(["advance_clock": 1_800])
            try await refresh(stage)
        }
    }
}
