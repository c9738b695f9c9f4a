// Security keys and passkeys as second factors at a Supabase project: an app holds the ceremony, with a key of its own
// here, and the project checks every byte of it.

import RingbackBase
import Testing

extension Stage {
    fileprivate static let keys: JSON = ["mfa": ["totp", "phone", "webauthn"]]
    fileprivate static let factors = "/v1/accounts/app/factors"

    /// A challenge of the factor.
    fileprivate func ask(_ factor: String) async throws -> Answer {
        let challenge = try await api("POST", "\(Stage.factors)/\(factor)/challenge", [:])
        #expect(challenge.status == 200, "\(challenge)")
        return challenge
    }

    fileprivate func prove(_ factor: String, _ challenge: Answer, _ credential: JSON) async throws -> Answer {
        try await api(
            "POST", "\(Stage.factors)/\(factor)/verify",
            ["challenge_id": try #require(challenge["id"]), "credential": credential])
    }

    /// A factor that the key has proved, made by way of the socket.
    fileprivate func addKey(_ key: SecurityKey, name: String = "Key") async throws -> String {
        let factor = try await api(
            "POST", Stage.factors, ["factor_type": "webauthn", "friendly_name": .string(name)])
        #expect(factor.status == 201 && factor["factor_type"] == "webauthn", "\(factor)")
        let id = try #require(factor["id"]?.string)
        let challenge = try await ask(id)
        #expect(challenge["webauthn"]?["type"] == "create", "\(challenge)")
        let verified = try await prove(id, challenge, try key.create(try #require(challenge["webauthn"]?["options"])))
        #expect(verified.status == 200 && verified["aal"] == "aal2", "\(verified)")
        return id
    }

    fileprivate func signInAgain() async throws {
        try await ringback("logout", "app")
        let login = try await ringback(
            "login", "app", "--method", "password", "--email", "mira@example.org", stdin: "secret12\n")
        #expect(login.status == 0 && login.err.contains("ringback supabase verify-factor app"), "\(login)")
    }
}

@Suite struct `A security key as second factor` {
    @Test func `a security key is added through the socket API, raises the session to aal2 and is removed`()
        async throws
    {
        try await Stage.playProject(Stage.keys) { stage in
            let key = try SecurityKey()
            try await stage.signUp()
            let events = try stage.start("ringback", ["events", "app", "--json"])
            _ = try await events.line("a start") { $0.contains(#""event":"initial_session""#) }
            let id = try await stage.addKey(key)
            _ = try await events.line("the proof") { $0.contains(#""event":"mfa_challenge_verified""#) }
            // What the project keeps of the last answer is nobody's business.
            let factors = try await stage.api("GET", Stage.factors)["factors"]?.array ?? []
            #expect(factors.first?["factor_type"] == "webauthn" && factors.first?["status"] == "verified")
            #expect(factors.first?["last_webauthn_challenge_data"] == nil, "\(factors)")

            try await stage.signInAgain()
            #expect(try await stage.account("app")["next_aal"] == "aal2")
            let challenge = try await stage.ask(id)
            #expect(challenge["webauthn"]?["type"] == "request", "\(challenge)")
            let options = try #require(challenge["webauthn"]?["options"])
            #expect(options["allowCredentials"]?.array?.count == 1 && options["rpId"] == "app.example.org")
            let verified = try await stage.prove(id, challenge, try key.get(options))
            #expect(verified.status == 200 && verified["aal"] == "aal2", "\(verified)")
            // The new refresh token is the one that is presented next: the older one would end the session.
            try await stage.sandbox.control(["advance_clock": 60], issuer: "/supabase")
            let refreshed = try await stage.api("POST", "/v1/accounts/app/refresh", ["force": true])
            #expect(refreshed.status == 200 && refreshed["aal"] == "aal2", "\(refreshed)")
            let token = try await stage.api("GET", "/v1/accounts/app/session")["access_token"]?.string ?? ""
            let parts = token.split(separator: ".")
            let claims = try JSON(parsing: try #require(parts.count == 3 ? Base64URL.decode(String(parts[1])) : nil))
            #expect(claims["amr"]?.array?.first?["method"] == "mfa/webauthn", "\(claims)")

            let removed = try await stage.api("DELETE", "\(Stage.factors)/\(id)")
            #expect(removed.status == 200 && removed["aal"] == "aal1" && removed["next_aal"] == "aal1", "\(removed)")
        }
    }
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
            let added = try await adding.end()
            #expect(added.status == 0 && added.out.contains("Added and verified "), "\(added)")
            let list = try await stage.ringback("supabase", "factors", "app")
            #expect(list.out.contains("webauthn") && list.out.contains("Blue key"), "\(list)")

            try await stage.signInAgain()
            let proving = try await stage.startWithPipe(
                "ringback", ["supabase", "verify-factor", "app", "--credential-fd", "3"])
            let asked = try JSON(parsing: try await proving.line("the options").utf8)
            try await stage.answer(with: try key.get(asked).text + "\n")
            let proved = try await proving.end()
            #expect(proved.status == 0 && proved.out.hasSuffix("Verified: app, level aal2\n"), "\(proved)")

            let json = try await stage.ringback("supabase", "factors", "app", "--json")
            let id = try JSON(parsing: json.out.utf8)["factors"]?.array?.first?["id"]?.string ?? ""
            let removed = try await stage.ringback("supabase", "remove-factor", "app", id)
            #expect(removed.status == 0 && removed.out == "Removed \(id)\n", "\(removed)")
        }
    }

    @Test func `enroll --webauthn names a project without WebAuthn and a wrong credential`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp()
            let off = try await stage.ringback("supabase", "enroll", "app", "--webauthn", stdin: "{}\n")
            #expect(off.status == 1 && off.err.contains("mfa_webauthn_enroll_not_enabled"), "\(off)")
            try await stage.setProject(Stage.keys)
            let nothing = try await stage.ringback("supabase", "enroll", "app", "--webauthn", "--name", "one")
            #expect(nothing.status == 4 && nothing.out.hasPrefix(#"{"rp":"#), "\(nothing)")
            #expect(nothing.err.contains("ringback supabase verify-factor app"), "\(nothing)")
            let garbage = try await stage.ringback("supabase", "verify-factor", "app", stdin: "123456\n")
            #expect(garbage.status == 64 && garbage.err.contains("is not a JSON object"), "\(garbage)")
            let empty = try await stage.ringback("supabase", "verify-factor", "app", stdin: "{}\n")
            #expect(empty.status == 64 && empty.err.contains("not a credential"), "\(empty)")
            let code = try await stage.ringback("supabase", "verify-factor", "app", "--code-fd", "0", stdin: "1\n")
            #expect(code.status == 64 && code.err.contains("--credential-fd"), "\(code)")
            let later = try await stage.ringback(
                "supabase", "enroll", "app", "--webauthn", "--name", "two", "--no-verify")
            #expect(later.status == 0 && later.out.hasPrefix("Added "), "\(later)")
        }
    }

    @Test func `wrong options of enroll --webauthn are usage errors`() async throws {
        let mistakes: [([String], String)] = [
            (["--webauthn", "--phone", "+4915112345678"], "--webauthn and --phone exclude each other"),
            (["--webauthn", "--code-fd", "3"], "--webauthn has no code"),
            (["--credential-fd", "3"], "--credential-fd belongs to --webauthn"),
            (["--webauthn", "--no-verify", "--credential-fd", "3"], "--no-verify and --credential-fd exclude"),
            (["--webauthn", "--credential-fd=-1"], "A descriptor must be a number, 0 or more."),
        ]
        try await Stage.play("", startsDaemon: false) { stage in
            for (arguments, words) in mistakes {
                let output = try await stage.run("ringback", ["supabase", "enroll", "app"] + arguments)
                #expect(output.status == 64 && output.out.isEmpty && output.err.contains(words), "\(output)")
            }
        }
    }

    @Test func `enroll --webauthn on a terminal can be given up with an empty line`() async throws {
        try await Stage.playProject(Stage.keys) { stage in
            try await stage.signUp()
            let enroll = try stage.terminal("supabase", "enroll", "app", "--webauthn")
            try await enroll.shows(#"{"rp":"#)
            try await enroll.shows("use another method.")
            try await enroll.shows("Credential (it is not shown; empty gives up): ")
            enroll.type("")
            let ended = try await enroll.end()
            #expect(ended.status == 4 && ended.text.contains("verify-factor app"), "\(ended)")
        }
    }
}
