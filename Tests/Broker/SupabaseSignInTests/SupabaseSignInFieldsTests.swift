import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A session that is handed in` {
    private let name = SupabaseHouse.name

    private func foreign(_ house: SupabaseHouse, _ email: String = SupabaseHouse.alice) throws -> (Secret, Secret) {
        let now = house.clock.now
        let body = house.project.behave { server in
            let user = server.user(email: email) ?? server.addUser(email: email)
            return server.open(user.id, "password", at: now).body
        }
        return (
            Secret(try #require(body["access_token"]?.string)), Secret(try #require(body["refresh_token"]?.string))
        )
    }

    private func handIn(_ house: SupabaseHouse, _ access: Secret, _ refresh: Secret) async throws(BrokerError) {
        try await house.begin("session") { fields in
            fields.accessToken = access
            fields.refreshToken = refresh
        }
    }

    @Test func `is refreshed at once`() async throws {
        for signature in [SupabaseServer.Signature.es256, .hs256] {
            let house = try await SupabaseHouse()
            house.project.behave { $0.signature = signature }
            let (access, refresh) = try foreign(house)
            try await handIn(house, access, refresh)
            #expect(house.project.presented == [refresh.revealed()])
            #expect(try await house.token() != access.revealed())
            // A secret of the server's cannot be checked here: the server is asked whose the token is.
            #expect(house.project.count("GET /user") == (signature == .hs256 ? 1 : 0))
        }
    }

    @Test func `presents its refresh token only after the vault has made room for the next one`() async throws {
        let house = try await SupabaseHouse()
        let (access, refresh) = try foreign(house)
        await house.vault.failAnnouncing(with: .unwritable(.diskFull))
        guard case .vaultFailed = await error({ try await handIn(house, access, refresh) })
        else { throw Unexpected() }
        #expect(house.project.presented.isEmpty)
        await house.vault.failAnnouncing(with: nil)
        try await handIn(house, access, refresh)
        #expect(house.project.presented == [refresh.revealed()])
        #expect(await !house.vault.isAnnounced)
    }

    @Test func `refresh token of another program is not presented once the lease is over`() async throws {
        let house = try await SupabaseHouse()
        let (access, refresh) = try foreign(house)
        await house.vault.endLease(afterRequests: 0)
        let failure = await error { try await handIn(house, access, refresh) }
        #expect(failure == .vaultUnreachable(.vault(.unreachable(.leaseOver))))
        #expect(house.project.presented.isEmpty)
    }

    @Test func `of another user than the account's is refused before its refresh token is presented`() async throws {
        let house = try await SupabaseHouse()
        let (access, refresh) = try foreign(house)
        try await handIn(house, access, refresh)
        let (others, other) = try foreign(house, "mallory@example.org")
        guard case .conflict = await error({ try await handIn(house, others, other) })
        else { throw Unexpected() }
        #expect(house.project.presented == [refresh.revealed()])
        #expect(await house.refresh() == nil)
    }

    @Test func `may have an access token that has expired, since its signature still tells whose it is`() async throws {
        let house = try await SupabaseHouse()
        let (access, refresh) = try foreign(house)
        house.clock.advance(by: 7_200)
        try await handIn(house, access, refresh)
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `is refreshed before it is checked if it has expired and only the server can check it`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.signature = .hs256 }
        let (access, refresh) = try foreign(house)
        house.clock.advance(by: 7_200)
        try await handIn(house, access, refresh)
        #expect(try await house.view.state == .authenticated)
        // Whose the old one was is not known; whose the new one is, the server says.
        #expect(
            house.project.requests.map(\.kind).filter { $0 != "GET /.well-known/jwks.json" } == [
                "GET /user", FakeSupabase.refresh, "GET /user",
            ])
        #expect(house.project.last("GET /user")?.bearer == (try await house.token()))
    }

    @Test func `is not lost where the server is away for a moment after it rotated the token`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.signature = .hs256 }
        let (access, refresh) = try foreign(house)
        house.clock.advance(by: 7_200)
        house.project.script(
            "GET /user",
            .answer(403, #"{"code":"bad_jwt","message":"No."}"#, [("X-Supabase-Api-Version", "2024-01-01")]),
            .status(503))
        try await handIn(house, access, refresh)
        #expect(try await house.view.state == .authenticated)
        #expect(await house.refresh() == nil)
    }

    @Test func `of another session is not believed after its expiry, and not used before`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.signature = .hs256 }
        let (mine, _) = try foreign(house)
        let (_, other) = try foreign(house)
        // Refused by the server, though its own word is that it lives on.
        house.project.script(
            "GET /user",
            .answer(
                403, #"{"code":"bad_jwt","message":"No."}"#,
                [
                    ("X-Supabase-Api-Version", "2024-01-01")
                ]))
        let early = await error { try await handIn(house, mine, other) }
        #expect(early?.word == "bad_jwt" && house.project.presented.isEmpty)
        house.clock.advance(by: 7_200)
        guard case .invalid(field: "refresh_token", _) = await error({ try await handIn(house, mine, other) })
        else { throw Unexpected() }
        #expect(await house.vault.holdsNothing)
        // It is another program's: nothing of it is ended.
        #expect(house.project.sessions.count == 2)
    }

    @Test func `of another user is refused before its refresh token is used, unless with a switch`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let (access, refresh) = try foreign(house, "mallory@example.org")
        let refusal = await error { try await handIn(house, access, refresh) }
        guard case .conflict = refusal else { throw Unexpected() }
        #expect(house.project.presented.isEmpty)
        #expect(try await house.view.user?["email"] == "alice@example.org")
        try await house.begin("session", switching: true) { fields in
            fields.accessToken = access
            fields.refreshToken = refresh
        }
        #expect(house.project.presented == [refresh.revealed()])
        #expect(try await house.view.user?["email"] == "mallory@example.org")
    }

    @Test func `leaves nothing if its tokens are of two sessions`() async throws {
        let house = try await SupabaseHouse()
        let (mine, _) = try foreign(house)
        for email in [SupabaseHouse.alice, "mallory@example.org"] {
            let (_, other) = try foreign(house, email)
            guard case .invalid(field: "refresh_token", _) = await error({ try await handIn(house, mine, other) })
            else { throw Unexpected() }
        }
        #expect(try await house.view.state == .unauthenticated)
        #expect(await house.vault.sessions.isEmpty)
        #expect(await house.vault.holdsNothing)
    }

    @Test func `leaves nothing if it is forged, of another project or dead`() async throws {
        let house = try await SupabaseHouse()
        let (access, refresh) = try foreign(house)
        let stranger = try FakeSupabase("https://other.supabase.co", clock: house.clock)
        let foreignBody = stranger.behave { server in
            let user = server.addUser(email: SupabaseHouse.alice)
            return server.open(user.id, "password", at: 0).body
        }
        let parts = access.revealed().split(separator: ".")
        for forged in [foreignBody["access_token"]?.string ?? "", "\(parts[0]).\(parts[1]).AAAA", "x", "a.b.c"] {
            #expect(await error { try await handIn(house, Secret(forged), refresh) } != nil)
        }
        #expect(house.project.presented.isEmpty)
        let dead = await error { try await handIn(house, access, Secret("s99-0")) }
        #expect(dead == .sessionExpired(name, word: "refresh_token_not_found"))
        #expect(try await house.view.state == .unauthenticated)
        #expect(await house.vault.holdsNothing)
    }

    @Test func `of another project is not shown to a server that alone could check it`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.signature = .hs256 }
        let stranger = try FakeSupabase("https://other.supabase.co", clock: house.clock)
        let body = stranger.behave { server in
            server.signature = .hs256
            let user = server.addUser(email: SupabaseHouse.alice)
            return server.open(user.id, "password", at: 0).body
        }
        let access = Secret(try #require(body["access_token"]?.string))
        let refresh = Secret(try #require(body["refresh_token"]?.string))
        guard case .invalid(field: "access_token", _) = await error({ try await handIn(house, access, refresh) })
        else { throw Unexpected() }
        #expect(house.project.presented.isEmpty && house.project.count("GET /user") == 0)
        #expect(await house.vault.holdsNothing)
    }
}

extension RecordingVault {
    /// Nothing was stored, and the room that was made is given back.
    fileprivate var holdsNothing: Bool { log.allSatisfy { $0 == "announce" || $0 == "settle" } && !isAnnounced }
}
