import RingbackBase
import Testing

extension Stage {
    fileprivate static let keys: JSON = ["mfa": ["totp", "phone", "webauthn"]]
}

@Suite struct `ringback with a security key` {
    @Test func `enroll --webauthn and verify-factor take a security key's credentials`() async throws {
        try await Stage.playProject(Stage.keys) { stage in
            let key = try SecurityKey()
            try await stage.signUp()
            let adding = try await stage.startWithPipe(
                "ringback",
                ["supabase", "enroll", "app", "--webauthn", "--name", "Blue key", "--credential-fd", "3"])
            let options = try JSON(parsing: try await adding.line("the options").utf8)
            try await stage.answer(with: try key.create(options).text + "\n")
            try await adding.end().expect(0, prints: "Added and verified ")
            let list = try await stage.ringback("supabase", "factors", "app")
            #expect(list.out.contains("webauthn") && list.out.contains("Blue key"), "\(list)")

            try await stage.ringback("logout", "app")
            try await stage.logIn(says: "ringback supabase verify-factor app")
            let proving = try await stage.startWithPipe(
                "ringback", ["supabase", "verify-factor", "app", "--credential-fd", "3"])
            let asked = try JSON(parsing: try await proving.line("the options").utf8)
            try await stage.answer(with: try key.get(asked).text + "\n")
            let proved = try await proving.end().expect(0)
            #expect(proved.out.hasSuffix("Verified: app, level aal2\n"), "\(proved)")

            let json = try await stage.ringback("supabase", "factors", "app", "--json")
            let id = try json.json["factors"]?.array?.first?["id"]?.string ?? ""
            try await stage.ringback("supabase", "remove-factor", "app", id, status: 0, out: "Removed \(id)\n")
        }
    }

    @Test func `enroll --webauthn names a project without WebAuthn and a wrong credential`() async throws {
        try await Stage.playSignedUp { stage in
            try await stage.ringback(
                "supabase", "enroll", "app", "--webauthn", stdin: "{}\n", status: 1,
                says: "mfa_webauthn_enroll_not_enabled")
            try await stage.setProject(Stage.keys)
            let nothing = try await stage.ringback(
                "supabase", "enroll", "app", "--webauthn", "--name", "one", status: 4,
                says: "ringback supabase verify-factor app")
            #expect(nothing.out.hasPrefix(#"{"rp":"#), "\(nothing)")
            try await stage.ringback(
                "supabase", "verify-factor", "app", stdin: "123456\n", status: 64, says: "is not a JSON object")
            try await stage.ringback(
                "supabase", "verify-factor", "app", stdin: "{}\n", status: 64, says: "not a credential")
            try await stage.ringback(
                "supabase", "verify-factor", "app", "--code-fd", "0", stdin: "1\n", status: 64, says: "--credential-fd")
            let later = try await stage.ringback(
                "supabase", "enroll", "app", "--webauthn", "--name", "two", "--no-verify", status: 0)
            #expect(later.out.hasPrefix("Added "), "\(later)")
        }
    }
}
