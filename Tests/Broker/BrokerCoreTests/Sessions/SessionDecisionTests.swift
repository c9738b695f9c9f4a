import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

private let now = BootInstant(milliseconds: 1_000_000)

private func session(
    _ subject: String = "alice", expiresIn seconds: Int? = 100, refreshToken: Secret? = Secret("refresh")
) -> Session {
    let expiry = seconds.map { Deadline(at: WallInstant(seconds: $0), boot: now + .seconds($0)) }
    var session = Session(
        refreshToken: refreshToken, issuer: "https://id.example", tokenEndpointOrigin: "https://id.example",
        signedInAt: WallInstant(seconds: 5))
    session.subject = subject
    session.tokens[.own] = AccessToken(
        value: Secret("access"), type: "Bearer", scope: nil, expiry: expiry,
        lifetime: seconds.map { .seconds($0 + 1_000) })
    return session
}

@Suite struct `Which token a caller gets` {
    private func choice(_ session: Session, _ query: SessionQuery = SessionQuery()) -> TokenChoice {
        TokenChoice(query: query, account: House.account(), session: session, now: now)
    }

    private func query(_ minValid: Int?, _ key: TokenKey = .own) -> SessionQuery {
        var query = SessionQuery()
        query.minValid = minValid.map { .seconds($0) }
        query.key = key
        return query
    }

    @Test func `a token that is valid long enough is issued without a refresh`() throws {
        #expect(try choice(session(expiresIn: 60)).beforeRefresh() != nil)
        #expect(try choice(session(expiresIn: 59)).beforeRefresh() == nil)
        #expect(try choice(session(expiresIn: 59), query(50)).beforeRefresh() != nil)
        #expect(try choice(session(expiresIn: nil), query(10_000)).beforeRefresh() != nil)
    }

    @Test func `without a refresh token, the rest of the access token is issued to a caller who names no validity`()
        throws
    {
        let short = session(expiresIn: 5, refreshToken: nil)
        #expect(try choice(short).beforeRefresh() != nil)
        for (session, query) in [(short, query(30)), (session(expiresIn: 0, refreshToken: nil), query(nil))] {
            #expect {
                try choice(session, query).beforeRefresh()
            } throws: {
                if case .sessionRanOut? = $0 as? BrokerError { true } else { false }
            }
        }
    }

    @Test func `a downscoped token needs a refresh token`() throws {
        let downscoped = query(nil, TokenKey(scopes: ["email"]))
        #expect {
            try choice(session(refreshToken: nil), downscoped).beforeRefresh()
        } throws: {
            if case .methodUnsupported? = $0 as? BrokerError { true } else { false }
        }
        #expect(try choice(session(), downscoped).beforeRefresh() == nil)
    }

    @Test func `a failed refresh leaves the held token, until it expires, to a caller who names no validity`() {
        #expect(choice(session(expiresIn: 5)).despiteFailure != nil)
        #expect(choice(session(expiresIn: 0)).despiteFailure == nil)
        #expect(choice(session(expiresIn: 5), query(1)).despiteFailure == nil)
    }

    @Test func `after a refresh an expired access token is the provider's mistake, a missing ID token needs a sign-in`()
        throws
    {
        #expect(try choice(session(expiresIn: 1)).afterRefresh().token.value == Secret("access"))
        #expect {
            try choice(session(expiresIn: 0)).afterRefresh()
        } throws: {
            if case .provider(.invalidResponse)? = $0 as? BrokerError { true } else { false }
        }
        let idToken = SessionQuery { $0.kind = .idToken }
        #expect(throws: BrokerError.signInRequired(House.name)) { try choice(session(), idToken).afterRefresh() }
    }
}

@Suite struct `The state of the vault` {
    private let locked = BrokerError.vaultLocked(.vault(.locked(.keyringLocked)))

    @Test func `a lock by a user ends only when the vault is opened`() {
        var state = VaultState()
        #expect(!state.isOpen && state.lockError == nil && !state.isToBeOpened)
        state.opened()
        #expect(state.isOpen)
        state.lock()
        #expect(!state.isOpen && state.userLock == state.lockError && state.userLock != nil && !state.isToBeOpened)
        state.opened()
        #expect(state.isOpen && state.lockError == nil)
    }

    @Test func `a key source that cannot be used locks the vault, and is tried again`() {
        var state = VaultState()
        state.failed(locked, by: nil, at: now)
        #expect(state.lockError == locked && state.userLock == nil && state.isToBeOpened)
    }

    @Test func `a wrong passphrase does not change why the vault is locked`() {
        var state = VaultState()
        state.failed(.wrongPassphrase, by: 7, at: now)
        #expect(state.lockError == .wrongPassphrase)
        state.lock()
        state.failed(.wrongPassphrase, by: 7, at: now)
        #expect(state.userLock != nil)
    }

    @Test func `a process may try five passphrases in a minute, whatever others try`() {
        var state = VaultState()
        for second in 0..<5 {
            #expect(state.refusal(of: 7, at: now) == nil)
            state.failed(.wrongPassphrase, by: 7, at: now + .seconds(second))
        }
        #expect(state.refusal(of: 7, at: now + .seconds(10)) == .tooManyAttempts(retryAfter: 50))
        #expect(state.refusal(of: 8, at: now + .seconds(10)) == nil)
        #expect(state.refusal(of: 7, at: now + .seconds(60)) == nil)
        for _ in 0..<5 { state.failed(.wrongPassphrase, by: 7, at: now + .seconds(61)) }
        state.opened()
        #expect(state.refusal(of: 7, at: now + .seconds(62)) == nil)
    }
}

@Suite struct `A session that takes the place of another one` {
    /// A provider whose sessions are named by their subject's last letter.
    private struct Families: SignInProvider {
        func check(_ request: SignInRequest) throws(BrokerError) -> SignInRequest { request }
        func begin(_ request: SignInRequest, in context: SignInContext) async throws(BrokerError) -> Beginning { .done }
        func redeem(
            _ proof: Proof, of flow: Flow, in context: SignInContext
        ) async throws(RedemptionFailure) -> Redemption { .waiting(nil) }
        func renewal(
            of session: Session, for key: TokenKey, because reason: RefreshReason
        ) async throws(BrokerError) -> Renewal {
            throw .cancelled
        }
        func revoke(_ session: Session, endingAll: Bool) async throws(BrokerError) -> Bool { true }
        func family(of session: Session) -> String? { session.scope }
        func diagnose(_ subject: DiagnosisSubject, of session: Session?) async -> Diagnosis { Diagnosis([]) }
    }

    private func succession(
        of next: Session, over former: Session?, switching: Bool = false
    ) throws(BrokerError) -> Replacement {
        var state = LaneState()
        let found = former.map { LaneState.Loaded.session(HeldSession($0)) } ?? .absent(.signedOut)
        _ = state.take(.loaded(found, isAfterReload: false), of: House.name, at: now)
        let lane = SessionManager.Lane(
            account: House.account(), id: SessionManager.LaneID(account: House.name, number: 1), state: state)
        return try Replacement(of: next, in: lane, by: Families(), SessionOpening(switchesSubject: switching))
    }

    private func named(_ family: String?, _ subject: String = "alice", refreshToken: Secret? = nil) -> Session {
        var session = session(subject, refreshToken: refreshToken)
        session.scope = family
        return session
    }

    @Test func `another subject is refused, unless the sign-in may switch`() throws {
        let held = named("one")
        let other = named("two", "bob")
        #expect {
            try succession(of: other, over: held)
        } throws: {
            if case .conflict? = $0 as? BrokerError { true } else { false }
        }
        #expect(try succession(of: other, over: held, switching: true).replaced?.session == held)
        #expect(try succession(of: other, over: nil).replaced == nil)
    }

    @Test func `both users are named by an address or a number where one is known`() throws {
        var (held, other) = (named("one"), named("one", "bfde064e-1295"))
        held.user = ["email": "mira@example.org", "phone": "+4915112345678"]
        other.user = ["email": "", "phone": "+4915112345679"]
        let refusal = #expect(throws: BrokerError.self) { try succession(of: other, over: held) }
        let reason = Reason.session(.otherUser(House.name, held: "mira@example.org", other: "+4915112345679"))
        #expect(refusal == .conflict(reason))
    }

    @Test func `the former session is ended at the provider only where the provider tells the two apart`() throws {
        #expect(try succession(of: named("two"), over: named("one")).replaced != nil)
        #expect(try succession(of: named("one"), over: named("one")).replaced == nil)
        #expect(try succession(of: named(nil), over: named(nil)).replaced == nil)
        #expect(try succession(of: named("two"), over: named(nil)).replaced == nil)
    }

    @Test func `a session without a refresh token takes the one of the same family over`() throws {
        let held = named("one", refreshToken: Secret("refresh"))
        #expect(try succession(of: named("one"), over: held).session.refreshToken == Secret("refresh"))
    }

    @Test func `with the refresh token comes its key, unless the access token is bound to another`() throws {
        var held = named("one", refreshToken: Secret("refresh"))
        held.proofKey = Secret("k1")
        var next = named("one")
        next.proofKey = Secret("k2")
        next.tokens[.own] = AccessToken(value: Secret("a"), type: "Bearer", scope: nil)
        let taken = try succession(of: next, over: held).session
        #expect(taken.refreshToken == Secret("refresh") && taken.proofKey == Secret("k1"))
        next.tokens[.own]?.type = "DPoP"
        let refused = try succession(of: next, over: held).session
        #expect(refused.refreshToken == nil && refused.proofKey == Secret("k2"))
        held.proofKey = nil
        #expect(try succession(of: next, over: held).session.proofKey == Secret("k2"))
    }
}
