import RingbackBase
import Testing

@Suite struct `What a project is asked for a way in` {
    private static let browser = Browser.environment
    private static let captcha: JSON = ["captcha_token": "right"]
    /// Looked up once.
    private static let keys = Wire("GET .well-known/jwks.json")
    /// What proves a token that no published key can prove: once per session, before the token is served.
    private static let user = Wire("GET user", signedIn: true)

    private func expect(
        _ stage: Stage, _ rows: [Wire], of arguments: [String], stdin: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let name = arguments.joined(separator: " ")
        try await stage.expect(rows, of: name, sourceLocation: sourceLocation) {
            try await stage.run(
                "ringback", ["login", "app"] + arguments, stdin: stdin, environment: Self.browser, status: 0,
                sourceLocation: sourceLocation)
        }
        try await stage.expectSignOut(sourceLocation: sourceLocation)
    }

    @Test func `sign-up, password and anonymous logins send the requests of supabase-js`() async throws {
        let settings: JSON = ["captcha": "right", "phone_autoconfirm": true]
        try await Stage.playProject(settings) { stage in
            let mail = ["--email", " Mira@Example.org ", "--captcha-token-fd", "0"]
            try await expect(
                stage,
                [
                    Wire(
                        "POST signup",
                        body: [
                            "email": "mira@example.org", "password": "secret12", "data": ["plan": "free"],
                            "gotrue_meta_security": Self.captcha,
                        ], link: true), Self.keys, Self.user,
                ], of: ["--method", "sign_up"] + mail + ["--data", #"{"plan":"free"}"#], stdin: "secret12\nright\n")
            try await expect(
                stage,
                [
                    Wire(
                        "POST token", query: ["grant_type": "password"],
                        body: [
                            "email": "mira@example.org", "password": "secret12",
                            "gotrue_meta_security": Self.captcha,
                        ]), Self.user,
                ], of: ["--method", "password"] + mail, stdin: "secret12\nright\n")
            let phone = ["--phone", "+49 1511 2345678", "--captcha-token-fd", "0"]
            try await expect(
                stage,
                [
                    Wire(
                        "POST signup",
                        body: [
                            "phone": "4915112345678", "password": "secret12", "channel": "whatsapp",
                            "gotrue_meta_security": Self.captcha,
                        ]), Self.user,
                ], of: ["--method", "sign_up", "--channel", "whatsapp"] + phone, stdin: "secret12\nright\n")
            try await expect(
                stage,
                [
                    Wire(
                        "POST token", query: ["grant_type": "password"],
                        body: [
                            "phone": "4915112345678", "password": "secret12", "gotrue_meta_security": Self.captcha,
                        ]), Self.user,
                ], of: ["--method", "password"] + phone, stdin: "secret12\nright\n")
            try await expect(
                stage,
                [
                    Wire("POST signup", body: ["data": ["plan": "free"], "gotrue_meta_security": Self.captcha]),
                    Self.user,
                ],
                of: ["--method", "anonymous", "--data", #"{"plan":"free"}"#, "--captcha-token-fd", "0"],
                stdin: "right\n")
        }
    }

    @Test func `logins by code and magic link send the requests of supabase-js`() async throws {
        let settings: JSON = ["configuration": "B", "captcha": "right", "mail_interval": 0, "sms_interval": 0]
        try await Stage.playProject(settings) { stage in
            let person: JSON = [
                "email": "mira@example.org", "create_user": true, "gotrue_meta_security": Self.captcha,
            ]
            try await expectCode(
                stage, Wire("POST otp", body: person), of: ["--method", "otp", "--email", "mira@example.org"],
                then: [Self.keys]
            ) { ["type": "email", "token": .string($0), "email": "mira@example.org"] }
            try await expectCode(
                stage, Wire("POST otp", body: person, link: true),
                of: ["--method", "magic_link", "--email", "mira@example.org"]
            ) { ["type": "email", "token": .string($0), "email": "mira@example.org"] }
            try await expectCode(
                stage, Wire("POST otp", body: person, link: true),
                of: ["--method", "magic_link", "--email", "mira@example.org"], member: "token_hash"
            ) { ["type": "email", "token_hash": .string($0)] }
            let number: JSON = [
                "phone": "4915112345678", "create_user": true, "channel": "whatsapp",
                "gotrue_meta_security": Self.captcha,
            ]
            try await expectCode(
                stage, Wire("POST otp", body: number),
                of: ["--method", "otp", "--phone", "+4915112345678", "--channel", "whatsapp"], box: "messages"
            ) { ["type": "sms", "token": .string($0), "phone": "4915112345678"] }
            try await expectCode(
                stage,
                Wire(
                    "POST signup",
                    body: [
                        "email": "new@example.org", "password": "secret12", "gotrue_meta_security": Self.captcha,
                    ], link: true),
                of: ["--method", "sign_up", "--email", "new@example.org"], stdin: "secret12\n"
            ) { ["type": "email", "token": .string($0), "email": "new@example.org"] }
        }
    }

    /// Asks for a message, redeems its code or hash in another terminal, and holds both requests to the table.
    private func expectCode(
        _ stage: Stage, _ row: Wire, of arguments: [String], box: String = "mailbox", member: String = "code",
        stdin: String = "", then: [Wire] = [], sourceLocation: SourceLocation = #_sourceLocation,
        proof: (String) -> JSON
    ) async throws {
        let name = arguments.joined(separator: " ")
        let command = ["login", "app", "--wait", "--captcha-token-fd", "0"] + arguments
        try await stage.expect([row], of: name, sourceLocation: sourceLocation) {
            let login = try stage.start("ringback", command, stdin: "\(stdin)right\n")
            _ = try await login.errorLine("what it waits for") { $0.hasPrefix("Waiting for the ") }
        }
        let code = try #require(try await stage.letter(box)[member]?.string)
        let option = member == "code" ? "--code-fd" : "--token-hash-fd"
        let rows = [Wire("POST verify", body: proof(code))] + then
        try await stage.expect(rows, of: "verifyOTP", sourceLocation: sourceLocation) {
            try await stage.ringback("verify", "app", option, "0", stdin: "\(code)\n", status: 0)
        }
        try await stage.expectSignOut(sourceLocation: sourceLocation)
    }

    @Test func `logins by page, organization and ID token send the requests of supabase-js`() async throws {
        try await Stage.playProject { stage in
            let code = Wire(
                "POST token", query: ["grant_type": "pkce"],
                body: ["auth_code": "<uuid>", "code_verifier": "<verifier>"])
            let page: JSON = ["provider": "github", "scopes": "repo gist", "prompt": "consent"]
            // Asked for twice: when the flow begins, and when the program opens its own entrance.
            let authorize = Wire("GET authorize", query: Self.withChallenge(page), link: true)
            try await expect(
                stage, [authorize, authorize, code, Self.keys, Self.user],
                of: ["--with", "github", "--scopes", "repo gist", "--param", "prompt=consent"])
            let organization: JSON = ["redirect_to": "<callback>", "skip_http_redirect": true]
            for (option, name, value) in [
                ("--domain", "domain", "company.example"),
                ("--provider-id", "provider_id", "5d0c2b1e-6c34-4b9e-9f5f-0f1a2b3c4d5e"),
            ] {
                var body = organization.object ?? JSONObject()
                body[name] = .string(value)
                let sso = Wire("POST sso", body: Self.withChallenge(.object(body)))
                try await expect(stage, [sso, sso, code, Self.user], of: ["--method", "sso", option, value])
            }
            let token = try await stage.idToken()
            let native: JSON = ["provider": "google", "id_token": .string(token), "nonce": "a raw nonce"]
            try await expect(
                stage, [Wire("POST token", query: ["grant_type": "id_token"], body: native), Self.user],
                of: ["--method", "id_token", "--with", "google"], stdin: "\(token)\na raw nonce\n")
        }
    }

    private static func withChallenge(_ members: JSON) -> JSON {
        var object = members.object ?? JSONObject()
        object["code_challenge"] = "<challenge>"
        object["code_challenge_method"] = "s256"
        return .object(object)
    }

    @Test func `setSession, refresh and sign-out send the requests of supabase-js`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp()
            try await stage.expectSignOut()
            let answer = try await stage.sandbox.request(
                "POST", "/supabase/auth/v1/token?grant_type=password",
                ["email": "mira@example.org", "password": "secret12"], fields: [("apikey", "sb_publishable_sandbox")])
            let access = try #require(answer["access_token"]?.string)
            let first = try #require(answer["refresh_token"]?.string)
            try await stage.expect(
                [
                    Wire("GET user", signedIn: true),
                    Wire("POST token", query: ["grant_type": "refresh_token"], body: ["refresh_token": "<token>"]),
                ], of: "setSession"
            ) {
                try await stage.ringback(
                    "login", "app", "--method", "session", "--access-token-fd", "0", "--refresh-token-fd", "0",
                    stdin: "\(access)\n\(first)\n", status: 0)
            }
            try await stage.expect(
                [Wire("POST logout", query: ["scope": "others"], signedIn: true)], of: "signOut(scope: others)"
            ) {
                try await stage.ringback("logout", "app", "--scope", "others", status: 0)
            }
            #expect(try await stage.account("app")["state"] == "authenticated")
            try await stage.expect(
                [Wire("POST logout", query: ["scope": "global"], signedIn: true)], of: "signOut(scope: global)"
            ) {
                try await stage.ringback("logout", "app", "--scope", "global", status: 0)
            }
            #expect(try await stage.account("app")["state"] == "unauthenticated")
        }
    }
}
