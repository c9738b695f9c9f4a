import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `Renewing a session` {
    static let passing: [FakeProvider.Turn] =
        [
            .fail(.unreachable(host: "id.example", reason: "refused")), .fail(.timedOut(host: "id.example")),
            .fail(.untrusted(host: "id.example", reason: "expired")), .fail(.tooLarge(host: "id.example")),
            .fail(.malformed(host: "id.example")), .fail(.refusedURL), .fail(.cancelled),
            .status(200, "<html>Sign in to the hotel's network</html>"), .status(400), .status(401, "no"),
            .status(403, #"{"message":"blocked"}"#), .status(302), .status(200), .status(200, "{}"), .status(200, "[]"),
            .status(404, #"{"error":"invalid_grant"}"#), .status(400, #"{"error":"invalid_client"}"#),
            .status(400, #"{"error":"temporarily_unavailable"}"#), .status(400, #"{"error":["invalid_grant"]}"#),
            .status(400, #"{"error":"invalid_request","error_description":"invalid_grant"}"#),
            .status(400, #"{"error":"invalid_client","error":"invalid_grant"}"#), .status(200, #"{"access_token":""}"#),
            .status(200, #"{"access_token":"a","token_type":"DPoP"}"#),
        ]
        + [408, 425, 429, 500, 502, 503, 504, 511, 520, 599].flatMap { status -> [FakeProvider.Turn] in
            [.status(status), .status(status, #"{"error":"invalid_grant"}"#)]
        }

    @Test(arguments: passing.indices)
    func `PR-10, PR-20: a failure that proves nothing keeps the session`(index: Int) async throws {
        let house = try await House.expired()
        let held = await house.vault.sessions
        house.provider.script(.token, `Renewing a session`.passing[index])
        #expect(await house.failure() != nil)
        let view = try await house.view
        #expect(view.state == .authenticated)
        #expect(view.isStale)
        #expect(view.subject == "alice")
        // A request that the daemon itself broke off tells nothing of the provider.
        if `Renewing a session`.passing[index].isCancelled == false { #expect(view.error != nil) }
        #expect(await house.vault.sessions == held)
        house.clock.advance(by: 86_400)
        _ = try await house.token()
        #expect(house.provider.presented.count == 2)
        #expect(Set(house.provider.presented).count == 1)
        #expect(try await house.view.error == nil)
    }

    @Test(arguments: [200, 400, 401, 403])
    func `invalid_grant ends the session`(status: Int) async throws {
        let house = try await House.expired()
        house.provider.script(.token, .status(status, #"{"error":"invalid_grant"}"#))
        #expect(await house.failure() == .sessionExpired(House.name))
        // The reason stays until the next sign-in.
        #expect(await house.failure() == .sessionExpired(House.name))
        #expect(try await house.view.state == .unauthenticated)
        #expect(try await house.view.error == .sessionExpired(House.name))
        #expect(await house.vault.sessions.isEmpty)
        #expect(house.provider.presented.count == 1)
        try await house.signIn()
        #expect(await house.failure() == nil)
    }

    @Test func `a refresh and a sign-in need only those members of the metadata that they use`() async throws {
        let house = try await House()
        house.provider.behave { provider in
            for name in [
                "registration_endpoint", "end_session_endpoint", "revocation_endpoint", "device_authorization_endpoint",
                "pushed_authorization_request_endpoint",
            ] {
                provider.metadata[name] = ""
            }
            provider.metadata["scopes_supported"] = "openid"
        }
        try await house.signIn()
        house.provider.behave { provider in
            provider.metadata["authorization_endpoint"] = "/authorize"
            provider.metadata["code_challenge_methods_supported"] = ["plain"]
        }
        house.clock.advance(by: 86_400)
        _ = try await house.token()
        #expect(!house.provider.presented.isEmpty)
    }

    @Test(
        arguments: [
            (200, #"{"data":SET}"#), (200, "[SET]"), (200, ")]}',\nSET"), (200, "<b>Warning</b>\nSET"), (201, "SET}"),
            (400, "SET"), (401, "SET"), (403, "SET"), (500, "SET"), (503, "SET"),
            (200, "{'refresh_token':'r3'}"),
        ])
    func `PR-09: a rotated token is in the vault though its response cannot be used`(
        status: Int, body: String
    ) async throws {
        let house = try await House.expired()
        let set = #"{"access_token":"a3","token_type":"Bearer","refresh_token":"r3"}"#
        house.provider.script(.token, .status(status, body.replacing("SET", with: set)))
        #expect(await house.failure() != nil)
        #expect(await house.vault.log == ["store refresh-2", "announce", "store refresh-2 > r3"])
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `a hundred callers at an expiry cause one refresh, and all get its token`() async throws {
        let house = try await House.expired()
        house.provider.hold(.token)
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<100 { group.addTask { try await house.token() } }
            #expect(await house.provider.arrived(.token, 1))
            house.provider.release(.token)
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(tokens.count == 100)
        #expect(Set(tokens).count == 1)
        #expect(house.provider.presented == ["refresh-2"])
    }

    @Test func `PR-09, RT-02, NAT-27: a rotated token is stored before the rest of the answer is read`() async throws {
        let house = try await House.expired()
        house.provider.script(.token, .setting("access_token", nil))
        #expect(await house.failure() != nil)
        #expect(await house.vault.log == ["store refresh-2", "announce", "store refresh-2 > refresh-3"])
        house.clock.advance(by: 600)
        _ = try await house.token()
        #expect(house.provider.presented == ["refresh-2", "refresh-3"])
        #expect(await house.vault.stores.suffix(2) == ["store refresh-2 > refresh-3 > refresh-4", "store refresh-4"])
    }

    enum Lie: String, CaseIterable {
        case issuer, audience, signature, authorizedParty, algorithm
    }

    @Test(arguments: Lie.allCases)
    func `PR-18: a lying ID token serves no token and keeps both refresh tokens`(lie: Lie) async throws {
        let house = try await House.expired()
        let provider = house.provider
        let mint = try TokenMint()
        provider.behave { $0.mint = mint }
        try await house.signIn()
        let before = try await house.token()
        house.clock.advance(by: 3_600)
        let other = try TokenMint()
        let claims = provider.claims(of: "alice")
        let lying: String =
            switch lie {
            case .issuer: try mint.token(claims.setting("iss", "https://evil.example"))
            case .audience: try mint.token(claims.setting("aud", "another-client"))
            case .signature: try other.token(claims)
            case .authorizedParty: try mint.token(claims.setting("azp", "another-client"))
            case .algorithm:
                Base64URL.encode(Array(#"{"alg":"none"}"#.utf8)) + "." + Base64URL.encode(claims.serialized()) + "."
            }
        provider.script(.token, .setting("id_token", .string(lying)))
        guard case .provider(.invalidResponse) = await house.failure() else { throw Unexpected() }
        let session = try #require(await house.vault.sessions.first)
        #expect(session.tokens[.own]?.value.revealed() == before)
        #expect(session.refreshTokens.map { $0.revealed() } == ["refresh-5", "refresh-4"])
        #expect(session.subject == "alice")
        guard case .provider(.invalidResponse) = try await house.view.error else { throw Unexpected() }

        // The newer one goes first, and the older one only after invalid_grant.
        house.clock.advance(by: 600)
        provider.script(.token, .status(503), .invalidGrant, .setting("refresh_token", "refresh-9"))
        #expect(await house.failure() == .provider(.unavailable(status: 503, retryAfter: nil)))
        #expect(provider.presented.suffix(1) == ["refresh-5"])
        house.clock.advance(by: 600)
        // The honest provider has forgotten the older one: it refuses both, and the session is dead.
        #expect(await house.failure() == .sessionExpired(House.name))
        #expect(provider.presented.suffix(2) == ["refresh-5", "refresh-4"])
    }

    @Test func `an answer that repeats the refresh token leaves no newer one`() async throws {
        let house = try await House()
        house.provider.behave { $0.rotates = false }
        try await house.signIn()
        house.clock.advance(by: 3_600)
        house.provider.script(.token, .setting("refresh_token", "refresh-2"))
        _ = try await house.token()
        #expect(await house.vault.stores == ["store refresh-2", "store refresh-2"])
    }

    @Test func `nothing that may rotate is presented while a newer refresh token could not be kept`() async throws {
        let house = try await House.expired()
        await house.vault.failAnnouncing(with: .unwritable(.diskFull))
        guard case .vaultFailed(let reason) = await house.failure() else { throw Unexpected() }
        #expect(reason == .session(.noRoom(cause: .diskFull)))
        #expect(house.provider.presented.isEmpty)
        #expect(try await house.view.subject == "alice")
        // Once there is room, it goes on.
        await house.vault.failAnnouncing(with: nil)
        house.clock.advance(by: 30)
        #expect(try await house.token() == "access-3")
        #expect(try await house.view.error == nil)
    }

    @Test func `a provider that is known not to rotate is asked all the same`() async throws {
        let house = try await House()
        house.provider.behave { $0.rotates = false }
        try await house.signIn()
        _ = try await house.broker.refresh(House.name, isForced: true)
        await house.vault.fail(with: .unwritable(.readOnly))
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        #expect(try await house.view.error == .vaultFailed(.vault(.unwritable(.readOnly))))
    }

    @Test func `what could not be saved is saved when the vault can write again`() async throws {
        let house = try await House.unsaved()
        #expect(try await house.view.error == .vaultFailed(.vault(.unwritable(.diskFull))))
        #expect(await house.vault.sessions.first?.refreshToken == Secret("refresh-2"))
        await house.vault.fail(with: nil)
        house.clock.advance(by: 6)
        _ = await house.broker.sessionManager.runDueTasks()
        #expect(await eventually { await house.vault.sessions.first?.refreshToken == Secret("refresh-3") })
        #expect(await eventually { (try? await house.view.error) == BrokerError?.none })
    }

    /// Members of a refreshed ID token that are odd, and concern that token alone.
    static let oddities: [[String: JSON?]] = [
        ["auth_time": 1_799_999_999], ["exp": 1_700_000_000], ["exp": nil], ["iat": nil], ["iat": "now"],
        ["nbf": 1_999_999_999], ["at_hash": "AAAAAAAAAAAAAAAAAAAAAA"],
    ]

    @Test(arguments: oddities.indices)
    func `NAT-53: an odd ID token is dropped and told once, and the access token is served`(index: Int) async throws {
        let house = try await House.expired()
        let mint = try TokenMint()
        house.provider.behave { manners in
            manners.mint = mint
            manners.claims["auth_time"] = 1_799_950_000
        }
        try await house.signIn()
        let before = try #require(await house.vault.sessions.first?.identity?.token)
        for _ in 0..<2 {
            house.clock.advance(by: 3_600)
            let claims = `Renewing a session`.oddities[index].reduce(house.provider.claims(of: "alice")) {
                $0.setting($1.key, $1.value)
            }
            house.provider.script(.token, .setting("id_token", .string(try mint.token(claims))))
            _ = try await house.token()
        }
        let session = try #require(await house.vault.sessions.first)
        #expect(session.identity?.token == before)
        #expect(session.unvalidated == nil)
        #expect(try await house.view.error == nil)
        #expect(house.facts.names.count { $0 == "idTokenDropped" } == 1)
    }

    @Test func `userinfo's subject binds a later ID token`() async throws {
        let house = try await House()
        await house.broker.configure([House.account(scopes: ["email"])])
        try await house.signIn()
        #expect(try await house.view.subject == "alice")
        house.clock.advance(by: 3_600)
        let mint = try TokenMint()
        house.provider.behave { $0.mint = mint }
        let foreign = try mint.token(house.provider.claims(of: "mallory"))
        house.provider.script(.token, .setting("id_token", .string(foreign)))
        guard case .provider(.otherSession) = await house.failure() else { throw Unexpected() }
        #expect(try await house.view.subject == "alice")
    }

    @Test func `a refresh token does not follow a token endpoint that moved to another origin`() async throws {
        let house = try await House.expired()
        house.provider.behave { $0.metadata["token_endpoint"] = "https://elsewhere.example/token" }
        guard case .conflict = await house.failure() else { throw Unexpected() }
        #expect(house.provider.presented.isEmpty)
        #expect(house.network.strayURLs.isEmpty)
        #expect(try await house.view.subject == "alice")
        // Nor does it go there to be revoked.
        _ = try await house.broker.signOut(House.name)
        #expect(house.network.strayURLs.isEmpty)
        #expect(house.provider.revoked.isEmpty)
    }

    @Test func `dead downscoped tokens are not kept`() async throws {
        let house = try await House.signedIn()
        for scope in ["a", "b", "c"] {
            let query = SessionQuery { $0.key = TokenKey(scopes: [scope]) }
            _ = try await house.broker.session(House.name, query)
        }
        #expect(await house.vault.sessions.first?.tokens.count == 4)
        house.clock.advance(by: 3_600)
        _ = try await house.token()
        #expect(await house.vault.sessions.first?.tokens.count == 1)
    }
}

extension FakeProvider.Turn {
    fileprivate var isCancelled: Bool { if case .fail(.cancelled) = self { true } else { false } }
}

@Suite struct `What a provider says of a secret` {
    @Test(arguments: ["s3cr3t-of-the-client", "x S3CR3T-OF-THE x", "…cr3t-of-…", "token rt-0123456789 unknown"])
    func `is not repeated`(message: String) {
        let error = BrokerError.provider(.refused(code: "invalid_client", message: message))
        let quiet = error.unquoting(Secret("rt-0123456789abcdef"), Secret("s3cr3t-of-the-client"), nil)
        #expect(quiet == .provider(.refused(code: "invalid_client", message: nil)))
    }

    @Test func `is left alone where it repeats none`() {
        let error = BrokerError.provider(.refused(code: "invalid_grant", message: "Token has been revoked."))
        #expect(error.unquoting(Secret("rt-0123456789abcdef"), Secret("gran"), nil) == error)
    }
}
