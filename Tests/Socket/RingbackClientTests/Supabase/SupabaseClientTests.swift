import RingbackBase
import Synchronization
import Testing

@testable import RingbackClient

@Suite(.timeLimit(.minutes(5))) struct `A client at a Supabase project` {
    private static let account =
        #"{"name":"app","provider":"supabase","state":"authenticated","aal":"aal1","next_aal":"aal2"}"#
    private static let flow = #"""
        {"id":"f1","account":"app","method":"otp","status":"pending","waiting_for":"code","resend_after":77,
        "user_message":"Check your email."}
        """#

    @Test func `signs in at once, or waits for what is awaited`() async throws {
        let daemon = try FakeDaemon { $0.contains("\"password\"") ? .json(200, Self.account) : .json(201, Self.flow) }
        let broker = daemon.client
        guard case .done(let account) = try await broker.signIn("app", with: .password(.email("a@b"), password: "p"))
        else {
            Issue.record("a password signs in at once")
            return
        }
        #expect(account.assurance == "aal1" && account.nextAssurance == "aal2")
        guard case .pending(let flow) = try await broker.signIn("app", with: .oneTimeCode(to: .phone("+49"))) else {
            Issue.record("a code is awaited")
            return
        }
        #expect(
            flow.waitingFor == "code" && flow.resendAfter?.secondsSince1970 == 77
                && flow.userMessage == "Check your email.")
        #expect(
            daemon.requests.compactMap { $0.split(separator: "\r\n\r\n").last.map(String.init) } == [
                #"{"method":"password","email":"a@b","password":"p"}"#, #"{"method":"otp","phone":"+49"}"#,
            ])
    }

    @Test func `redeems a code or the hash of a link, and asks for another message`() async throws {
        let daemon = try FakeDaemon { request in
            if request.hasPrefix("GET ") { return .json(200, Self.account) }
            guard request.hasPrefix("POST /v1/flows/f1/verify") else { return .json(200, Self.flow) }
            return .json(200, Self.flow.replacing("pending", with: "completed"))
        }
        let broker = daemon.client
        let flow = try #require(Flow(reading: try JSON(parsing: Self.flow.utf8)))
        #expect(try await broker.verify(flow, code: "123456").name == "app")
        #expect(try await broker.verify(flow, tokenHash: "pkce_0a").name == "app")
        #expect(try await broker.resend(flow).resendAfter?.secondsSince1970 == 77)
        #expect(try await broker.resend(flow, captchaToken: "c").resendAfter?.secondsSince1970 == 77)
        #expect(
            daemon.requests.filter { $0.hasPrefix("POST ") }
                .compactMap { $0.split(separator: "\r\n\r\n").last.map(String.init) } == [
                    #"{"code":"123456"}"#, #"{"token_hash":"pkce_0a"}"#, "{}", #"{"captcha_token":"c"}"#,
                ])
    }

    @Test func `a sign-in that has failed is an error, whatever was asked of it`() async throws {
        let problem = #"{"code":"state_conflict","detail":"Nothing was changed."}"#
        let daemon = try FakeDaemon { _ in
            .json(200, #"{"id":"f1","account":"app","status":"failed","error":\#(problem)}"#)
        }
        let flow = try #require(Flow(reading: try JSON(parsing: Self.flow.utf8)))
        func kind(_ call: () async throws -> Void) async -> RingbackError.Kind? {
            await #expect(throws: RingbackError.self) { try await call() }?.kind
        }
        let client = daemon.client
        #expect(await kind { _ = try await client.verify(flow, code: "123456") } == .stateConflict)
        #expect(await kind { _ = try await client.confirm(flow, code: "123456") } == .stateConflict)
        #expect(await kind { _ = try await client.resend(flow) } == .stateConflict)
    }

    @Test func `links in the browser, or by an ID token`() async throws {
        let daemon = try FakeDaemon { _ in .json(201, Self.flow) }
        let broker = daemon.client
        _ = try await broker.link("app", provider: "github")
        _ = try await broker.link("app", with: .browser("github", scopes: ["repo"]))
        _ = try await broker.link("app", with: .idToken("t", of: "google", nonce: "n"))
        #expect(daemon.requests.allSatisfy { $0.hasPrefix("POST /v1/accounts/app/identities ") })
        #expect(
            daemon.requests.compactMap { $0.split(separator: "\r\n\r\n").last.map(String.init) } == [
                #"{"oauth_provider":"github"}"#, #"{"oauth_provider":"github","scopes":"repo"}"#,
                #"{"oauth_provider":"google","id_token":"t","nonce":"n"}"#,
            ])
    }

    @Test(arguments: [
        (
            SupabaseSignInFields.browser("google", keepsProviderToken: true),
            #"{"method":"browser","oauth_provider":"google","provider_token":true}"#
        ),
        (.browser(), #"{"method":"browser"}"#),
        (
            .browser("azure", scopes: ["email", "profile"], parameters: ["prompt": "consent", "hd": "example.org"]),
            #"{"method":"browser","oauth_provider":"azure","scopes":"email profile","#
                + #""params":{"hd":"example.org","prompt":"consent"}}"#
        ),
        (
            .signUp(.email("a@b"), password: "p", data: #"{"x":1}"#),
            #"{"method":"sign_up","email":"a@b","password":"p","data":{"x":1}}"#
        ),
        (.magicLink(to: "a@b", createsUser: false), #"{"method":"magic_link","email":"a@b","create_user":false}"#),
        (
            .idToken("t", of: "apple", nonce: "n", accessToken: "x"),
            #"{"method":"id_token","oauth_provider":"apple","id_token":"t","nonce":"n","access_token":"x"}"#
        ),
        (.anonymous(), #"{"method":"anonymous"}"#), (.passkey(), #"{"method":"passkey"}"#),
        (.singleSignOn(domain: "d"), #"{"method":"sso","domain":"d"}"#),
        (.singleSignOn(providerID: "p"), #"{"method":"sso","provider_id":"p"}"#),
        (
            .session(accessToken: "a", refreshToken: "r"),
            #"{"method":"session","access_token":"a","refresh_token":"r"}"#
        ),
    ])
    func `says each way in as the socket API does`(way: SupabaseSignInFields, body: String) throws {
        #expect(JSON.object(try way.body()).text == body)
        var other = way
        other.captchaToken = "c"
        other.isPersistent = false
        #expect(JSON.object(try other.body()).text == body.dropLast() + #","captcha_token":"c","persist":false}"#)
    }

    @Test func `shows no secret in a description`() throws {
        for way in [
            SupabaseSignInFields.password(.email("a@b"), password: "secret"),
            .session(accessToken: "secret", refreshToken: "secret"),
        ] {
            var dumped = "\(way) \(String(reflecting: way))"
            dump(way, to: &dumped)
            #expect(!dumped.contains("secret"))
        }
        let enrolment = try FactorEnrolment(
            reading: ["id": "f", "factor_type": "totp", "totp": ["uri": "otpauth://secret", "secret": "secret"]])
        var dumped = "\(enrolment)"
        dump(enrolment, to: &dumped)
        #expect(!dumped.contains("secret") && enrolment.secret == "secret")
    }

    @Test func `refuses what is no JSON object before anything is asked`() async throws {
        let broker = BrokerClient(application: "test", socket: "/nowhere")
        for text in ["", "[]", "{", "1"] {
            await #expect(throws: RingbackError("validation_failed", "A JSON object is expected.")) {
                _ = try await broker.call("app", function: "f", arguments: text)
            }
        }
    }

    @Test func `redeems a code, and says why it was wrong`() async throws {
        let daemon = try FakeDaemon { request in
            if request.contains("\"000000\"") {
                return .json(401, #"{"code":"invalid_credentials","user_message":"Invalid code. Please try again."}"#)
            }
            if request.hasPrefix("GET /v1/accounts/app ") { return .json(200, Self.account) }
            return .json(200, #"{"id":"f1","account":"app","status":"completed"}"#)
        }
        let broker = daemon.client
        let flow = try #require(Flow(reading: ["id": "f1", "account": "app", "status": "pending"]))
        let failure = await #expect(throws: RingbackError.self) { try await broker.verify(flow, code: "000000") }
        #expect(failure?.kind == .invalidCredentials && failure?.userMessage == "Invalid code. Please try again.")
        #expect(try await broker.verify(flow, code: "123456").name == "app")
        #expect(daemon.requests[1].hasPrefix("POST /v1/flows/f1/verify HTTP/1.1\r\n"))
        #expect(daemon.requests[1].hasSuffix(#"{"code":"123456"}"#))
    }

    @Test func `confirms a changed address with two codes, of which the first ends nothing`() async throws {
        let awaited = #"[{"type":"email_change","email":"n@b.org"},{"type":"phone_change","phone":"+49"}]"#
        let daemon = try FakeDaemon { request in
            let flow = #"{"id":"f1","account":"app","status":"pending","waiting_for":"code","awaiting":\#(awaited)}"#
            if request.hasPrefix("PATCH") { return .json(200, #"{"user":{"email":"a@b.org"},"flow":\#(flow)}"#) }
            if request.contains("000001") { return .json(200, flow) }
            return .json(200, #"{"id":"f1","account":"app","status":"completed"}"#)
        }
        let broker = daemon.client
        var changes = UserChanges()
        changes.email = "n@b.org"
        let update = try await broker.updateUser("app", changes)
        let flow = try #require(update.confirmation)
        #expect(update.user.email == "a@b.org" && flow.awaiting == ["n@b.org", "+49"])
        #expect(try await broker.confirm(flow, code: "000001").status == .pending)
        #expect(try await broker.confirm(flow, code: "000002").status == .completed)
        #expect(daemon.requests.last?.hasSuffix(#"{"code":"000002"}"#) == true)
    }

    @Test func `asks for each operation at its own place`() async throws {
        let daemon = try FakeDaemon { request in
            let path = request.split(separator: " ").dropFirst().first ?? ""
            switch path {
            case "/v1/accounts/app/user": return .json(200, #"{"user":{"email":"","phone":"+49"}}"#)
            case _ where path.contains("/identities"):
                return .json(200, #"{"identities":[{"identity_id":"i","provider":"google"}]}"#)
            case "/v1/accounts/app/factors/f/challenge": return .json(200, #"{"id":"c"}"#)
            case "/v1/accounts/app/factors" where request.hasPrefix("GET"):
                return .json(200, #"{"factors":[{"id":"f","factor_type":"totp","status":"verified"}]}"#)
            case "/v1/accounts/app/factors": return .json(201, #"{"id":"f","factor_type":"phone","phone":"+49"}"#)
            case "/v1/accounts/app/rpc/f%2Fg": return .json(200, #"{"result":[1]}"#)
            case "/v1/accounts/app/functions/f-g": return .json(200, #"{"result":null}"#)
            default: return .json(200, Self.account)
            }
        }
        let broker = daemon.client
        let user = try await broker.user("app")
        #expect(user.email == nil && user.phone == "+49")
        var changes = UserChanges()
        changes.password = "p"
        changes.nonce = "1"
        try await broker.updateUser("app", changes)
        try await broker.reauthenticate("app")
        #expect(try await broker.identities("app").map(\.provider) == ["google"])
        #expect(try await broker.unlink("app", identity: "a/b").map(\.id) == ["i"])
        #expect(try await broker.factors("app").map(\.isVerified) == [true])
        #expect(try await broker.enrollFactor("app", phone: "+49").factor.phone == "+49")
        #expect(try await broker.challengeFactor("app", "f", channel: .sms) == "c")
        #expect(try await broker.verifyFactor("app", "f", code: "1", challenge: "c").nextAssurance == "aal2")
        try await broker.removeFactor("app", "f")
        #expect(try await broker.call("app", function: "f/g") == "[1]")
        #expect(try await broker.invoke("app", function: "f-g", arguments: #"{"a":1}"#) == "null")
        let lines = daemon.requests.map { request in
            (request.split(separator: " HTTP/1.1").first ?? "") + " "
                + (request.split(separator: "\r\n\r\n").dropFirst().first ?? "")
        }
        #expect(
            lines == [
                "GET /v1/accounts/app/user ", #"PATCH /v1/accounts/app/user {"password":"p","nonce":"1"}"#,
                "POST /v1/accounts/app/reauthenticate {}", "GET /v1/accounts/app/identities ",
                "DELETE /v1/accounts/app/identities/a%2Fb ", "GET /v1/accounts/app/factors ",
                #"POST /v1/accounts/app/factors {"factor_type":"phone","phone":"+49"}"#,
                #"POST /v1/accounts/app/factors/f/challenge {"channel":"sms"}"#,
                #"POST /v1/accounts/app/factors/f/verify {"code":"1","challenge_id":"c"}"#,
                "DELETE /v1/accounts/app/factors/f ", "POST /v1/accounts/app/rpc/f%2Fg {}",
                #"POST /v1/accounts/app/functions/f-g {"a":1}"#,
            ])
    }
}

@Suite(.timeLimit(.minutes(5))) struct `A client with consents` {
    @Test func `lists them and revokes one`() async throws {
        let consent = #"{"client_id":"c","client_name":"Notes","scopes":["email"],"granted_at":"2026-01-02T03:04:05Z"}"#
        let daemon = try FakeDaemon { request in
            request.hasPrefix("GET")
                ? .json(200, #"{"consents":[\#(consent)]}"#) : .json(200, #"{"account":"app","revoked":"c"}"#)
        }
        let broker = daemon.client
        let list = try await broker.consents("app")
        #expect(list.map(\.clientID) == ["c"] && list.first?.clientName == "Notes" && list.first?.clientURI == nil)
        #expect(list.first?.scopes == ["email"] && list.first?.grantedAt?.description == "2026-01-02T03:04:05Z")
        #expect(daemon.requests.last?.hasPrefix("GET /v1/accounts/app/oauth-consents ") == true)
        try await broker.revokeConsent("app", client: "c")
        #expect(daemon.requests.last?.hasPrefix("DELETE /v1/accounts/app/oauth-consents/c ") == true)
    }
}

@Suite(.timeLimit(.minutes(5))) struct `A client with an authenticator as second factor` {
    private func daemon(type: String = "create") throws -> FakeDaemon {
        try FakeDaemon { request in
            if request.contains("/challenge ") {
                return .json(
                    200,
                    #"{"id":"c","factor":"f","expires_at":7,"#
                        + #""webauthn":{"type":"\#(type)","options":{"challenge":"YQ"}}}"#)
            }
            if request.contains("/verify ") {
                return .json(200, #"{"name":"app","state":"authenticated","aal":"aal2","next_aal":"aal2"}"#)
            }
            return .json(201, #"{"id":"f","factor_type":"webauthn","status":"unverified","friendly_name":"Key"}"#)
        }
    }

    private func bodies(_ daemon: FakeDaemon) -> [String] {
        daemon.requests.map { String($0.split(separator: "\r\n\r\n").dropFirst().first ?? "") }
    }

    @Test func `adds it, asks what it is to sign, and proves it`() async throws {
        let daemon = try daemon()
        let broker = daemon.client
        let enrolment = try await broker.enrollWebAuthnFactor("app", name: "Key")
        #expect(enrolment.factor.kind == "webauthn" && enrolment.factor.name == "Key" && enrolment.uri == nil)
        let challenge = try await broker.webAuthnChallenge("app", "f")
        #expect(challenge.id == "c" && challenge.makesKey && challenge.options == #"{"challenge":"YQ"}"#)
        #expect(challenge.expiresAt?.secondsSince1970 == 7)
        let account = try await broker.verifyFactor("app", "f", credential: #"{"id":"k"}"#, challenge: challenge.id)
        #expect(account.assurance == "aal2")
        #expect(
            bodies(daemon) == [
                #"{"factor_type":"webauthn","friendly_name":"Key"}"#, "{}",
                #"{"challenge_id":"c","credential":{"id":"k"}}"#,
            ])
    }

    @Test func `says whom the credential is for`() async throws {
        let daemon = try daemon(type: "request")
        let broker = daemon.client
        let party = RelyingParty(id: "app.example.org", origins: ["https://app.example.org"])
        let challenge = try await broker.webAuthnChallenge("app", "f", party: party)
        #expect(!challenge.makesKey)
        try await broker.verifyFactor("app", "f", credential: "{}", challenge: "c", party: party)
        let members = #""rp_id":"app.example.org","rp_origins":["https://app.example.org"]"#
        #expect(bodies(daemon) == ["{\(members)}", #"{"challenge_id":"c","credential":{},\#(members)}"#])
    }

    @Test func `reads nothing into a challenge that is for a code, or a credential that is none`() async throws {
        let daemon = try FakeDaemon { _ in .json(200, #"{"id":"c","factor":"f"}"#) }
        let broker = daemon.client
        await #expect(throws: RingbackError.self) { _ = try await broker.webAuthnChallenge("app", "f") }
        await #expect(throws: RingbackError("validation_failed", "A JSON object is expected.")) {
            try await broker.verifyFactor("app", "f", credential: "x", challenge: "c")
        }
        #expect(daemon.requests.count == 1)
    }
}

@Suite(.timeLimit(.minutes(5))) struct `A client with passkeys` {
    @Test func `signs in by one`() async throws {
        let daemon = try FakeDaemon { request in
            if request.contains("/sign-in") {
                return .json(
                    201,
                    #"{"id":"f1","account":"app","method":"passkey","status":"pending","waiting_for":"passkey","#
                        + #""challenge_id":"c","options":{"challenge":"YQ"}}"#)
            }
            if request.hasPrefix("GET /v1/accounts/app ") {
                return .json(200, #"{"name":"app","state":"authenticated"}"#)
            }
            if request.contains("\"wrong\"") {
                return .json(
                    200,
                    #"{"id":"f1","account":"app","status":"failed","error":{"code":"invalid_credentials","status":401}}"#
                )
            }
            return .json(200, #"{"id":"f1","account":"app","status":"completed"}"#)
        }
        let broker = daemon.client
        guard case .pending(let flow) = try await broker.signIn("app", with: .passkey()) else {
            Issue.record("a passkey's answer is awaited")
            return
        }
        #expect(flow.passkeyOptions == #"{"challenge":"YQ"}"#)
        #expect(try await broker.verify(flow, credential: #"{"id":"right"}"#).state == .authenticated)
        #expect(daemon.requests[1].hasSuffix(#"{"credential":{"id":"right"}}"#))
        let failure = await #expect(throws: RingbackError.self) {
            try await broker.verify(flow, credential: #"{"id":"wrong"}"#)
        }
        #expect(failure?.kind == .invalidCredentials)
        await #expect(throws: RingbackError("validation_failed", "A JSON object is expected.")) {
            _ = try await broker.verify(flow, credential: "x")
        }
    }

    @Test func `adds, lists, names and removes them`() async throws {
        let passkey = #"{"id":"p","friendly_name":"Key","created_at":"2026-01-02T03:04:05Z"}"#
        let daemon = try FakeDaemon { request in
            if request.contains("/passkey-options") {
                return .json(200, #"{"challenge_id":"c","options":{"rp":{}},"expires_at":7}"#)
            }
            if request.hasPrefix("GET") { return .json(200, #"{"passkeys":[\#(passkey)]}"#) }
            if request.hasPrefix("DELETE") { return .json(200, #"{"account":"app","removed":"p"}"#) }
            return .json(request.hasPrefix("POST") ? 201 : 200, passkey)
        }
        let broker = daemon.client
        let challenge = try await broker.passkeyRegistration("app")
        #expect(challenge.id == "c" && challenge.options == #"{"rp":{}}"# && challenge.expiresAt?.secondsSince1970 == 7)
        let added = try await broker.registerPasskey("app", challenge: "c", credential: #"{"id":"k"}"#)
        #expect(
            added.id == "p" && added.name == "Key" && added.lastUsedAt == nil
                && added.createdAt?.description == "2026-01-02T03:04:05Z")
        #expect(daemon.requests.last?.hasSuffix(#"{"challenge_id":"c","credential":{"id":"k"}}"#) == true)
        #expect(try await broker.passkeys("app") == [added])
        #expect(try await broker.renamePasskey("app", "p", to: "Key") == added)
        #expect(daemon.requests.last?.hasPrefix("PATCH /v1/accounts/app/passkeys/p ") == true)
        try await broker.removePasskey("app", "p")
        #expect(daemon.requests.last?.hasPrefix("DELETE /v1/accounts/app/passkeys/p ") == true)
    }
}
