import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `A refresh response` {
    /// A house whose provider does not rotate, so that the own refresh token, refresh-2, stays good.
    private func house() async throws -> House {
        let house = try await House()
        house.provider.behave { $0.rotates = false }
        try await house.signIn()
        house.clock.advance(by: 3_600)
        return house
    }

    private func response(
        of subject: String, _ token: String?, _ house: House, signedBy mint: TokenMint? = nil
    ) throws -> FakeProvider.Turn {
        let claims = house.provider.claims(of: subject)
        let signer: TokenMint
        if let mint { signer = mint } else { signer = house.provider.mint }
        let idToken = try signer.token(claims)
        let body: JSON = ["access_token": "foreign", "token_type": "Bearer", "id_token": .string(idToken)]
        return .status(200, body.setting("refresh_token", token.map { .string($0) }).text)
    }

    private func held(_ house: House) async throws -> [String] {
        try #require(await house.vault.sessions.first).refreshTokens.map { $0.revealed() }
    }

    @Test func `PR-18: that proves to be another user's leaves our own refresh token alone`() async throws {
        let house = try await house()
        let before = try await #require(house.vault.sessions.first).tokens
        house.provider.script(.token, try response(of: "mallory", "theirs", house))
        guard case .provider(.otherSession) = await house.failure() else { throw Unexpected() }
        #expect(try await held(house) == ["refresh-2"])
        let session = try await #require(house.vault.sessions.first)
        #expect(session.subject == "alice" && session.tokens == before)
        guard case .provider(.otherSession) = try await house.view.error else { throw Unexpected() }
        house.clock.advance(by: 600)
        #expect(try await house.token() != "foreign")
        #expect(house.provider.presented == ["refresh-2", "refresh-2"])
    }

    @Test func `that proves the newer refresh token to be another user's has our own presented at once`() async throws {
        let house = try await house()
        house.provider.script(
            .token, .status(200, #"{"refresh_token":"newer"}"#), try response(of: "mallory", "newest", house))
        #expect(await house.failure() != nil)
        #expect(try await held(house) == ["newer", "refresh-2"])
        house.clock.advance(by: 600)
        #expect(try await house.token() != "foreign")
        #expect(house.provider.presented == ["refresh-2", "newer", "refresh-2"])
        #expect(try await held(house) == ["refresh-2"])
        #expect(try await house.view.error == nil)
    }

    @Test func `about another user that the provider did not sign proves nothing`() async throws {
        let house = try await house()
        house.provider.script(.token, try response(of: "mallory", "newer", house, signedBy: try TokenMint()))
        guard case .provider(.invalidResponse) = await house.failure() else { throw Unexpected() }
        #expect(try await held(house) == ["newer", "refresh-2"])
    }

    static let silences: [FakeProvider.Turn] = [
        .status(200), .status(400), .status(401, "no"), .status(403, "<html></html>"), .status(500), .status(503),
        .status(429), .fail(.timedOut(host: "id.example")), .status(503, #"{"error":"invalid_grant"}"#),
        .status(404, #"{"error":"invalid_grant"}"#), .status(400, #"{"error":["invalid_grant"]}"#),
        .status(400, #"{"error":"invalid_client"}"#),
    ]

    @Test(arguments: silences.indices)
    func `that proves nothing is never followed by the older refresh token`(index: Int) async throws {
        let house = try await house()
        house.provider.script(.token, .status(200, #"{"refresh_token":"newer"}"#))
        #expect(await house.failure() != nil)
        for _ in 0..<2 {
            house.clock.advance(by: 4_000)
            house.provider.script(.token, `A refresh response`.silences[index])
            #expect(await house.failure() != nil)
        }
        #expect(house.provider.presented == ["refresh-2", "newer", "newer"])
        #expect(try await held(house) == ["newer", "refresh-2"])
        house.clock.advance(by: 4_000)
        house.provider.script(.token, .invalidGrant)
        _ = try await house.token()
        #expect(house.provider.presented.suffix(2) == ["newer", "refresh-2"])
    }

    @Test func `that is not valid keeps the own refresh token behind both newer ones`() async throws {
        let house = try await house()
        for name in ["first", "second", "third"] {
            house.provider.script(.token, .status(200, #"{"refresh_token":"\#(name)"}"#))
            #expect(await house.failure() != nil)
            house.clock.advance(by: 4_000)
        }
        #expect(try await held(house) == ["third", "second", "refresh-2"])
        house.provider.script(.token, .invalidGrant, .invalidGrant)
        _ = try await house.token()
        #expect(house.provider.presented == ["refresh-2", "first", "second", "third", "second", "refresh-2"])
        #expect(try await held(house) == ["refresh-2"])
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A refresh that is refused without a word` {
    private func refusals(_ count: Int, _ house: House) async throws -> [BrokerError?] {
        var errors: [BrokerError?] = []
        for _ in 0..<count {
            house.clock.advance(by: 4_000)
            errors.append(await house.failure())
        }
        return errors
    }

    private let unexplained = BrokerError.provider(.unexplained(host: "id.example", status: 400))
    private let refused = BrokerError.refreshRefused(
        House.name, host: "id.example", .unexplained(status: 400, message: nil))

    @Test func `becomes a state of its own at the fifth time, and a success ends it`() async throws {
        let house = try await House.expired()
        let held = await house.vault.sessions
        for _ in 0..<7 { house.provider.script(.token, .status(400)) }
        #expect(try await refusals(4, house) == [unexplained, unexplained, unexplained, unexplained])
        #expect(try await house.view.error == unexplained)
        #expect(try await refusals(1, house) == [refused])
        let view = try await house.view
        #expect(view.state == .authenticated && view.isStale && view.error == refused && view.subject == "alice")
        // It is tried again, at the longest interval; until then everybody is told at once.
        #expect(await house.failure() == refused)
        house.clock.advance(by: 149)
        #expect(await house.failure() == refused)
        #expect(house.provider.presented.count == 5)
        #expect(try await refusals(2, house) == [refused, refused])
        #expect(house.provider.presented.count == 7 && Set(house.provider.presented).count == 1)
        #expect(await house.vault.sessions == held)
        house.clock.advance(by: 300)
        _ = try await house.token()
        #expect(try await house.view.error == nil)
        house.clock.advance(by: 3_600)
        house.provider.script(.token, .status(400))
        #expect(await house.failure() == unexplained)
    }

    @Test(arguments: [
        #"{"error":"invalid_request","error_description":"refresh_token is invalid"}"#,
        #"{"error":"unsupported_token_type"}"#, #"{"error":"bad_request","message":"Token revoked"}"#,
        #"{"message":"refresh token not found"}"#, #"{"errors":[{"message":"gone"}]}"#,
    ])
    func `with another code than invalid_grant offers a sign-in at the fifth time, and keeps the session`(
        body: String
    ) async throws {
        let house = try await House.expired()
        let held = await house.vault.sessions
        for _ in 0..<5 { house.provider.script(.token, .status(400, body)) }
        let errors = try await refusals(5, house)
        for error in errors.dropLast() { if case .refreshRefused? = error { Issue.record("too early") } }
        guard case .refreshRefused(House.name, "id.example", _)? = errors.last else { throw Unexpected(errors) }
        #expect(await house.vault.sessions == held)
        #expect(try await house.view.state == .authenticated)
        house.clock.advance(by: 300)
        _ = try await house.token()
        #expect(try await house.view.error == nil)
    }

    @Test(arguments: [401, 429, 408, 503])
    func `for a reason that a sign-in does not mend offers none`(status: Int) async throws {
        let house = try await House.expired()
        let body = #"{"error":"\#(status == 401 ? "invalid_client" : "slow_down")"}"#
        for _ in 0..<7 { house.provider.script(.token, .status(status, body)) }
        for error in try await refusals(7, house) { if case .refreshRefused? = error { Issue.record("\(status)") } }
    }

    @Test func `says what the provider said when it ends the session, after a restart too`() async throws {
        let house = try await House.expired()
        let said = "AADSTS700082: The refresh token has expired. Ünë\\r\\nTrace ID: 1"
        house.provider.script(
            .token, .status(400, #"{"error":"invalid_grant","error_description":"\#(said)"}"#))
        let ended = BrokerError.sessionExpired(
            House.name, message: "AADSTS700082: The refresh token has expired. Ünë Trace ID: 1")
        #expect(await house.failure() == ended)
        #expect(try await house.view.error == ended)
        let told = house.facts.all.compactMap { fact -> BrokerError? in
            if case .sessionEnded(_, _, _, let error) = fact { error } else { nil }
        }
        #expect(told == [ended])
    }

    @Test func `is not counted where nobody answered, and counted anew after a word`() async throws {
        let house = try await House.expired()
        house.provider.script(
            .token, .status(400), .status(403, "no"), .fail(.timedOut(host: "id.example")), .status(404), .status(503),
            .status(400), .status(400))
        let errors = try await refusals(7, house)
        #expect(errors.last == refused)
        #expect(errors.dropLast().contains(refused) == false)
        house.provider.script(.token, .status(400, #"{"error":"invalid_client"}"#), .status(400))
        #expect(try await refusals(2, house).last == unexplained)
    }

    @Test func `has a sign-in started for whoever waits for one`() async throws {
        let house = try await House.expired()
        for _ in 0..<5 { house.provider.script(.token, .status(400)) }
        #expect(try await refusals(5, house).last == refused)
        let waiting = Task { try await house.broker.sessionAfterSignIn(House.name, SessionQuery()) }
        #expect(await eventually { (try? await house.view.flow) != nil })
        let url = try #require(await house.broker.flows().first?.authorizationURL)
        _ = await house.broker.receive(try house.provider.consent(url))
        #expect(try await waiting.value.subject == "alice")
        #expect(try await house.view.error == nil)
    }
}
