import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A pending flow` {
    private let name = House.name

    private func begin(
        _ house: House, _ change: (inout SignInRequest) -> Void = { _ in }
    ) async throws(BrokerError) -> FlowView {
        var request = SignInRequest()
        change(&request)
        return try await house.broker.signIn(name, request).flow
    }

    private func isConflict(_ house: House, _ change: (inout SignInRequest) -> Void) async -> Bool {
        if case .conflict? = await error({ try await begin(house, change) }) {
            true
        } else {
            false
        }
    }

    private func status(_ house: House, _ flow: FlowView) async throws -> FlowView.Status {
        try await house.broker.flow(flow.id).status
    }

    @Test func `gives way after half a minute in which nobody waited for it`() async throws {
        let house = try await House()
        let first = try await begin(house)
        house.clock.advance(by: 29)
        #expect(await isConflict(house) { $0.switchesSubject = true })
        house.clock.advance(by: 1)
        // Nobody's own wish: a program that only wants a token.
        let unasked = await error {
            try await house.broker.signIn(name, SignInRequest(switchesSubject: true), isInterested: false)
        }
        guard case .conflict? = unasked else { throw Unexpected() }
        let second = try await begin(house) { $0.switchesSubject = true }
        #expect(try await status(house, first) == .cancelled)
        #expect(try await status(house, second) == .pending)
        // An equal one joins at any age.
        house.clock.advance(by: 60)
        #expect(try await begin(house) { $0.switchesSubject = true }.id == second.id)
        house.clock.advance(by: 10)
        #expect(await isConflict(house) { _ in })
    }

    @Test func `that somebody waits for stays, and for half a minute after that`() async throws {
        let house = try await House()
        let first = try await begin(house)
        let poll = Task { try await house.broker.flow(first.id, waiting: .seconds(50)) }
        #expect(await eventually { await house.broker.flowRegistry.entries[first.id]?.waiters == 1 })
        house.clock.advance(by: 40)
        #expect(await isConflict(house) { $0.switchesSubject = true })
        poll.cancel()
        _ = await poll.result
        #expect(await eventually { await house.broker.flowRegistry.entries[first.id]?.waiters == 0 })
        #expect(await isConflict(house) { $0.switchesSubject = true })
        house.clock.advance(by: 30)
        _ = try await begin(house) { $0.switchesSubject = true }
        #expect(try await status(house, first) == .cancelled)
    }

    @Test func `stays as long as the program that asked for it listens to events`() async throws {
        let house = try await House()
        let first = try await begin(house) { $0.process = 4_711 }
        let events = try await house.broker.events(of: nil, after: nil, process: 4_711).live
        house.clock.advance(by: 40)
        #expect(await isConflict(house) { $0.switchesSubject = true })
        house.broker.stopListening(events)
        _ = try await begin(house) { $0.switchesSubject = true }
        #expect(try await status(house, first) == .cancelled)
    }

    @Test func `gives way at once to a sign-in that says so, and those who waited hear of it`() async throws {
        let house = try await House()
        let first = try await begin(house)
        let waiting = Task {
            await error { try await house.broker.sessionAfterSignIn(name, SessionQuery()) }
        }
        #expect(await eventually { await house.broker.flowRegistry.entries[first.id]?.waiters == 1 })
        let second = try await begin(house) {
            $0.switchesSubject = true
            $0.replaces = true
        }
        #expect(second.id != first.id)
        guard case .flowCancelled = await waiting.value else { throw Unexpected() }
        #expect(try await status(house, first) == .cancelled)
        // The same sign-in joins, whatever it says.
        let again = try await begin(house) {
            $0.switchesSubject = true
            $0.replaces = true
        }
        #expect(again.id == second.id)
    }

    @Test func `that is still being made gives way too`() async throws {
        let house = try await House()
        house.provider.hold(.metadata)
        let first = Task { await error { try await begin(house) } }
        #expect(await house.provider.arrived(.metadata, 1))
        let second = Task {
            try await begin(house) {
                $0.switchesSubject = true
                $0.replaces = true
            }
        }
        guard case .flowCancelled = await first.value else { throw Unexpected() }
        house.provider.release(.metadata)
        #expect(try await second.value.status == .pending)
        #expect(await house.broker.flows().count { $0.status == .pending } == 1)
    }

    @Test func `that waits for a mail goes on beside another method's, until that has made a session`() async throws {
        let house = try await SupabaseHouse()
        let recovery = try #require(
            try await house.broker.supabase.resetPassword(SupabaseHouse.name, email: SupabaseHouse.alice).flow)
        // One that fails leaves the recovery as it is.
        let wrong = await house.failure("password") { fields in
            fields.email = SupabaseHouse.alice
            fields.password = Secret("another word")
        }
        #expect(wrong != nil)
        #expect(try await house.broker.flow(recovery.id).status == .pending)
        let page = try #require(try await house.begin("browser"))
        #expect(try await house.broker.flow(recovery.id).status == .pending)
        #expect(try await house.broker.account(SupabaseHouse.name).flow?.id == page.id)
        // An equal request joins it, and another mail of the same kind takes its place.
        let again = try await house.broker.supabase.resetPassword(SupabaseHouse.name, email: SupabaseHouse.alice)
        #expect(again.flow?.id == recovery.id && !again.isNew)
        #expect(
            await house.broker.receive(try house.project.consent(page.authorizationURL)) == .completed(flow: page.id))
        #expect(try await house.broker.flow(recovery.id).status == .cancelled)
    }

    @Test func `that waits for a mail gives way to another mail of the same kind`() async throws {
        let house = try await SupabaseHouse()
        let operations = house.broker.supabase
        let first = try #require(
            try await operations.resetPassword(SupabaseHouse.name, email: SupabaseHouse.alice).flow)
        let second = try #require(try await operations.resetPassword(SupabaseHouse.name, email: "b@example.org").flow)
        #expect(try await house.broker.flow(first.id).status == .cancelled)
        #expect(try await house.broker.flow(second.id).status == .pending)
    }

    @Test(arguments: [true, false])
    func `that waits for a mail completes by its code although another has begun`(isCancelled: Bool) async throws {
        let house = try await SupabaseHouse()
        let recovery = try #require(
            try await house.broker.supabase.resetPassword(SupabaseHouse.name, email: SupabaseHouse.alice).flow)
        let page = try #require(try await house.begin("browser"))
        if isCancelled { _ = try await house.broker.cancel(page.id, isForAll: true) }
        let shown = try await house.broker.account(SupabaseHouse.name).flow
        #expect(shown?.id == (isCancelled ? recovery.id : page.id))
        let code = house.project.code(for: SupabaseHouse.alice)
        #expect(try await house.broker.verify(recovery.id, code: Secret(code)).status == .completed)
        #expect(try await house.broker.account(SupabaseHouse.name).state == .authenticated)
    }
}
