// A member of a request's body that no one knows is the caller's mistake: taken in silence, a misspelt field would be
// one that was never said.

import RingbackBase
import Testing

@Suite struct `A member of a body that its route does not have` {
    private static let account = "/v1/accounts/app"

    /// The route, a body with a member that is none, and the one that was meant.
    static let mistakes: [(String, String, JSON, String, String?)] = [
        ("PATCH", "\(account)/user", ["pasword": "secret13"], "pasword", "password"),
        ("PATCH", "\(account)/user", ["data": [:], "e-mail": "a@b.org"], "e-mail", "email"),
        (
            "POST", "\(account)/sign-in", ["method": "password", "emial": "a@b.org", "password": "secret12"], "emial",
            "email"
        ),
        (
            "POST", "\(account)/sign-in", ["method": "otp", "email": "a@b.org", "create_users": false], "create_users",
            "create_user"
        ),
        ("POST", "\(account)/sign-in", ["something_else": .null], "something_else", nil),
        ("POST", "\(account)/factors", ["factor_typ": "totp"], "factor_typ", "factor_type"),
        ("POST", "\(account)/factors/x/challenge", ["chanel": "sms"], "chanel", "channel"),
        ("POST", "\(account)/factors/x/verify", ["code": "123456", "challengeid": "x"], "challengeid", "challenge_id"),
        ("POST", "\(account)/identities", ["provider": "github"], "provider", nil),
        (
            "POST", "\(account)/password-reset", ["email": "a@b.org", "capcha_token": "x"], "capcha_token",
            "captcha_token"
        ),
        ("POST", "\(account)/migration", ["form": "x"], "form", "from"),
        ("POST", "\(account)/refresh", ["forced": true], "forced", "force"),
        ("POST", "\(account)/reauthenticate", ["nonce": "1"], "nonce", nil),
        ("POST", "/v1/flows/x/verify", ["codes": "123456"], "codes", "code"),
        ("POST", "/v1/flows/x/resend", ["captcha": "x"], "captcha", nil),
        ("POST", "/v1/callbacks", ["uri": "swisscoin://x"], "uri", "url"),
        ("POST", "/v1/vault/unlock", ["pass_phrase": "x"], "pass_phrase", "passphrase"),
        ("POST", "/v1/vault/rekey", ["key_sources": "passphrase"], "key_sources", "key_source"),
        ("POST", "/v1/vault/join", ["pasword": "x"], "pasword", "password"),
        ("POST", "/v1/vault/share", ["cod": "x"], "cod", "code"),
        ("POST", "/v1/registrations", ["acount": "x", "issuer": "https://x"], "acount", "account"),
        ("POST", "/v1/exposed-sockets", ["name": "x", "acounts": []], "acounts", "accounts"),
        ("POST", "/v1/diagnostics/links", ["shceme": "x"], "shceme", "scheme"),
    ]

    @Test func `is refused by its name, with the one that was meant, and nothing is done`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp()
            let before = try await stage.sandbox.log(issuer: "/supabase").count
            for (method, path, body, name, meant) in Self.mistakes {
                let refused = try await stage.api(method, path, body)
                #expect(refused.status == 400 && refused.code == "validation_failed", "\(path): \(refused)")
                let words = refused["detail"]?.string ?? ""
                #expect(words.hasPrefix("\(name): "), "\(path): \(refused)")
                if let meant { #expect(words.contains("did you mean \(meant)?"), "\(path): \(refused)") }
            }
            #expect(try await stage.sandbox.log(issuer: "/supabase").count == before)
            // A function's arguments are the project's own.
            let echoed = try await stage.api("POST", "\(Self.account)/rpc/echo", ["anything": 1])
            #expect(echoed.status != 400, "\(echoed)")
            // A name may be long, and may hold what no terminal should see.
            let name = "\u{1B}[2J" + String(repeating: "x", count: 5_000)
            let odd = try await stage.api("PATCH", "\(Self.account)/user", .object(JSONObject([.init(name, 1)])))
            #expect(odd.status == 400 && (odd["detail"]?.string?.utf8.count ?? 9_999) < 1_000, "\(odd)")
            #expect(odd["detail"]?.string?.contains("\u{1B}") == false)
        }
    }

    @Test func `is none where a new password is said twice, which must be the same`() async throws {
        try await Stage.playProject(["autoconfirm": true]) { stage in
            func signUp(_ confirmation: JSON) async throws -> Answer {
                try await stage.api(
                    "POST", "\(Self.account)/sign-in",
                    [
                        "method": "sign_up", "email": "mira@example.org", "password": "secret12",
                        "password_confirmation": confirmation,
                    ])
            }
            let unequal = try await signUp("secret13")
            #expect(unequal.status == 400 && unequal.code == "validation_failed", "\(unequal)")
            #expect(unequal["detail"]?.string?.contains("password_confirmation") == true, "\(unequal)")
            #expect(unequal["detail"]?.string?.contains("secret") == false, "\(unequal)")
            #expect(try await signUp(12).status == 400)
            #expect(try await stage.sandbox.counters(issuer: "/supabase").requests("supabase_signup") == 0)
            let equal = try await signUp("secret12")
            #expect(equal.status == 200 && equal["state"] == "authenticated", "\(equal)")
            let user = "\(Self.account)/user"
            let wrong = try await stage.api(
                "PATCH", user, ["password": "secret13", "password_confirmation": "secret14"])
            #expect(wrong.code == "validation_failed", "\(wrong)")
            let alone = try await stage.api("PATCH", user, ["password_confirmation": "secret14"])
            #expect(alone.code == "validation_failed", "\(alone)")
            let right = try await stage.api(
                "PATCH", user, ["password": "secret13", "password_confirmation": "secret13"])
            #expect(right.status == 200, "\(right)")
            let elsewhere = try await stage.api(
                "POST", "\(Self.account)/sign-in",
                [
                    "method": "password", "email": "mira@example.org", "password": "secret13",
                    "password_confirmation": "secret13",
                ])
            #expect(elsewhere.code == "validation_failed", "\(elsewhere)")
        }
    }
}
