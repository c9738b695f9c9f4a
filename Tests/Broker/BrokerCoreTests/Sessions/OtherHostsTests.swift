import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite struct `A session that other hosts share` {
    private static let slot = House.account().slot

    private func theirs(
        _ house: House, refreshToken: String = "theirs", accessToken: String = "their access", for key: TokenKey = .own
    ) async throws -> Secret {
        var session = try #require(await house.broker.sessionManager.lanes[House.name]?.state.session)
        session.refreshToken = Secret(refreshToken)
        session.unvalidated = nil
        let expiry = Deadline(
            at: WallInstant(seconds: house.clock.now + 3_600), boot: house.clock.bootInstant + .seconds(3_600))
        session.tokens[key] = AccessToken(
            value: Secret(accessToken), type: "Bearer", scope: nil, expiry: expiry, lifetime: .seconds(3_600))
        return SessionRecord.encode(session, bootID: "this boot")
    }

    private func entry(_ house: House) async throws -> VaultEntry { VaultEntry(text: try await theirs(house)) }

    private func stream(_ house: House) async throws -> EventSubscription {
        try await house.broker.events(of: nil, after: nil).live
    }

    @Test func `what another host refreshed is served, and the provider is not asked`() async throws {
        let house = try await House.expired()
        await house.vault.answer(.changed(try await entry(house)))
        #expect(try await house.token() == "their access")
        #expect(house.refreshCount == 0)
        #expect(try await house.view.error == nil)
    }

    @Test func `a session that another host has signed out is signed out here`() async throws {
        let house = try await House.expired()
        await house.vault.answer(.changed(nil))
        #expect(await house.failure() == .signInRequired(House.name))
        #expect(house.refreshCount == 0)
        #expect(try await house.view.state == .unauthenticated)
    }

    @Test func `fifty callers wait for another host's refresh, which is one question to the vault`() async throws {
        let house = try await House.expired()
        await house.vault.answer(.wait(.seconds(60)), .changed(try await entry(house)))
        let callers = (0..<50).map { _ in Task { try await house.token() } }
        #expect(
            await eventually {
                await house.broker.sessionManager.lanes[House.name]?.state.renewal.running.values
                    .first?.waiterCount == 50
            })
        await house.vault.change(Self.slot, to: try await theirs(house))
        await house.broker.sessionManager.changedElsewhere(Self.slot)
        for caller in callers { #expect(try await caller.value == "their access") }
        #expect(house.refreshCount == 0)
    }

    @Test(arguments: [true, false])
    func `a token for fewer scopes that another host got is served, and the provider is not asked`(
        isWaitedFor: Bool
    ) async throws {
        let house = try await House.signedIn()
        let query = SessionQuery { $0.key = TokenKey(scopes: ["email"]) }
        let key = query.key
        let theirs = try await theirs(house, accessToken: "their narrow access", for: key)
        await house.vault.answer(isWaitedFor ? .wait(.seconds(1)) : .changed(VaultEntry(text: theirs)))
        let caller = Task { [query] in try await house.broker.session(House.name, query).token.value.revealed() }
        if isWaitedFor {
            #expect(await eventually { await house.vault.answersLeft == 0 })
            await house.vault.change(Self.slot, to: theirs)
            await house.broker.sessionManager.changedElsewhere(Self.slot)
        }
        #expect(try await caller.value == "their narrow access")
        #expect(house.refreshCount == 0)
    }

    @Test func `a change that comes while the vault is being asked ends the wait that it answers`() async throws {
        let house = try await House.expired()
        await house.vault.answer(.wait(.seconds(60)))
        await house.vault.hold()
        let caller = Task { try await house.token() }
        #expect(await eventually { await house.vault.answersLeft == 0 })
        await house.vault.change(Self.slot, to: try await theirs(house))
        await house.broker.sessionManager.changedElsewhere(Self.slot)
        await house.vault.release()
        #expect(try await caller.value == "their access")
        #expect(house.refreshCount == 0)
    }

    @Test func `a refresh that waits for another host asks again when the wait is over`() async throws {
        let house = try await House.expired()
        await house.vault.answer(.wait(.seconds(20)), .wait(.seconds(20)))
        let caller = Task { try await house.token() }
        for _ in 0..<2 {
            #expect(await eventually { await house.broker.sessionManager.schedule.tasks[.resume(House.name)] != nil })
            #expect(house.refreshCount == 0)
            house.clock.advance(by: 20)
            _ = await house.broker.sessionManager.runDueTasks()
        }
        #expect(try await caller.value == "access-3")
        #expect(house.refreshCount == 1)
    }

    @Test func `a sign-out need not wait for another host's refresh`() async throws {
        let house = try await House.expired()
        await house.vault.answer(.wait(.seconds(60)))
        let caller = Task { try await house.token() }
        #expect(await eventually { await house.broker.sessionManager.schedule.tasks[.resume(House.name)] != nil })
        #expect(try await house.broker.signOut(House.name).hadSession)
        await house.broker.sessionManager.resume(House.name)
        await #expect(throws: BrokerError.signInRequired(House.name)) { try await caller.value }
    }

    @Test func `a long wait is an error, and the token that is held is served while it is valid`() async throws {
        let house = try await House.signedIn()
        house.clock.advance(by: 3_570)
        await house.vault.answer(.wait(.seconds(600)))
        #expect(try await house.token() == "access-2")
        let error = BrokerError.vaultUnreachable(.session(.heldElsewhere(House.name, wait: .seconds(600))))
        #expect(try await house.view.error == error)
        house.clock.advance(by: 40)
        // The wait is not over: nobody is asked.
        #expect(
            await house.failure()
                == .vaultUnreachable(.session(.heldElsewhere(House.name, wait: .seconds(560))), retryAfter: 560))
        #expect(house.refreshCount == 0)
        house.clock.advance(by: 600)
        #expect(try await house.token() == "access-3")
        #expect(try await house.view.error == nil)
    }

    @Test func `a provider that is known not to rotate is asked while the database is away`() async throws {
        let house = try await House()
        house.provider.behave { $0.rotates = false }
        try await house.signIn()
        let former = try await house.token()
        _ = try await house.broker.refresh(House.name, isForced: true)
        await house.vault.failAnnouncing(with: .unreachable(.databaseAway(.timedOut)))
        house.clock.advance(by: 3_600)
        #expect(try await house.token() != former)
        #expect(try await house.view.error == nil)
    }

    @Test func `a database that is away is an error that ends by itself, and the session is kept`() async throws {
        let house = try await House.expired()
        let away = Reason.vault(.unreachable(.databaseAway(.timedOut)))
        await house.vault.failAnnouncing(with: .unreachable(.databaseAway(.timedOut)))
        #expect(await house.failure() == .vaultUnreachable(away))
        // During back-off a caller is told how long that lasts.
        guard case .vaultUnreachable(away, retryAfter: .some(let seconds)) = await house.failure()
        else { throw Unexpected() }
        #expect((1...30).contains(seconds))
        #expect(try await house.view.state == .authenticated)
        #expect(house.refreshCount == 0)
        await house.vault.failAnnouncing(with: nil)
        house.clock.advance(by: 31)
        #expect(try await house.token() == "access-3")
        #expect(try await house.view.error == nil)
    }

    @Test func `a record that does not open with the hosts' key does not count as one that is away`() {
        #expect(BrokerError(.unreachable(.olderRow)) == .vaultUnreachable(.vault(.unreachable(.olderRow))))
        #expect(BrokerError(.unreachable(.foreignRow)) == .vaultFailed(.vault(.unreachable(.foreignRow))))
    }

    @Test func `refresh tokens of other hosts are presented in the order in which they came`() async throws {
        let house = try await House.expired()
        let (newer, older) = (
            try await theirs(house, refreshToken: "newer"), try await theirs(house, refreshToken: "old")
        )
        await house.vault.answer(.granted(.unshared, newer: [newer], older: [older]))
        #expect(try await house.token() == "access-3")
        #expect(house.provider.presented == ["newer", "refresh-2"])
    }

    @Test func `refresh token is not presented once the lease is over`() async throws {
        let house = try await House.expired()
        await house.vault.endLease(afterRequests: 0)
        #expect(await house.failure() == .vaultUnreachable(.vault(.unreachable(.leaseOver))))
        #expect(house.provider.presented == [])
        await house.vault.endLease(afterRequests: nil)
        house.clock.advance(by: 31)
        #expect(try await house.token() == "access-3")
    }

    @Test func `client secret in the form is not tried once the lease is over`() async throws {
        let secret = Account.SecretSource { () throws(BrokerError) in Secret("hush-secret") }
        let house = try await House { $0.oauth.clientSecret = secret }
        try await house.signIn()
        house.clock.advance(by: 3_600)
        house.provider.script(.token, .status(401, #"{"error":"invalid_client"}"#))
        await house.vault.endLease(afterRequests: 1)
        #expect(await house.failure() == .vaultUnreachable(.vault(.unreachable(.leaseOver))))
        #expect(house.refreshCount == 1)
    }

    @Test func `an end is not believed while another host may have received a newer token`() async throws {
        let house = try await House.expired()
        await house.vault.setProvesEnds(false)
        house.provider.script(.token, .invalidGrant)
        let error = BrokerError.vaultUnreachable(.session(.endUncertain(House.name)))
        #expect(await house.failure() == error)
        let view = try await house.view
        #expect(view.state == .authenticated && view.error == error)
        // It is asked again later, and another host's change ends the doubt.
        await house.vault.change(Self.slot, to: try await theirs(house))
        await house.broker.sessionManager.changedElsewhere(Self.slot)
        await house.runDueTasks()
        #expect(try await house.token() == "their access")
        #expect(try await house.view.error == nil)
    }

    @Test func `an end that cannot be recorded removes no session that another host has stored`() async throws {
        let house = try await House.expired()
        house.provider.script(.token, .invalidGrant)
        await house.vault.failOnceStoring(with: .unreachable(.changedElsewhere))
        _ = await house.failure()
        #expect(await !house.vault.log.contains("remove"))
    }

    @Test func `a session that could not be stored gives way to what another host has stored`() async throws {
        let house = try await House.expired()
        await house.vault.failStoring(with: .unreachable(.changedElsewhere))
        _ = try await house.token()
        #expect(await house.broker.sessionManager.lanes[House.name]?.state.isUnsaved == true)
        await house.vault.failStoring(with: nil)
        let count = await house.vault.log.count
        await house.vault.change(Self.slot, to: try await theirs(house))
        await house.broker.sessionManager.changedElsewhere(Self.slot)
        #expect(await eventually { (try? await house.token()) == "their access" })
        house.clock.advance(by: 10)
        await house.runDueTasks()
        // It is not written over the other host's.
        let more = await house.vault.log.dropFirst(count).joined(separator: ", ")
        #expect(more == "")
    }

    @Test func `an end that is not proven at first is believed later`() async throws {
        let house = try await House.expired()
        await house.vault.setProvesEnds(false)
        house.provider.script(.token, .invalidGrant, .invalidGrant)
        _ = await house.failure()
        await house.vault.setProvesEnds(true)
        house.clock.advance(by: 301)
        #expect(await house.failure() == .sessionExpired(House.name))
        #expect(try await house.view.state == .unauthenticated)
    }

    @Test func `other hosts need not wait for a request that was not sent`() async throws {
        let house = try await House.expired()
        house.provider.script(.token, .fail(.unreachable(host: "id.example", reason: "the connection broke")), .unsent)
        _ = await house.failure()
        #expect(await !house.vault.log.contains("settle"))
        house.clock.advance(by: 600)
        _ = await house.failure()
        #expect(await house.vault.log.contains("settle"))
        #expect(house.provider.presented == ["refresh-2", "refresh-2"])
    }

    @Test func `an end is recorded with the host whose request nobody has the response of`() async throws {
        let house = try await House.expired()
        let unheard = EndProof.UnheardRequest(host: "laptop", age: .seconds(640))
        await house.vault.setUnheard(unheard)
        house.provider.script(.token, .invalidGrant)
        #expect(await house.failure() == .sessionExpired(House.name))
        let recorded = house.facts.all.compactMap { fact -> EndProof.UnheardRequest? in
            if case .sessionEnded(_, _, let unheard, _) = fact { unheard } else { nil }
        }
        #expect(recorded == [unheard])
    }

    @Test func `a change on another host is taken up and told to listeners`() async throws {
        let house = try await House.signedIn()
        let keeping = Task { await house.broker.keepFresh() }
        defer { keeping.cancel() }
        let stream = try await stream(house)
        await house.vault.change(Self.slot, to: try await theirs(house))
        var kinds: [BrokerEvent.Kind] = []
        while !kinds.contains(.tokenRefreshed) {
            guard case .events(let events) = await stream.next(within: .seconds(30)) else { break }
            kinds += events.map(\.1.kind)
        }
        #expect(kinds.contains(.tokenRefreshed))
        #expect(try await house.token() == "their access")
        await house.vault.change(Self.slot, to: nil)
        while !kinds.contains(.signedOut) {
            guard case .events(let events) = await stream.next(within: .seconds(30)) else { break }
            kinds += events.map(\.1.kind)
        }
        #expect(kinds.contains(.signedOut))
        #expect(try await house.view.state == .unauthenticated)
        #expect(house.refreshCount == 0)
    }
}
