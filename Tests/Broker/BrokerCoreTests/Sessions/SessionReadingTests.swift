import Cryptography
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(1))) struct `Reading a session` {
    @Test func `a cancelled caller is answered at once and cancels nobody`() async throws {
        let house = try await House.expired()
        let impatient = await house.heldRefresh()
        #expect(try await house.view.state == .refreshing)
        let patient = Task { try await house.token() }
        impatient.cancel()
        #expect(await impatient.value == .cancelled)
        house.provider.release(.token)
        #expect(try await patient.value.hasPrefix("access-"))
        #expect(house.provider.count(.token) == 2)
    }

    @Test func `a caller's own bound ends its wait and not the refresh`() async throws {
        let house = try await House.expired()
        house.provider.hold(.token)
        let query = SessionQuery { $0.timeout = .milliseconds(20) }
        #expect(await house.failure(query) == .timedOut)
        house.provider.release(.token)
        #expect(await eventually { house.broker.snapshot.current("work") != nil })
        #expect(house.provider.count(.token) == 2)
    }

    @Test(
        arguments: [
            // lifetime, min_valid, seconds passed, refreshed
            (3_600, nil, 3_539, false), (3_600, nil, 3_540, false), (3_600, nil, 3_541, true), (3_600, 60, 3_541, true),
            (3_600, 0, 3_599, false), (3_600, 0, 3_600, true), (3_600, 600, 3_000, false), (3_600, 600, 3_001, true),
            (30, nil, 15, false), (30, nil, 16, true), (60, 60, 30, false), (60, 60, 31, true), (59, 600, 30, true),
            (nil, 600, 1_000_000, false), (nil, nil, 1_000_000, false),
        ] as [(Int?, Int?, Int, Bool)])
    func `a token is refreshed when it lives too short for the caller`(
        lifetime: Int?, minValid: Int?, passed: Int, isRefreshed: Bool
    ) async throws {
        let house = try await House()
        house.provider.behave { $0.lifetime = lifetime }
        try await house.signIn()
        house.clock.advance(by: passed)
        _ = try await house.token(minValid: minValid)
        #expect(house.provider.count(.token) == (isRefreshed ? 2 : 1))
    }

    @Test func `a caller who named no min_valid gets the current token while it is valid at all`() async throws {
        let house = try await House.signedIn()
        house.clock.advance(by: 3_590)
        let held = try #require(try await house.view.expiresAt)
        house.provider.script(.token, .fail(.unreachable(host: "id.example", reason: "refused")))
        let issuedToken = try await house.broker.session(House.name, SessionQuery())
        #expect(issuedToken.token.expiry?.at == held)
        // One who named it learns why, during back-off too.
        guard case .provider(.unreachable) = await house.failure(minValid: 60) else { throw Unexpected() }
        house.clock.advance(by: 10)
        house.provider.script(.token, .fail(.timedOut(host: "id.example")))
        guard case .provider(.unreachable) = await house.failure() else { throw Unexpected() }
    }

    @Test func `a token that dies while its refresh is waited for is not served`() async throws {
        let house = try await House.signedIn()
        house.clock.advance(by: 3_590)
        house.provider.hold(.token)
        house.provider.script(.token, .status(503))
        let waiting = Task { await house.failure() }
        #expect(await house.provider.arrived(.token, 2))
        house.clock.advance(by: 10)
        house.provider.release(.token)
        #expect(await waiting.value == .provider(.unavailable(status: 503, retryAfter: nil)))
        #expect(try await house.view.isStale)
        #expect(try await house.view.subject == "alice")
    }

    @Test func `during back-off the answer is immediate and costs no request`() async throws {
        let house = try await House.expired()
        house.provider.script(.token, .status(502))
        #expect(await house.failure() == .provider(.unavailable(status: 502, retryAfter: nil)))
        #expect(await house.failure() == .provider(.unavailable(status: 502, retryAfter: nil)))
        #expect(house.provider.count(.token) == 2)
        house.clock.advance(by: 2)
        #expect(await house.failure() == nil)
        #expect(house.provider.count(.token) == 3)
    }

    @Test func `another person's token is not handed out, even if the person changes during the wait`() async throws {
        let house = try await House.signedIn()
        var query = SessionQuery()
        query.subject = "bob"
        guard case .conflict = await house.failure(query) else { throw Unexpected() }
        query.subject = "alice"
        #expect(try await house.broker.session(House.name, query).subject == "alice")

        house.clock.advance(by: 3_600)
        let flow = try await house.broker.signIn(House.name, SignInRequest(switchesSubject: true)).flow
        let callback = try house.provider.consent(flow.authorizationURL, as: "bob")
        house.provider.hold(.userinfo)
        let switching = Task { await house.broker.receive(callback) }
        #expect(await house.provider.arrived(.userinfo, 2))
        house.provider.hold(.token)
        let wanted = query
        let waiting = Task { await house.failure(wanted) }
        #expect(await house.provider.arrived(.token, 3))
        house.provider.release(.userinfo)
        house.provider.script(.token, .status(503))
        house.provider.release(.token)
        _ = await switching.value
        // Which of the two ends first is open; alice's caller gets no token of bob's in either case.
        #expect(await waiting.value != nil)
        #expect(try await house.view.subject == "bob")
    }

    @Test func `the ID token has an expiry of its own, and a provider that renews none is asked once`() async throws {
        let house = try await House()
        house.provider.behave { $0.idTokenOnRefresh = false }
        try await house.signIn()
        let query = SessionQuery { $0.kind = .idToken }
        #expect(try await house.broker.session(House.name, query).token.value.revealed().hasPrefix("ey"))
        house.clock.advance(by: 3_600)
        for _ in 0..<3 {
            let error = await house.failure(query)
            #expect(error == .signInRequired(House.name))
        }
        #expect(house.provider.count(.token) == 2)
        house.provider.behave { $0.idTokenOnRefresh = true }
        house.clock.advance(by: 5)
        let identity = try await house.broker.session(House.name, query)
        #expect(identity.token.expiry?.at.seconds == house.clock.now + 3_600)
    }

    @Test func `a short-lived ID token is good for half its life`() async throws {
        let house = try await House()
        house.provider.behave { $0.lifetime = 40 }
        try await house.signIn()
        let query = SessionQuery { $0.kind = .idToken }
        house.clock.advance(by: 20)
        _ = try await house.broker.session(House.name, query)
        #expect(house.provider.count(.token) == 1)
        house.clock.advance(by: 1)
        _ = try await house.broker.session(House.name, query)
        #expect(house.provider.count(.token) == 2)
    }

    @Test func `NAT-28: a downscoped token is cached and refreshed on its own`() async throws {
        let house = try await House()
        house.provider.behave { $0.rotates = false }
        try await house.signIn()
        let own = try await house.token()
        var query = SessionQuery()
        query.key = TokenKey(scopes: ["email", "email"])
        let downscoped = try await house.broker.session(House.name, query)
        #expect(downscoped.token.scope == "email")
        #expect(try await house.broker.session(House.name, query).token == downscoped.token)
        #expect(try await house.token() == own)
        #expect(house.provider.count(.token) == 2)
        #expect(house.provider.requests.last { $0.endpoint == .token }?.form["scope"] == "email")
        // A refusal of a downscoped token says nothing about the session.
        house.provider.script(.token, .status(400, #"{"error":"invalid_scope"}"#))
        query.key = TokenKey(scopes: ["admin"])
        let wanted = query
        let refusal = await house.failure(wanted)
        #expect(refusal == .provider(.refused(code: "invalid_scope", message: nil)))
        #expect(try await house.view.error == nil)
        #expect(try await house.token() == own)
    }

    @Test func `without a refresh token the access token is served to its end, then a sign-in is due`() async throws {
        let house = try await House()
        house.provider.behave { $0.givesRefreshToken = false }
        try await house.signIn()
        let ranOut = BrokerError.sessionRanOut(House.name, advice: House.account().renewalAdvice)
        house.clock.advance(by: 3_590)
        #expect(await house.failure() == nil)
        #expect(await house.failure(minValid: 60) == ranOut)
        house.clock.advance(by: 10)
        #expect(await house.failure() == ranOut)
        guard case .conflict = await house.refreshFailure() else { throw Unexpected() }
        #expect(house.provider.count(.token) == 1)
    }

    @Test func `unknown and signed-out accounts are said so`() async throws {
        let house = try await House()
        #expect(await house.failure() == .signInRequired(House.name))
        #expect(await house.failure(House.named("nobody")) == .accountNotFound("nobody"))
        #expect(
            await house.refreshFailure()
                == .signInRequired(House.name))
    }
}

extension `Reading a session` {
    @Test func `an explicit refresh takes the result of one of the last five seconds, unless forced`() async throws {
        let house = try await House.signedIn()
        _ = try await house.broker.refresh(House.name)
        house.clock.advance(by: 4)
        _ = try await house.broker.refresh(House.name)
        #expect(house.provider.count(.token) == 2)
        _ = try await house.broker.refresh(House.name, isForced: true)
        #expect(house.provider.count(.token) == 3)
        house.clock.advance(by: 5)
        _ = try await house.broker.refresh(House.name)
        #expect(house.provider.count(.token) == 4)
    }

    @Test func `an explicit refresh joins the one in flight, forced or not`() async throws {
        let house = try await House.expired()
        house.provider.hold(.token)
        let reading = Task { try await house.token() }
        #expect(await house.provider.arrived(.token, 2))
        let refreshes = [false, true].map { isForced in
            Task { await house.refreshFailure(isForced: isForced) }
        }
        house.provider.release(.token)
        for refresh in refreshes { #expect(await refresh.value == nil) }
        _ = try await reading.value
        // The forced one may have come after the end of the one in flight.
        #expect(house.provider.count(.token) <= 3)
    }

    @Test func `an explicit refresh ignores the back-off, but not the provider's Retry-After`() async throws {
        let house = try await House.expired()
        house.provider.script(.token, .status(500), .status(429, "", retryAfter: 30))
        _ = await house.failure()
        house.clock.advance(by: 0)
        let limited = await house.refreshFailure(isForced: true)
        #expect(limited == .provider(.rateLimited(retryAfter: 30)))
        house.clock.advance(by: 10)
        let early = await house.refreshFailure(isForced: true)
        #expect(early == .provider(.rateLimited(retryAfter: 20)))
        #expect(await house.failure() == .provider(.rateLimited(retryAfter: 20)))
        #expect(house.provider.count(.token) == 3)
        house.clock.advance(by: 20)
        _ = try await house.broker.refresh(House.name)
        #expect(house.provider.count(.token) == 4)
    }

    @Test func `a rejected token that is no longer held costs no request`() async throws {
        let house = try await House.signedIn()
        let held = try await house.token()
        _ = try await house.broker.refresh(House.name, rejected: Digest.sha256(Array("access-of-old".utf8)))
        #expect(house.provider.count(.token) == 1)
        _ = try await house.broker.refresh(House.name, rejected: Digest.sha256(Array(held.utf8)))
        #expect(house.provider.count(.token) == 2)
        #expect(try await house.token() != held)
    }

    @Test func `a token rejected right after its refresh is refreshed once more, not in a circle`() async throws {
        let house = try await House.signedIn()
        _ = try await house.broker.refresh(House.name, isForced: true)
        #expect(house.provider.count(.token) == 2)
        for count in [3, 3, 3] {
            let held = try await house.token()
            _ = try await house.broker.refresh(House.name, rejected: Digest.sha256(Array(held.utf8)))
            #expect(house.provider.count(.token) == count)
        }
        house.clock.advance(by: 10)
        let held = try await house.token()
        _ = try await house.broker.refresh(House.name, rejected: Digest.sha256(Array(held.utf8)))
        #expect(house.provider.count(.token) == 4)
    }

    @Test func `FAPI-32: each token that a server rejects is replaced, by the newest refresh token`() async throws {
        let house = try await House.signedIn()
        for count in 1...2 {
            house.clock.advance(by: 60)
            let rejected = try await house.token()
            _ = try await house.broker.refresh(House.name, rejected: Digest.sha256(Array(rejected.utf8)))
            #expect(try await house.token() != rejected)
            #expect(house.provider.presented == Array(["refresh-2", "refresh-3"].prefix(count)))
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct `The session snapshot` {
    @Test func `shows what may be handed out at this instant, and nothing else`() async throws {
        let house = try await House()
        let snapshot = house.broker.snapshot
        #expect(snapshot.current("work") == nil)
        try await house.signIn()
        let first = try #require(snapshot.current("work"))
        #expect(first.entry.issuedToken.token.value == Secret("access-2"))
        #expect(first.remaining == 3_600)
        #expect(first.expiresAt == house.clock.now + 3_600)
        #expect(snapshot.current("other") == nil)
        // Where a minute is not left, a refresh is due.
        house.clock.advance(by: 3_541)
        #expect(snapshot.current("work") == nil)
        _ = try await house.token()
        let second = try #require(snapshot.current("work"))
        #expect(second.entry.encoding !== first.entry.encoding)
        _ = try await house.broker.signOut(House.name)
        #expect(snapshot.current("work") == nil)
    }

    @Test func `shows nothing from the first instant of a sign-out`() async throws {
        let house = try await House.signedIn()
        await house.vault.hold()
        let closing = Task { _ = try await house.broker.signOut(House.name) }
        #expect(await eventually { await house.vault.log.contains("retire") })
        #expect(house.broker.snapshot.current("work") == nil)
        await house.vault.release()
        try await closing.value
    }
}
