import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

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
        let again = house.rebirth()
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
        _ = await error { try await again.session(House.name, SessionQuery()) }
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
            await error { try await house.broker.events(of: unknown, after: nil).initial }
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

@Suite(.timeLimit(.minutes(1))) struct `What the records are told` {
    @Test func `comes in order`() async throws {
        let house = try await House.signedIn()
        house.clock.advance(by: 3_600)
        house.provider.script(.token, .status(503))
        #expect(await house.failure() != nil)
        house.clock.advance(by: 600)
        _ = try await house.token()
        try await house.signIn(as: "bob", switching: true)
        try await house.broker.lockVault()
        try await house.broker.unlockVault(passphrase: nil)
        try await house.broker.rekeyVault(to: .keyFile, passphrase: nil)
        _ = try await house.token()
        house.provider.script(.revocation, .status(503))
        _ = try await house.broker.signOut(House.name)
        try await house.signIn()
        house.clock.advance(by: 3_600)
        house.provider.script(.token, .invalidGrant)
        #expect(await house.failure() == .sessionExpired(House.name))
        #expect(
            house.facts.names == [
                "vaultOpened", "signInStarted", "sessionOpened", "signInEnded", "refreshStarted", "refreshFailed",
                "refreshStarted", "refreshSucceeded", "signInStarted", "sessionOpened", "signInEnded", "vaultLocked",
                "vaultOpened", "vaultRekeyed", "sessionClosed", "revocationPostponed", "signInStarted", "sessionOpened",
                "signInEnded", "refreshStarted", "sessionEnded",
            ])
    }

    @Test func `names who came and who went`() async throws {
        let house = try await House.signedIn()
        try await house.signIn(as: "bob", switching: true)
        _ = try await house.broker.signOut(House.name)
        var told: [String] = []
        for fact in house.facts.all {
            switch fact {
            case .sessionOpened(_, let subject, let replacing): told.append("\(subject ?? "?") for \(replacing as Any)")
            case .sessionClosed(_, let subject): told.append("\(subject ?? "?") left")
            default: break
            }
        }
        #expect(told.count == 3)
        #expect(told.first == "alice for nil")
        #expect(told[1].hasPrefix("bob for") && told[1].contains("alice"))
        #expect(told.last == "bob left")
    }

    @Test func `every sign-in that starts ends once, however it ends`() async throws {
        let house = try await House()
        // Completed, failed, declined by the user, cancelled, expired, cancelled by a reload.
        try await house.signIn()
        // The code is sent once more after a failure that may pass.
        house.provider.script(.token, .status(500), .status(500))
        try await house.signIn()
        let denied = try await house.broker.signIn(House.name, SignInRequest()).flow
        let state = try #require(denied.authorizationURL.split(separator: "&").first { $0.contains("state=") })
        _ = await house.broker.receive(
            "\(denied.redirectURI)?error=access_denied&iss=https%3A%2F%2Fid.example&\(state.drop { $0 != "s" })")
        let cancelled = try await house.broker.signIn(House.name, SignInRequest()).flow
        _ = try await house.broker.cancel(cancelled.id, isForAll: true)
        let late = try await house.broker.signIn(House.name, SignInRequest()).flow
        house.clock.advance(by: 700)
        #expect(
            await house.broker.receive(try house.provider.consent(late.authorizationURL)) == .expired(flow: late.id))
        _ = try await house.broker.signIn(House.name, SignInRequest()).flow
        await house.broker.configure([])
        let outcomes = house.facts.all.compactMap { fact -> BrokerFact.Outcome? in
            if case .signInEnded(_, _, let outcome, _, _, _) = fact { outcome } else { nil }
        }
        #expect(outcomes == [.completed, .failed, .failed, .cancelled, .expired, .cancelled])
        #expect(
            house.facts.all.contains { fact in
                if case .signInEnded(_, .browser, .completed, _, _, endsElsewhere: true) = fact { true } else { false }
            })
        #expect(house.facts.names.count { $0 == "signInStarted" } == outcomes.count)
    }

    @Test func `every refresh that starts ends, and nothing ends that did not start`() async throws {
        let house = try await House.signedIn()
        let turns: [FakeProvider.Turn] = [
            .status(503), .fail(.unreachable(host: "h", reason: "r")), .status(200, "{}"), .status(429),
            .setting("access_token", nil), .setting("token_type", "DPoP"), .status(400, #"{"error":"invalid_client"}"#),
        ]
        for turn in turns {
            house.clock.advance(by: 7_200)
            house.provider.script(.token, turn)
            _ = await house.failure()
        }
        // The discovery fails before there is anything to be started.
        house.clock.advance(by: 7_200)
        for _ in 0..<2 { house.provider.script(.metadata, .status(503)) }
        _ = await house.failure()
        var isRunning = false
        for name in house.facts.names where name.hasPrefix("refresh") {
            #expect(isRunning == (name != "refreshStarted"))
            isRunning = name == "refreshStarted"
        }
        #expect(!isRunning)
    }

    @Test func `holds no secret, even if a provider repeats one in its own words`() async throws {
        let house = try await House.expired()
        let echoes: [FakeProvider.Turn] = [
            .status(400, #"{"error":"invalid_request","error_description":"refresh-2 is not good"}"#),
            .status(400, #"{"error":"refresh-2"}"#),
            .status(503, #"{"error":"temporarily_unavailable","error_description":"refresh-2"}"#),
        ]
        for turn in echoes {
            house.provider.script(.token, turn)
            _ = await house.refreshFailure(isForced: true)
            house.clock.advance(by: 700)
        }
        house.provider.script(.revocation, .status(400, #"{"error":"x","error_description":"refresh-2"}"#))
        _ = try await house.broker.signOut(House.name)
        for fact in house.facts.all {
            var text = String(describing: fact)
            dump(fact, to: &text)
            for secret in ["refresh-", "access-2", "code-", "eyJ"] { #expect(!text.contains(secret), "\(fact)") }
        }
        let view = try await house.view
        #expect(!String(describing: view.error).contains("refresh-2"))
    }
}
