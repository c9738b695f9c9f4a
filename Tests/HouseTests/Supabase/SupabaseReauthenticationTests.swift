// A new password where the project wants to know that it is still the same person: with a code, once the session is
// older than a day.

import RingbackBase
import Testing

@Suite struct `A new password of an old session` {
    @Test func `a new password of an old session needs the code that the project sends, from a descriptor`()
        async throws
    {
        try await Stage.playProject(["secure_password_change": true]) { stage in
            try await stage.signUp()
            try await stage.sandbox.control(["advance_clock": 90_000], issuer: "/supabase")
            let without = try await stage.ringback("supabase", "update-user", "app", "--password", stdin: "longer12\n")
            #expect(without.status == 1, "\(without)")
            #expect(without.err.contains("ringback supabase reauthenticate app"), "\(without)")

            let sent = try await stage.ringback("supabase", "reauthenticate", "app")
            #expect(sent.status == 0 && sent.out.contains("--nonce-fd 0"), "\(sent)")
            let code = try await stage.code()
            let wrong = try await stage.ringback(
                "supabase", "update-user", "app", "--nonce-fd", "0", "--password", stdin: "000000\nlonger12\n")
            #expect(wrong.status == 1, "\(wrong)")
            let changed = try await stage.ringback(
                "supabase", "update-user", "app", "--nonce-fd", "0", "--password", stdin: "\(code)\nlonger12\n")
            #expect(changed.status == 0, "\(changed)")
            for secret in [code, "longer12"] { #expect(!(changed.out + changed.err).contains(secret)) }

            try await stage.ringback("logout", "app")
            let login = try await stage.ringback(
                "login", "app", "--method", "password", "--email", "mira@example.org", stdin: "longer12\n")
            #expect(login.status == 0, "\(login)")
        }
    }

    @Test func `a new password needs the current one where the project requires it`() async throws {
        try await Stage.playProject(["require_current_password": true]) { stage in
            try await stage.signUp()
            let refused = try await stage.ringback("supabase", "update-user", "app", "--password", stdin: "longer12\n")
            #expect(refused.status == 1, "\(refused)")
            let changed = try await stage.ringback(
                "supabase", "update-user", "app", "--current-password-fd", "0", "--password",
                stdin: "secret12\nlonger12\n")
            #expect(changed.status == 0, "\(changed)")
        }
    }
}
