// What the audit log says of refreshes that fail.

import RingbackBase
import Testing

@Suite struct `The audit log of refreshes that fail` {
    private func entries(_ stage: Stage) async throws -> [JSON] {
        let audit = try await stage.ringback("audit", "--json", "--limit", "1000")
        return try audit.lines.map { try JSON(parsing: $0.utf8) }
    }

    private func count(_ event: String, _ stage: Stage) async throws -> Int {
        try await entries(stage).count { $0["event"]?.string == event }
    }

    @Test func `the audit log has one line for equal refresh failures`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            for (fault, isNew) in [(503, true), (503, false), (500, false)] {
                let lines = try await count("refresh_failed", stage)
                try await stage.sandbox.control([
                    "clear": true, "faults": [["endpoint": "token", "kind": "status", "status": .integer(fault)]],
                ])
                for _ in 0..<8 {
                    let answer = try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true])
                    #expect(answer.code == "provider_unreachable", "\(answer)")
                }
                #expect(try await count("refresh_failed", stage) == lines + (isNew ? 1 : 0))
            }
            #expect(try await stage.sandbox.counters().requests("token") >= 25)
            try await stage.sandbox.control([
                "clear": true, "faults": [["endpoint": "token", "kind": "error", "error": "unauthorized_client"]],
            ])
            for _ in 0..<8 {
                #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status >= 400)
            }
            let failed = try await entries(stage).filter { $0["event"] == "refresh_failed" }
            #expect(failed.count == 2, "\(failed)")
            #expect(failed.contains { $0["provider_code"] == "unauthorized_client" }, "\(failed)")
            // The failures of the last test that are not written are no other account's.
            #expect(failed.allSatisfy { $0["account"] == "work" }, "\(failed)")
        }
    }

    @Test func `a refused downscoped token is no refresh failure in the audit log`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let exposed = try await stage.ringback("expose", "ci", "--account", "work", "--json")
            let socket = try #require(try JSON(parsing: exposed.out.utf8)["socket"]?.string, "\(exposed)")
            try await stage.sandbox.control([
                "faults": [["endpoint": "token", "kind": "error", "error": "invalid_scope"]]
            ])
            let before = try await stage.sandbox.counters().requests("token")
            for _ in 0..<5 {
                let own = try await stage.ringback("token", "work", "--scope", "email")
                #expect(own.status == 1 && own.out.isEmpty, "\(own)")
                let other = try await stage.ringback("token", "work", "--scope", "openid", "--socket", socket)
                #expect(other.status != 0 && other.out.isEmpty, "\(other)")
            }
            #expect(try await stage.sandbox.counters().requests("token") == before + 10)
            #expect(try await count("refresh_failed", stage) == 0)
            let refused = try await entries(stage).filter { $0["event"] == "downscoping_failed" }
            // The owner's once, and the exposed socket's once: five refusals of one kind are one entry.
            let codes = refused.map { $0["provider_code"] ?? $0["code"] ?? "" }
            #expect(codes == ["invalid_scope", "method_unsupported"], "\(refused)")
            // Nothing is wrong with the session.
            let account = try await stage.account()
            #expect(account["state"] == "authenticated" && account["error"] == nil, "\(account.text)")
            #expect(try await stage.token() != nil)
        }
    }
}
