import RingbackBase
import Testing

@Suite struct `A new password of an old session` {
    @Test func `a new password of an old session needs the code that the project sends`() async throws {
        try await Stage.playSignedUp(["secure_password_change": true]) { stage in
            try await stage.sandbox.control(["advance_clock": 90_000], issuer: "/supabase")
            try await stage.ringback(
                "supabase", "update-user", "app", "--password", stdin: "longer12\n", status: 1,
                says: "ringback supabase reauthenticate app")

            try await stage.ringback("supabase", "reauthenticate", "app", status: 0, prints: "--nonce-fd 0")
            let code = try await stage.code()
            try await stage.ringback(
                "supabase", "update-user", "app", "--nonce-fd", "0", "--password", stdin: "000000\nlonger12\n",
                status: 1)
            let changed = try await stage.ringback(
                "supabase", "update-user", "app", "--nonce-fd", "0", "--password", stdin: "\(code)\nlonger12\n",
                status: 0)
            for secret in [code, "longer12"] { #expect(!(changed.out + changed.err).contains(secret)) }

            try await stage.ringback("logout", "app")
            try await stage.logIn(password: "longer12")
        }
    }
}
