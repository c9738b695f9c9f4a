import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite struct `A session's record` {
    private let clock = TestClock()
    private let session: Session = {
        var session = Session(
            refreshToken: Secret("r1"), scope: "openid", issuer: "https://id.example",
            tokenEndpointOrigin: "https://id.example", signedInAt: WallInstant(seconds: 3))
        session.unvalidated = Session.Unvalidated(Secret("r2"))
        var identity = Session.Identity(
            token: Secret("id"), expiry: Deadline(at: WallInstant(seconds: 5), boot: BootInstant(milliseconds: 4_000)),
            lifetime: .seconds(4), audience: ["a", "b"])
        identity.authenticationTime = WallInstant(seconds: 1)
        identity.authorizedParty = "a"
        identity.nonce = Secret("n")
        identity.issuer = "https://id.example/d"
        identity.nonceSource = Secret("s")
        session.proofKey = Secret("k1")
        session.identity = identity
        session.subject = "alice"
        session.user = JSONObject([.init("email", "a@example.org"), .init("name", "Алиса")])
        session.end = Deadline(at: WallInstant(seconds: 10), boot: BootInstant(milliseconds: 9_000))
        session.rotation = .rotates
        session.tokens[.own] = AccessToken(
            value: Secret("t1"), type: "Bearer", scope: "openid", isScopeStated: true,
            expiry: Deadline(at: WallInstant(seconds: 9), boot: BootInstant(milliseconds: 8_000)),
            lifetime: .seconds(8))
        session.tokens[TokenKey(scopes: ["b", "a"], audience: "aud", resource: "res")] = AccessToken(
            value: Secret("t2"), type: "Bearer", scope: nil)
        return session
    }()

    private func reread(
        _ session: Session, bootID: String = "this boot", shift: Duration? = nil
    ) throws -> Session {
        try SessionRecord.decode(SessionRecord.encode(session, bootID: bootID), by: clock.clock, shift: shift)
    }

    @Test func `holds the whole session`() throws {
        #expect(try reread(session) == session)
        var bare = session
        bare.refreshToken = nil
        bare.unvalidated = nil
        bare.proofKey = nil
        bare.identity = nil
        bare.subject = nil
        bare.user = nil
        bare.scope = nil
        bare.end = nil
        bare.rotation = .unknown
        bare.tokens = [:]
        #expect(try reread(bare) == bare)
    }

    @Test func `of another boot has instants by the wall alone, and none later than the provider said`() throws {
        var session = session
        let own = Deadline(in: .seconds(100), by: clock.clock)
        session.tokens[.own]?.expiry = own
        session.tokens[.own]?.lifetime = .seconds(3_600)
        clock.setWall(by: 40)
        #expect(try reread(session).tokens[.own]?.expiry == own)
        #expect(try reread(session, bootID: "another").tokens[.own]?.expiry?.boot == own.boot - .seconds(40))
        #expect(try reread(session, bootID: "").tokens[.own]?.expiry?.boot == own.boot - .seconds(40))
        clock.setWall(by: -315_360_000)
        #expect(
            try reread(session, bootID: "another").tokens[.own]?.expiry
                == Deadline(in: .seconds(3_600), by: clock.clock))
        clock.setWall(by: 2 * 315_360_000)
        #expect(try reread(session, bootID: "another").tokens[.own]?.remaining(at: clock.bootInstant) == .zero)
    }

    @Test func `of another host is by the time since that host's boot where that is known`() throws {
        var session = session
        let own = Deadline(in: .seconds(100), by: clock.clock)
        session.tokens[.own]?.expiry = own
        session.tokens[.own]?.lifetime = .seconds(3_600)
        // Whatever the wall clocks say, here or there.
        for wall in [0, 3_600, -7_200] {
            clock.setWall(by: wall)
            let read = try reread(session, bootID: "another", shift: .seconds(-30)).tokens[.own]?.expiry
            #expect(read?.boot == own.boot - .seconds(30))
            #expect(read?.at == clock.clock.wallInstant + .seconds(70))
            // Never longer than the whole lifetime.
            let longest = try reread(session, bootID: "another", shift: .seconds(9_000)).tokens[.own]?.expiry
            #expect(longest?.boot == clock.bootInstant + .seconds(3_600))
        }
        #expect(try reread(session, shift: .seconds(50)).tokens[.own]?.expiry == own)
    }

    @Test(arguments: [
        "", "null", "[]", "{}", #"{"version":1}"#, #"{"version":"1","issuer":"i"}"#,
        #"{"version":1,"issuer":"i","token_endpoint_origin":"o","signed_in_at":1,"tokens":[{}]}"#,
    ])
    func `that is damaged is not read`(text: String) {
        #expect(throws: SessionRecord.Failure.damaged) { try SessionRecord.decode(Secret(text), by: clock.clock) }
    }

    @Test func `of a vault that hosts share is told from a damaged one`() throws {
        let text = Secret(bytes: Array("ringback: row 1\n{\"version\":1}\n{\"version\":1}".utf8))
        #expect(throws: SessionRecord.Failure.shared) { try SessionRecord.decode(text, by: clock.clock) }
        let name = try #require(AccountName("work"))
        let loaded = LaneState.Loaded(.success(VaultEntry(text: text)), of: name, by: clock.clock)
        guard case .untouchable(.vaultFailed(let reason)) = loaded else { throw Unexpected() }
        #expect(reason.holds("The session of work is one that hosts share"))
    }

    @Test func `of a newer version is told from a damaged one`() {
        let text = Secret(#"{"version":2,"anything":"else"}"#)
        #expect(throws: SessionRecord.Failure.newer) { try SessionRecord.decode(text, by: clock.clock) }
    }

    @Test(arguments: [("", "b", false), ("a", "", false), ("a", "a", false), ("a", "b", true)])
    func `says that the vault was on another machine, where both are known`(
        written: String, read: String, hasMoved: Bool
    ) throws {
        let text = SessionRecord.encode(session, bootID: "this boot", machineID: written)
        let there = try SessionRecord.decode(text, by: clock.clock(bootID: "this boot", machineID: read))
        #expect(there.hasMoved == hasMoved)
        // The next write there has the machine's own identifier, and keeps the fact.
        let rewritten = SessionRecord.encode(there, bootID: "this boot", machineID: read)
        let clock = clock.clock(bootID: "this boot", machineID: read)
        #expect(try SessionRecord.decode(rewritten, by: clock).hasMoved == hasMoved)
    }

    @Test func `names the machine by a hash, and no machine where hosts share the vault`() {
        #expect([0, 64].contains(BrokerClock.system.machineID.utf8.count))
        #expect(clock.clock(bootID: "b", machineID: "a").ofSharedVault().machineID.isEmpty)
    }

    @Test func `shows no secret when it is printed`() {
        var text = ""
        dump(session, to: &text)
        text += "\(session) \(String(reflecting: session))"
        for secret in ["r1", "r2", "t1", "t2", "k1"] { #expect(!text.contains("\"\(secret)\"")) }
        #expect(text.contains("<secret>"))
    }
}

@Suite struct `A token's key` {
    @Test func `knows scopes as a set`() {
        #expect(TokenKey(scopes: ["b", "a", "b"]) == TokenKey(scopes: ["a", "b"]))
        #expect(TokenKey(scopes: []) == .own)
        #expect(TokenKey(audience: "x") != TokenKey(resource: "x"))
    }
}
