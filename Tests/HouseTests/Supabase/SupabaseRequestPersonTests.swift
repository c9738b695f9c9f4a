// The requests of Supabase's own libraries for what users do about themselves, made by the command line where there is a
// verb: what the project gets.

import RingbackBase
import Testing

@Suite struct `What a project is asked by who is signed in` {
    private static let rest = "/v1/accounts/app"

    /// Runs `ringback supabase`, and holds the project's requests to the rows.
    private func expect(
        _ stage: Stage, _ rows: [Wire], of arguments: [String], stdin: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let (verb, rest) = (arguments[0], arguments.dropFirst())
        try await stage.expect(rows, of: arguments.joined(separator: " "), sourceLocation: sourceLocation) {
            let output = try await stage.run("ringback", ["supabase", verb, "app"] + rest, stdin: stdin)
            #expect(output.status == 0, "\(output)", sourceLocation: sourceLocation)
        }
    }

    @Test func `the person, and changes of them`() async throws {
        try await Stage.playProject(["mail_interval": 0, "sms_interval": 0]) { stage in
            try await stage.signUp()
            let user = Wire("GET user", signedIn: true)
            try await expect(stage, [user], of: ["user"])
            try await expect(
                stage, [Wire("PUT user", body: ["data": ["color": "blue", "old": .null]], signedIn: true)],
                of: ["update-user", "--data", #"{"color":"blue","old":null}"#])
            try await expect(stage, [Wire("GET reauthenticate", signedIn: true)], of: ["reauthenticate"])
            let nonce = try await stage.code()
            try await expect(
                stage,
                [
                    Wire(
                        "PUT user",
                        body: ["password": "longer12", "current_password": "secret12", "nonce": .string(nonce)],
                        signedIn: true)
                ], of: ["update-user", "--current-password-fd", "0", "--nonce-fd", "0", "--password-fd", "0"],
                stdin: "secret12\n\(nonce)\nlonger12\n")
        }
    }

    @Test func `another address and another number, and their codes`() async throws {
        try await Stage.playProject(["mail_interval": 0, "sms_interval": 0]) { stage in
            try await stage.signUp()
            // Confirmed at once up to here; from now on by codes.
            try await stage.setProject(["autoconfirm": false, "phone_autoconfirm": false])
            try await expect(
                stage, [Wire("PUT user", body: ["email": "new@example.org"], link: true, signedIn: true)],
                of: ["update-user", "--email", "new@example.org", "--no-wait"])
            let letters = try await stage.sandbox.request("GET", "/supabase/sandbox/mailbox")["letters"]?.array ?? []
            #expect(letters.count == 2)
            // The session that the last code brings is proved and goes on; the older one is ended.
            let proving = Wire("GET user", signedIn: true)
            let ending = Wire("POST logout", query: ["scope": "local"], signedIn: true)
            for (letter, more) in zip(letters, [[], [proving, ending]]) {
                let (code, to) = (letter["code"]?.string ?? "", letter["to"]?.string ?? "")
                let proof: JSON = ["type": "email_change", "token": .string(code), "email": .string(to)]
                let rows = [Wire("POST verify", body: proof)] + more
                try await stage.expect(rows, of: "verifyOTP(email_change)") {
                    let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array ?? []
                    let id = flows.first { $0["status"] == "pending" }?["id"]?.string ?? ""
                    let answer = try await stage.api(
                        "POST", "/v1/flows/\(id)/verify", ["code": .string(code), "email": .string(to)])
                    #expect(answer.status == 200, "\(answer)")
                }
            }
            #expect(try await stage.account("app")["user"]?["email"] == "new@example.org")
            let number: JSON = ["phone": "4915112345678", "channel": "whatsapp"]
            try await stage.expect([Wire("PUT user", body: number, signedIn: true)], of: "update(phone)") {
                let answer = try await stage.api(
                    "PATCH", "\(Self.rest)/user", ["phone": "+4915112345678", "channel": "whatsapp"])
                #expect(answer.status == 200 && answer["flow"]?["waiting_for"] == "code", "\(answer)")
            }
            let code = try await stage.code("messages")
            try await stage.expect(
                [
                    Wire(
                        "POST verify",
                        body: ["type": "phone_change", "token": .string(code), "phone": "4915112345678"]),
                    proving, ending,
                ], of: "verifyOTP(phone_change)"
            ) {
                let output = try await stage.ringback("verify", "app", stdin: "\(code)\n")
                #expect(output.status == 0, "\(output)")
            }
            #expect(try await stage.account("app")["user"]?["phone"] == "+4915112345678")
        }
    }

    @Test func `a forgotten password`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp()
            try await stage.expectSignOut()
            try await stage.expect(
                [Wire("POST recover", body: ["email": "mira@example.org"], link: true)], of: "resetPasswordForEmail"
            ) {
                let answer = try await stage.api(
                    "POST", "\(Self.rest)/password-reset", ["email": "mira@example.org"])
                #expect(answer.status == 201, "\(answer)")
            }
            let code = try await stage.code()
            try await stage.expect(
                [
                    Wire(
                        "POST verify",
                        body: ["type": "recovery", "token": .string(code), "email": "mira@example.org"]),
                    Wire("GET user", signedIn: true),
                ], of: "verifyOTP(recovery)"
            ) {
                let output = try await stage.ringback("verify", "app", stdin: "\(code)\n")
                #expect(output.status == 0, "\(output)")
            }
            try await expect(
                stage, [Wire("PUT user", body: ["password": "longer12"], signedIn: true)],
                of: ["update-user", "--password"], stdin: "longer12\n")
        }
    }

    @Test func `what belongs to the person`() async throws {
        try await Stage.playProject { stage in
            try await stage.signUp()
            let user = Wire("GET user", signedIn: true)
            try await expect(stage, [user], of: ["identities"])
            let page: JSON = [
                "provider": "github", "scopes": "repo", "skip_http_redirect": "true",
                "code_challenge": "<challenge>", "code_challenge_method": "s256",
            ]
            var flow = Answer.nothing
            try await stage.expect(
                [Wire("GET user/identities/authorize", query: page, link: true, signedIn: true)],
                of: "getLinkIdentityURL"
            ) {
                flow = try await stage.api(
                    "POST", "\(Self.rest)/identities", ["oauth_provider": "github", "scopes": "repo"])
                #expect(flow.status == 201, "\(flow)")
            }
            _ = try await stage.api("DELETE", "/v1/flows/\(flow["id"]?.string ?? "")?all=true")
            let token = try await stage.idToken()
            let native: JSON = [
                "provider": "google", "id_token": .string(token), "nonce": "a raw nonce", "link_identity": true,
            ]
            try await expect(
                stage,
                [
                    Wire("POST token", query: ["grant_type": "id_token"], body: native, signedIn: true),
                    // The session that it brings is proved and goes on.
                    user,
                    Wire("POST logout", query: ["scope": "local"], signedIn: true),
                ], of: ["link", "--with", "google", "--id-token-fd", "0", "--nonce-fd", "0"],
                stdin: "\(token)\na raw nonce\n")
            let list = try await stage.api("GET", "\(Self.rest)/identities")["identities"]?.array ?? []
            let id = try #require(list.first { $0["provider"] == "google" }?["identity_id"]?.string)
            try await expect(
                stage, [Wire("DELETE user/identities/<uuid>", signedIn: true), user], of: ["unlink", id])
        }
    }

    @Test func `second factors`() async throws {
        try await Stage.playProject(["sms_interval": 0]) { stage in
            try await stage.signUp()
            // What the person has then is asked for, and a session that may be worth less is refreshed.
            let user = Wire("GET user", signedIn: true)
            let refresh = Wire(
                "POST token", query: ["grant_type": "refresh_token"], body: ["refresh_token": "<token>"])
            var factor = Answer.nothing
            try await stage.expect(
                [
                    Wire(
                        "POST factors",
                        body: ["factor_type": "totp", "friendly_name": "one", "issuer": "Nordlys"], signedIn: true),
                    user,
                ], of: "mfa.enroll(totp)"
            ) {
                factor = try await stage.api(
                    "POST", "\(Self.rest)/factors", ["friendly_name": "one", "issuer": "Nordlys"])
                #expect(factor.status == 201, "\(factor)")
            }
            // What a page shows for an authenticator app to read.
            let picture = factor["totp"]?["qr_code"]?.string ?? ""
            #expect(picture.contains("<svg") && picture.contains("</svg>"))
            let id = try #require(factor["id"]?.string)
            let challenge = Wire("POST factors/<uuid>/challenge", body: [:], signedIn: true)
            let code = Authenticator.code(try #require(factor["totp"]?["secret"]?.string))
            let proof = Wire(
                "POST factors/<uuid>/verify", body: ["challenge_id": "<uuid>", "code": .string(code)], signedIn: true)
            try await stage.expect([challenge, proof], of: "mfa.challengeAndVerify") {
                let answer = try await stage.api("POST", "\(Self.rest)/factors/\(id)/verify", ["code": .string(code)])
                #expect(answer.status == 200 && answer["aal"] == "aal2", "\(answer)")
            }
            try await expect(
                stage,
                [
                    Wire(
                        "POST factors",
                        body: ["factor_type": "phone", "phone": "4915112345678", "friendly_name": "two"],
                        signedIn: true), user,
                ], of: ["enroll", "--phone", "+4915112345678", "--name", "two", "--no-verify"])
            try await expect(stage, [user], of: ["factors"])
            let list = try await stage.api("GET", "\(Self.rest)/factors")["factors"]?.array ?? []
            let phone = try #require(list.first { $0["factor_type"] == "phone" }?["id"]?.string)
            try await stage.expect(
                [Wire("POST factors/<uuid>/challenge", body: ["channel": "whatsapp"], signedIn: true)],
                of: "mfa.challenge(channel)"
            ) {
                let answer = try await stage.api(
                    "POST", "\(Self.rest)/factors/\(phone)/challenge", ["channel": "whatsapp"])
                #expect(answer.status == 200, "\(answer)")
            }
            try await expect(
                stage, [Wire("DELETE factors/<uuid>", signedIn: true), refresh], of: ["remove-factor", phone])
        }
    }

    @Test func `passkeys`() async throws {
        try await Stage.playProject(["passkeys": true]) { stage in
            let key = try SecurityKey()
            try await stage.signUp()
            var (asked, made) = (Answer.nothing, JSON.null)
            try await stage.expect(
                [Wire("POST passkeys/registration/options", body: [:], signedIn: true)], of: "getPasskeyRegistration"
            ) { asked = try await stage.api("POST", "\(Self.rest)/passkey-options", [:]) }
            made = try key.create(try #require(asked["options"]))
            var added = Answer.nothing
            try await stage.expect(
                [
                    Wire(
                        "POST passkeys/registration/verify", body: ["challenge_id": "<uuid>", "credential": made],
                        signedIn: true)
                ], of: "verifyPasskeyRegistration"
            ) {
                added = try await stage.api(
                    "POST", "\(Self.rest)/passkeys",
                    ["challenge_id": try #require(asked["challenge_id"]), "credential": made])
            }
            let id = try #require(added["id"]?.string)
            try await expect(stage, [Wire("GET passkeys/", signedIn: true)], of: ["passkeys"])
            try await expect(
                stage, [Wire("PATCH passkeys/<uuid>", body: ["friendly_name": "desk"], signedIn: true)],
                of: ["rename-passkey", id, "desk"])
            try await stage.expectSignOut()
            var flow = Answer.nothing
            try await stage.expect(
                [Wire("POST passkeys/authentication/options", body: [:])], of: "getPasskeyAuthentication"
            ) { flow = try await stage.api("POST", "\(Self.rest)/sign-in", ["method": "passkey"]) }
            let credential = try key.get(try #require(flow["options"]))
            try await stage.expect(
                [
                    Wire(
                        "POST passkeys/authentication/verify",
                        body: ["challenge_id": "<uuid>", "credential": credential]),
                    Wire("GET user", signedIn: true),
                ], of: "verifyPasskeyAuthentication"
            ) {
                let path = "/v1/flows/\(flow["id"]?.string ?? "")/verify"
                let ended = try await stage.api("POST", path, ["credential": credential])
                #expect(ended["status"] == "completed", "\(ended)")
            }
            try await expect(stage, [Wire("DELETE passkeys/<uuid>", signedIn: true)], of: ["remove-passkey", id])
        }
    }
}
