import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `Events` {
    private typealias Line = (id: UInt64, event: BrokerEvent)

    private func drain(_ live: EventSubscription) async -> [Line] {
        if case .events(let lines) = await live.next(within: .zero) { return lines }
        return []
    }

    private func event(_ at: Int, _ account: AccountName = House.name) -> BrokerEvent {
        BrokerEvent(kind: .userUpdated, account: account, state: .authenticated, at: WallInstant(seconds: at))
    }

    @Test func `a stream begins with every account as it is, then tells what happens, in order`() async throws {
        let house = try await House()
        let second = House.named("second")
        await house.broker.configure([House.account(), House.account(second)])
        try await house.signIn()
        let (initial, live) = try await house.broker.events(of: nil, after: nil)
        #expect(initial.map(\.kind) == [.initialSession, .initialSession])
        #expect(initial.map(\.account) == [second, House.name])
        #expect(initial.map(\.state) == [.unauthenticated, .authenticated])
        #expect(initial.map(\.subject) == [nil, "alice"])
        _ = try await house.broker.refresh(House.name, isForced: true)
        house.provider.script(.token, .status(500))
        _ = await house.refreshFailure(isForced: true)
        _ = try await house.signIn(as: "bob")
        _ = try await house.broker.signOut(House.name)
        let lines = await drain(live)
        #expect(lines.map(\.event.kind) == [.tokenRefreshed, .refreshFailed, .signInFailed, .signedOut])
        #expect(lines.map(\.event.state) == [.authenticated, .authenticated, .authenticated, .unauthenticated])
        #expect(lines.map(\.event.error).filter { $0 != nil }.count == 2)
        #expect(lines.map(\.id) == lines.map(\.id).sorted())
        #expect(Set(lines.map(\.id)).count == lines.count)
    }

    @Test func `the end of a session by the provider is told with its reason`() async throws {
        let house = try await House.expired()
        let (_, live) = try await house.broker.events(of: House.name, after: nil)
        house.provider.script(.token, .invalidGrant)
        _ = await house.failure()
        let lines = await drain(live)
        #expect(lines.map(\.event.kind) == [.refreshFailed, .signedOut])
        #expect(lines.last?.event.error == .sessionExpired(House.name))
        #expect(lines.last?.event.subject == "alice")
    }

    @Test func `the beginning waits until the account has left loading, and loading is no news`() async throws {
        let house = try await House.expired()
        let again = Broker(
            vault: house.vault, http: house.network, callbackReceiver: house.doors.callbackReceiver,
            clock: house.clock.clock)
        await house.vault.hold()
        await again.configure([House.account()])
        let beginning = Task { try await again.events(of: nil, after: nil) }
        #expect(try await again.account(House.name).state == .loading)
        await house.vault.release()
        let (initial, live) = try await beginning.value
        #expect(initial.map(\.state) == [.authenticated])
        #expect(await drain(live).isEmpty)
        // What a reload takes away and brings back is.
        await again.configure([])
        await again.configure([House.account()])
        _ = await error { () throws(BrokerError) in try await again.session(House.name, SessionQuery()) }
        #expect(await drain(live).map(\.event.kind).prefix(2) == [.signedOut, .signedIn])
    }

    @Test func `a stream that comes back gets what it missed`() async throws {
        let house = try await House()
        let (_, live) = try await house.broker.events(of: House.name, after: nil)
        try await house.signIn()
        let seen = try #require(await drain(live).last?.id)
        house.broker.stopListening(live)
        _ = try await house.broker.refresh(House.name, isForced: true)
        _ = try await house.broker.signOut(House.name)
        let (initial, back) = try await house.broker.events(of: House.name, after: seen)
        #expect(initial.map(\.kind) == [.initialSession])
        #expect(await drain(back).map(\.event.kind) == [.tokenRefreshed, .signedOut])
        #expect(await drain(live).isEmpty)
        let unknown = House.named("nobody")
        #expect(
            await error { () throws(BrokerError) in try await house.broker.events(of: unknown, after: nil).initial }
                == .accountNotFound("nobody"))
    }

    @Test func `nothing is served or told before the vault has it`() async throws {
        let house = try await House.expired()
        let (_, live) = try await house.broker.events(of: nil, after: nil)
        house.provider.hold(.token)
        let reading = Task { try await house.token() }
        #expect(await house.provider.arrived(.token, 2))
        await house.vault.hold()
        house.provider.release(.token)
        #expect(await eventually { await house.vault.log.last == "store refresh-2 > refresh-3" })
        #expect(house.broker.snapshot.current("work") == nil)
        guard case .quiet = await live.next(within: .zero) else { throw Unexpected() }
        await house.vault.release()
        #expect(try await reading.value == "access-3")
        #expect(await drain(live).map(\.event.kind) == [.tokenRefreshed])
    }

    @Test func `a stream of one account hears nothing of others`() async {
        let bus = EventBus()
        let live = bus.subscribe(to: House.name, after: nil)
        bus.post(event(1, House.named("other")))
        bus.post(event(2))
        #expect(await drain(live).map(\.event.at.seconds) == [2])
    }

    @Test func `a reader that is too slow is told so, after what was kept, and hears no more`() async throws {
        let bus = EventBus()
        let live = bus.subscribe(to: nil, after: nil)
        for number in 0..<600 { bus.post(event(number)) }
        #expect(await drain(live).map(\.event.at.seconds) == Array(0..<512))
        // Nothing may follow a gap as if there were none.
        bus.post(event(600))
        for _ in 0..<2 {
            guard case .overflowed = await live.next(within: .zero) else { throw Unexpected() }
        }
    }

    @Test func `waiting ends by an event, by the bound, or by the reader's going`() async throws {
        let bus = EventBus()
        let live = bus.subscribe(to: nil, after: nil)
        guard case .quiet = await live.next(within: .milliseconds(5)) else { throw Unexpected() }
        let reader = Task { await live.next(within: .seconds(30)) }
        bus.post(event(1))
        guard case .events(let lines) = await reader.value else { throw Unexpected() }
        #expect(lines.map(\.event.at.seconds) == [1])
        let gone = Task { await live.next(within: .seconds(30)) }
        gone.cancel()
        guard case .cancelled = await gone.value else { throw Unexpected() }
    }

    @Test func `identifiers increase across restarts`() async {
        let first = EventBus()
        let before = first.subscribe(to: nil, after: nil)
        first.post(event(1))
        let second = EventBus()
        let after = second.subscribe(to: nil, after: nil)
        second.post(event(2))
        let ids = await (drain(before) + drain(after)).map(\.id)
        #expect(ids.count == 2 && ids[0] < ids[1])
    }
}
