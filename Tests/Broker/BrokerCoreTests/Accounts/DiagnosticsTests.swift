import OAuth
import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(5))) struct `What the broker finds of an account` {
    private static let metadata = #"""
        {"issuer":"https://id.example","authorization_endpoint":"https://id.example/authorize",
        "token_endpoint":"https://id.example/token","jwks_uri":"https://id.example/keys"}
        """#

    private func found(_ house: House, _ check: Finding.Check) async throws -> Finding? {
        try await Diagnostics(of: house.broker).findings(of: House.name).first { $0.check == check }
    }

    /// As `Date` writes the clock's instant, moved by some seconds: only the time of day differs in these tests.
    private func date(_ house: House, _ seconds: Int) throws -> [(String, String)] {
        let day = house.clock.now / 86_400
        let time = house.clock.now % 86_400 + seconds
        try #require((0..<86_400).contains(time))
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }
        let clock = "\(two(time / 3_600)):\(two(time / 60 % 60)):\(two(time % 60))"
        // The test's clock starts on 2027-01-15.
        let text = "Fri, 15 Jan 2027 \(clock) GMT"
        try #require(HTTPDate.seconds(of: text) == day * 86_400 + time)
        return [("Date", text)]
    }

    @Test func `a provider that is as it should be has nothing wrong`() async throws {
        let house = try await House()
        let findings = try await Diagnostics(of: house.broker).findings(of: House.name)
        #expect(findings.map(\.check) == [.tls, .discovery, .clock, .client, .redirect])
        #expect(findings.allSatisfy { $0.level == .ok }, "\(findings)")
        #expect(house.provider.count(.token) == 1)
        guard
            case .accountNotFound = await error({
                try await Diagnostics(of: house.broker).findings(of: House.named("other"))
            })
        else { throw Unexpected() }
    }

    @Test(arguments: [
        (0, Finding.Level.ok), (-25, .ok), (60, .warning), (-90, .warning), (121, .wrong), (-3_600, .wrong),
    ])
    func `the clock is compared with the provider's, either way`(seconds: Int, level: Finding.Level) async throws {
        let house = try await House()
        house.provider.script(.metadata, .answer(200, Self.metadata, try date(house, seconds)))
        let finding = try #require(try await found(house, .clock))
        #expect(finding.level == level, "\(finding)")
        guard level != .ok else { return }
        #expect(
            finding.message
                == .stated(
                    "This machine's clock is \(abs(seconds)) s \(seconds < 0 ? "ahead of" : "behind") that of id.example: "
                        + "ID tokens are rejected if the difference is more than 120 s."))
        #expect(finding.cause == .clockDiffers)
    }

    @Test(arguments: [
        (-2_000, "2000", Finding.Level.ok), (-2_000, "1700", .wrong), (0, "-5", .ok), (0, "x", .ok),
        (0, "99999999999", .wrong),
    ])
    func `an answer out of a cache is as old as its Age says`(
        seconds: Int, age: String, level: Finding.Level
    ) async throws {
        let house = try await House()
        house.provider.script(.metadata, .answer(200, Self.metadata, try date(house, seconds) + [("Age", age)]))
        #expect(try await found(house, .clock)?.level == level)
    }

    @Test func `a certificate that is not believed, and a provider that is away, are told apart`() async throws {
        let house = try await House()
        house.provider.script(.metadata, .fail(.untrusted(host: "id.example", reason: "self-signed certificate")))
        let tls = try await Diagnostics(of: house.broker).findings(of: House.name)
        #expect(tls.first?.check == .tls && tls.first?.level == .wrong)
        #expect(tls.first?.message.holds("self-signed certificate") == true)
        #expect(tls.first?.cause == .untrusted && tls.first?.host == "id.example")
        house.provider.script(.metadata, .fail(.unreachable(host: "id.example", reason: "no route")))
        let away = try await found(house, .discovery)
        #expect(away?.level == .wrong && away?.message == .stated("id.example cannot be reached: no route."))
        house.provider.script(.metadata, .fail(.timedOut(host: "id.example")))
        #expect(
            try await found(house, .discovery)?.message
                == .stated("id.example does not respond within 6 s."))
    }

    @Test func `metadata of another issuer, or none, are wrong; the second place is asked too`() async throws {
        let house = try await House()
        let other = Self.metadata.replacing("https://id.example\"", with: "https://evil.example\"")
        house.provider.script(.metadata, .status(200, other), .status(404))
        let wrong = try await found(house, .discovery)
        #expect(wrong?.level == .wrong && wrong?.message.holds("issuer") == true, "\(String(describing: wrong))")
        house.provider.script(.metadata, .status(404), .status(200, Self.metadata))
        #expect(try await found(house, .discovery)?.level == .ok)
        house.provider.script(.metadata, .status(503), .status(503))
        #expect(try await found(house, .discovery)?.level == .wrong)
    }

    @Test func `NAT-03: the way back is judged by its redirect URI`() async throws {
        let house = try await House()
        for (uri, level, sentence) in [
            (
                "swisscoin://auth-callback", Finding.Level.warning,
                "The callback arrives as a link of the scheme swisscoin, which any other app may claim. A scheme after a "
                    + "domain of yours, such as org.example.swisscoin, avoids that."
            ),
            ("org.example.app:/cb", .ok, "The callback arrives as a link of the scheme org.example.app."),
            (
                "https://app.example/cb", .warning,
                "The callback does not arrive by itself: its URL has to be pasted."
            ),
            ("http://127.0.0.1:8400/callback", .ok, "The port of the callback is free."),
        ] {
            var account = House.account()
            account.redirectURI = uri
            await house.broker.configure([account])
            let finding = try await found(house, .redirect)
            #expect(finding?.level == level && finding?.message == .stated(sentence), "\(uri)")
        }
        #expect(house.doors.closed == ["http://127.0.0.1:8400/callback"])
        _ = try await house.broker.signIn(House.name, SignInRequest())
        #expect(try await found(house, .redirect)?.level == .ok)
    }

    @Test(
        arguments: [
            (FakeProvider.Turn.status(401), Finding.Level.wrong),
            (.status(400, #"{"error":"invalid_client"}"#), .wrong),
            // RFC 6749 section 5.2: the client was authenticated. Keycloak and Entra say in the text that it was not.
            (.status(400, #"{"error":"unauthorized_client"}"#), .warning),
            (.status(401, #"{"error":"unauthorized_client"}"#), .wrong),
            (.status(400, #"{"error":"unauthorized_client","error_description":"Invalid client secret"}"#), .wrong),
            (
                .status(400, #"{"error":"unauthorized_client","error_description":"AADSTS700016: was not found in"}"#),
                .wrong
            ),
            (.status(400, #"{"error":"invalid_grant"}"#), .ok), (.status(400, #"{"error":"invalid_request"}"#), nil),
            (.status(503), nil),
        ] as [(FakeProvider.Turn, Finding.Level?)])
    func `the token endpoint is asked whether it knows the client`(
        turn: FakeProvider.Turn, level: Finding.Level?
    ) async throws {
        let house = try await House()
        house.provider.script(.token, turn)
        #expect(try await found(house, .client)?.level == level)
    }

    /// The answers to the account's secret, and to one that is certainly wrong.
    @Test(
        arguments: [
            ("invalid_grant", "invalid_client", OAuthReason.clientKnown(host: "id.example"), Finding.Level.ok),
            ("invalid_grant", "invalid_grant", .secretNotChecked(host: "id.example"), .warning),
            ("invalid_client", "", .clientRejected(host: "id.example", hasSecret: true), .wrong),
        ] as [(String, String, OAuthReason, Finding.Level)])
    func `the secret of a client that is to be added is checked, and a provider that looks at the code first is named`(
        right: String, wrong: String, reason: OAuthReason, level: Finding.Level
    ) async throws {
        let house = try await House()
        var account = House.account()
        account.oauth.clientAuthentication = .clientSecretPost
        account.oauth.clientSecret = Account.SecretSource { () throws(BrokerError) in Secret("the-secret") }
        for code in [right, wrong] { house.provider.script(.token, .status(400, #"{"error":"\#(code)"}"#)) }
        let finding = await Diagnostics(of: house.broker).findings(ofCandidate: account, isClientOnly: true).first {
            $0.check == .client
        }
        #expect(
            finding?.message == .kind(KindFact(reason)) && finding?.level == level, "\(String(describing: finding))")
        let secrets = house.provider.requests.compactMap { $0.form["client_secret"] }
        #expect(secrets.first == "the-secret" && secrets.count { $0 == "the-secret" } == 1)
    }

    /// The statuses of the provider's page for a redirect URI with a port, and without one.
    @Test(arguments: [(400, 200, Finding.Level.wrong), (400, 400, .ok), (302, 200, .ok)])
    func `a client that was registered without a port is found where the provider compares the port`(
        free: Int, fixed: Int, level: Finding.Level
    ) async throws {
        let house = try await House()
        let record = RegistrationRecord(
            issuer: "https://id.example", clientID: "ringback", managements: [],
            registeredAt: house.clock.clock.wallInstant)
        let slot = VaultSlot(
            account: House.name.rawValue, binding: House.account().binding.text, kind: .registration)
        try await house.signIn()
        try await house.vault.store(record.encoded(), in: slot)
        house.provider.script(.token, .invalidGrant)
        house.provider.script(.page, .status(free), .status(fixed))
        let findings = try await Diagnostics(of: house.broker).findings(of: House.name)
        #expect(findings.contains { $0.check == .redirect && $0.level == .wrong } == (level == .wrong), "\(findings)")
    }

    @Test func `an unlisted scope offline_access is named until the provider gives a refresh token`() async throws {
        let house = try await House()
        house.provider.behave { $0.metadata["scopes_supported"] = ["openid", "email"] }
        await house.broker.configure([House.account(scopes: ["openid", "offline_access"])])
        #expect(try await found(house, .metadata)?.setting == "scopes")
        try await house.signIn()
        #expect(try await found(house, .metadata) == nil)
    }

    @Test func `endpoints by hand are looked at; one that does not answer gets no secret`() async throws {
        let endpoints = try ProviderMetadata(
            authorizationEndpoint: "https://id.example/authorize", tokenEndpoint: "https://id.example/token")
        let house = try await House { account in
            account.scopes = []
            account.oauth.endpoints = .fixed(endpoints)
            account.oauth.clientSecret = Account.SecretSource { () throws(BrokerError) in Secret("canary-secret") }
        }
        house.provider.script(.token, .status(500))
        #expect(try await found(house, .provider)?.level == .wrong)
        #expect(house.provider.requests.filter { $0.endpoint == .token }.allSatisfy { $0.form.isEmpty })
        house.provider.script(.token, .status(405))
        #expect(try await found(house, .provider)?.level == .ok)
    }
}

@Suite(.timeLimit(.minutes(5))) struct `Sessions of accounts that are not configured` {
    @Test func `a vault that does not answer holds up nobody who asks for them`() async throws {
        let house = try await House.signedIn()
        await house.broker.configure([])
        let sealed = SealedSessions(of: house.broker)
        #expect(await sealed.list(atMost: .seconds(30))?.map(\.account) == ["work"])

        await house.vault.hold()
        #expect(await sealed.list(atMost: .milliseconds(50)) == nil)

        await house.vault.release()
        #expect(await sealed.list(atMost: .seconds(30))?.map(\.account) == ["work"])
    }
}
