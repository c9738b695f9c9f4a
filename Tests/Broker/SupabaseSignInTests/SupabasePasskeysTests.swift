import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A sign-in by a passkey` {
    private static let verify = "POST /passkeys/authentication/verify"

    private func credential(_ id: String = SupabaseHouse.alice) -> JSONObject {
        JSONObject([
            .init("id", .string(id)), .init("response", ["clientDataJSON": "e30", "signature": "AA"]),
        ])
    }

    private func begin(_ house: SupabaseHouse) async throws -> FlowView {
        try #require(try await house.begin("passkey"))
    }

    @Test func `waits for its answer, and no longer than the project does`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await begin(house)
        #expect(flow.waitingFor == .passkey && flow.details.challenge?.options["challenge"] == "YQ")
        #expect(flow.expiresAt == flow.startedAt + .seconds(300) && flow.resendAfter == nil)
        #expect(flow.redirectURI.isEmpty && flow.authorizationURL.isEmpty)
        #expect(house.doors.opened == 0)
        house.clock.advance(by: 299)
        #expect(await house.broker.flowRegistry.isPending(flow.id))
        // Whoever waits for the deadline may begin to wait only now.
        #expect(
            await eventually {
                house.clock.advance(by: 2)
                return await !house.broker.flowRegistry.isPending(flow.id)
            })
        guard case .expired(.flowExpired(let reason)) = try await house.broker.flow(flow.id).status
        else { throw Unexpected() }
        #expect(reason.holds("seconds: 300") && reason.holds("passkey"))
        guard case .flowEnded = await error({ try await house.broker.verify(flow.id, credential: credential()) })
        else { throw Unexpected() }
        #expect(house.project.count(Self.verify) == 0)
    }

    @Test func `is done with the answer, which is asked about once`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await begin(house)
        house.project.hold(Self.verify)
        let first = Task { try await house.broker.verify(flow.id, credential: credential()).status }
        #expect(await house.project.arrived(Self.verify))
        let same = Task { try await house.broker.verify(flow.id, credential: credential()).status }
        guard
            case .conflict = await error({
                try await house.broker.verify(flow.id, credential: credential("bob@example.org"))
            })
        else { throw Unexpected() }
        house.project.release(Self.verify)
        #expect(try await first.value == .completed)
        // The copy is answered too, or came when all was over.
        if case .success(let status) = await same.result { #expect(status == .completed) }
        #expect(house.project.count(Self.verify) == 1)
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `ends with the project's no`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await begin(house)
        let ended = try await house.broker.verify(flow.id, credential: credential("nobody@example.org"))
        guard case .failed(.problem(let problem)) = ended.status else { throw Unexpected() }
        #expect(problem.providerCode == "webauthn_verification_failed" && problem.code == "invalid_credentials")
        // It takes one answer.
        #expect(await error { try await house.broker.verify(flow.id, credential: credential()) } != nil)
        #expect(house.project.count(Self.verify) == 1)
        #expect(try await house.view.state == .unauthenticated)
        #expect(try await house.view.error != nil)
    }

    @Test func `that did not reach the project goes on, until its time is over`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await begin(house)
        house.project.script(Self.verify, .fail(.unreachable(host: "ref.supabase.co", reason: "away")))
        let away = await error {
            try await house.broker.verify(flow.id, credential: credential())
        }
        #expect(away?.isTransient == true)
        #expect(try await house.broker.flow(flow.id).status == .pending)

        house.project.script(Self.verify, .fail(.unreachable(host: "ref.supabase.co", reason: "away")))
        house.project.hold(Self.verify)
        let late = Task {
            await error {
                try await house.broker.verify(flow.id, credential: credential())
            }
        }
        #expect(await house.project.arrived(Self.verify, 2))
        for _ in 0..<31 {
            house.clock.advance(by: 10)
            await Task.yield()
        }
        // What is on its way came in time.
        #expect(try await house.broker.flow(flow.id).status == .pending)
        house.project.release(Self.verify)
        _ = await late.value
        guard case .expired = try await house.broker.flow(flow.id).status else { throw Unexpected() }
    }

    @Test func `as another person changes nothing`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { _ = $0.addUser(email: "bob@example.org") }
        try await house.signIn()
        let before = try await house.held
        let flow = try await begin(house)
        let ended = try await house.broker.verify(flow.id, credential: credential("bob@example.org"))
        guard case .failed(.conflict) = ended.status else { throw Unexpected() }
        #expect(try await house.held == before)
    }
}
