import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A project's session` {
    private let name = SupabaseHouse.name

    @Test func `is in the vault with its facts`() async throws {
        let house = try await SupabaseHouse()
        try await house.walk { $0.keepsProviderToken = true }
        var session = try #require(try await house.held)
        session.project?.migratesFrom = "user 7"
        let text = SessionRecord.encode(session, bootID: "this boot", endsAll: true)
        #expect(SessionRecord.endsAll(text))
        #expect(!SessionRecord.endsAll(SessionRecord.encode(session, bootID: "this boot")))
        #expect(try SessionRecord.decode(text, by: house.clock.clock) == session)
        var shown = ""
        dump(session, to: &shown)
        #expect(!shown.contains("upstream-access"))
    }

    @Test func `of a version that knew no projects is read as what it was`() throws {
        let clock = TestClock()
        let text = Secret(#"{"version":1,"issuer":"i","token_endpoint_origin":"o","signed_in_at":1,"tokens":[]}"#)
        #expect(try SessionRecord.decode(text, by: clock.clock).project == nil)
        let facts = try SessionRecord.decode(
            Secret(
                #"{"version":1,"issuer":"i","token_endpoint_origin":"o","signed_in_at":1,"tokens":[],"project":{}}"#),
            by: clock.clock
        ).project
        #expect(facts?.methods == [])
        #expect(facts?.sessionID == nil)
        #expect(facts?.assurance == nil)
    }

    @Test func `that is not to be kept leaves nothing behind, whatever becomes of it`() async throws {
        let house = try await SupabaseHouse.signedIn(isPersistent: false)
        #expect(await house.refresh() == nil)
        try await house.addFactor()
        _ = try await house.broker.supabase.user(name)
        #expect(await house.vault.stores.isEmpty)
        #expect(await !house.vault.isAnnounced)
        #expect(try await house.token() != "")
        // A daemon of a later life knows nothing of it.
        let reborn = try await house.rebirth()
        #expect(try await reborn.account(name).state == .unauthenticated)
        // Not even that it has ended.
        house.project.behave { $0.sessions = [:] }
        #expect(await house.refresh() == .sessionExpired(name, word: "refresh_token_not_found"))
        #expect(await house.vault.stores.isEmpty)
        #expect(await !house.vault.isAnnounced)

        try await house.signIn(isPersistent: false)
        _ = try await house.broker.signOut(name, endingAll: true)
        #expect(await eventually { house.project.sessions.isEmpty })
        #expect(await house.vault.stores.isEmpty)
        #expect(await house.vault.leavingCount == 0)
    }

    @Test func `that is not to be kept takes the place of one that was`() async throws {
        let house = try await SupabaseHouse.signedIn()
        #expect(await house.vault.sessions.count == 1)
        try await house.signIn(isPersistent: false)
        #expect(await house.vault.sessions.isEmpty)
        #expect(try await house.view.state == .authenticated)
        try await house.signIn()
        #expect(await house.vault.sessions.count == 1)
    }

    @Test func `that is not to be kept is set aside in memory, and comes back from there`() async throws {
        let house = try await SupabaseHouse.signedIn(isPersistent: false)
        let held = try await house.token()
        try await house.configure(try SupabaseHouse.account(at: "https://other.supabase.co"))
        #expect(try await house.view.state == .unauthenticated)
        try await house.configure(try SupabaseHouse.account())
        #expect(try await house.token() == held)
        #expect(await house.vault.stores.isEmpty)
        #expect(house.project.count("POST /logout local") == 0)
    }

    @Test func `is set aside while its account is at another project`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let held = try await house.token()
        for url in ["https://other.supabase.co", "https://ref.supabase.co/below"] {
            try await house.configure(try SupabaseHouse.account(at: url))
            #expect(try await house.view.state == .unauthenticated)
            #expect(await error { try await house.token() } == .signInRequired(name))
            #expect(
                await error { try await house.broker.supabase.user(name) }
                    == .signInRequired(name))
        }
        #expect(await house.vault.sessions.count == 1)
        try await house.configure(try SupabaseHouse.account(at: "https://ref.supabase.co/"))
        #expect(try await house.token() == held)
        // Another key of the same project changes nothing.
        try await house.configure(
            try SupabaseHouse.account { account, rules in
                account.flowTimeout = .seconds(10)
                rules.functions = []
            })
        #expect(try await house.token() == held)
        #expect(house.project.presented.isEmpty)
    }

    @Test func `takes its pending flows along`() async throws {
        let house = try await SupabaseHouse()
        let flow = try #require(try await house.begin("browser"))
        try await house.configure(try SupabaseHouse.account(at: "https://other.supabase.co"))
        #expect(try await house.broker.flow(flow.id).status == .cancelled)
        let callback = try house.project.consent(flow.authorizationURL)
        #expect(await house.broker.receive(callback) == .ended)
        #expect(house.project.count(FakeSupabase.exchange) == 0)
    }

    @Test func `has one token for everything`() async throws {
        let house = try await SupabaseHouse.signedIn()
        for (key, kind) in [
            (TokenKey(scopes: ["read"]), TokenKind.accessToken), (TokenKey(audience: "x"), .accessToken),
            (TokenKey(resource: "https://x"), .accessToken), (.own, .idToken),
        ] {
            var query = SessionQuery()
            query.key = key
            query.kind = kind
            guard case .methodUnsupported = await error({ try await house.broker.session(name, query) })
            else { throw Unexpected() }
        }
        #expect(house.project.presented.isEmpty)
        #expect(try await house.broker.account(issuer: "https://ref.supabase.co/auth/v1") == name)
    }

    @Test func `without a refresh token does not take the one of a session before it`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.script("POST /token password", .setting("refresh_token", nil))
        try await house.signIn()
        #expect(try await house.refreshTokens == [])
        #expect(try await house.view.state == .authenticated)
        house.clock.advance(by: 3_600)
        #expect(await error { try await house.token() } == .sessionRanOut(name, advice: nil))
    }

    private func addSession(_ house: SupabaseHouse) -> String {
        let now = house.clock.now
        return house.project.behave { server in
            let id = server.user(email: SupabaseHouse.alice)?.id ?? ""
            return String(
                (server.open(id, "password", at: now).body["refresh_token"]?.string ?? "").prefix { $0 != "-" })
        }
    }

    @Test func `is ended at the server, alone or with all others`() async throws {
        for isForAll in [false, true] {
            let house = try await SupabaseHouse.signedIn()
            let other = addSession(house)
            let events = try await house.events { _ = try await house.broker.signOut(name, endingAll: isForAll) }
            #expect(events == [.signedOut])
            #expect(await eventually { house.project.sessions == (isForAll ? [] : [other]) })
            #expect(await eventually { await house.vault.leavingCount == 0 })
            #expect(house.project.presented.isEmpty)
            #expect(try await house.view.state == .unauthenticated)
        }
    }

    @Test func `outlives the user's other sessions`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let mine = house.session
        _ = addSession(house)
        let view = try await house.broker.supabase.signOutOthers(name)
        #expect(view.state == .authenticated)
        #expect(house.project.sessions == [mine])
        #expect(await house.refresh() == nil)
    }

    @Test func `is ended by another token where its own has run out`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let id = house.session
        house.clock.advance(by: 7_200)
        _ = try await house.broker.signOut(name)
        #expect(await eventually { house.project.sessions.isEmpty })
        #expect(house.project.presented == ["\(id)-0"])
    }

    @Test func `that the server has ended needs no more words`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.behave { $0.sessions = [:] }
        _ = try await house.broker.signOut(name)
        #expect(await eventually { await house.broker.revocations.isIdle })
        #expect(await house.vault.leavingCount == 0)
        #expect(await house.broker.revocations.counts().isEmpty)
    }

    @Test func `that was ended with all others is so told after a restart, too`() async throws {
        let house = try await SupabaseHouse.signedIn()
        _ = addSession(house)
        house.project.script("POST /logout global", .fail(.unreachable(host: "h", reason: "r")))
        house.project.script(FakeSupabase.refresh, .fail(.unreachable(host: "h", reason: "r")))
        _ = try await house.broker.signOut(name, endingAll: true)
        #expect(await eventually { await house.broker.revocations.isIdle })
        #expect(house.project.sessions.count == 2)
        #expect(await house.vault.leavingCount == 1)

        let reborn = try await house.rebirth()
        #expect(await eventually { await reborn.sessionManager.isOpen })
        _ = await reborn.revocations.runDue()
        #expect(await eventually { house.project.sessions.isEmpty })
        #expect(await eventually { await house.vault.leavingCount == 0 })
    }

    @Test func `is not revoked again forever at a server that always rejects the revocation`() async throws {
        let house = try await SupabaseHouse.signedIn()
        for _ in 0..<20 {
            house.project.script(
                "POST /logout local",
                .answer(400, #"{"code":"validation_failed"}"#, [("X-Supabase-Api-Version", "2024-01-01")]))
        }
        _ = try await house.broker.signOut(name)
        for _ in 0..<20 {
            #expect(await eventually { await house.broker.revocations.isIdle })
            house.clock.advance(by: 3_600)
            _ = await house.broker.revocations.runDue()
        }
        #expect(await eventually { await house.vault.leavingCount == 0 })
        #expect(house.project.count("POST /logout local") < 20)
    }
}
