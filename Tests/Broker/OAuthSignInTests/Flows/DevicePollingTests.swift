import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(2))) struct `Sign-ins on another device` {
    @Test func `DEV-02 DEV-05: five seconds lie between an answer and the next question`() async throws {
        let house = try await DeviceHouse()
        house.server.say(["interval": JSON?.none])
        house.server.takeItsTime(3_000)
        house.server.script([.pending, .pending, .yes()])
        let flow = try await house.begin()
        await house.live(flow.id)
        #expect(try await house.status(flow.id) == .completed)
        let pauses = house.server.pauses
        #expect(pauses.count == 3 && pauses.allSatisfy { (5_000...5_100).contains($0) }, "\(pauses)")
    }

    /// The rules of the pauses are those of ``DevicePace``. Here each kind of response is told to it.
    @Test(
        arguments: [
            ([.slowDown, .pending, .slowDownTo(1), .pending, .slowDownTo(40), .yes()], [5, 10, 10, 15, 15, 40]),
            ([.silence, .silence, .status(503), .pending, .pending, .yes()], [5, 10, 20, 40, 5, 5]),
            ([.status(429, retryAfter: 90), .yes()], [5, 90]),
        ] as [([DeviceServer.Answer], [Int])])
    func `DEV-06, DEV-08, CIBA-01: slow_down, silence and Retry-After lengthen the pauses of a device sign-in`(
        answers: [DeviceServer.Answer], seconds: [Int]
    ) async throws {
        let house = try await DeviceHouse()
        house.server.script(answers)
        let flow = try await house.begin()
        await house.live(flow.id)
        #expect(try await house.status(flow.id) == .completed)
        let pauses = house.server.pauses
        let least = seconds.map { $0 * 1_000 }
        #expect(pauses.count == least.count, "\(pauses)")
        #expect(zip(pauses, least).allSatisfy { $0 >= $1 && $0 <= $1 * 5 / 4 + 1_000 }, "\(pauses)")
    }

    @Test(arguments: [
        ("access_denied", 400), ("access_denied", 403), ("authorization_declined", 400), ("expired_token", 400),
        ("invalid_grant", 400), ("invalid_client", 401), ("bad_device_code", 400), ("surprise", 400),
    ])
    func `DEV-07, DEV-10, CIBA-03: any other error ends the questions`(_ code: String, _ status: Int) async throws {
        let house = try await DeviceHouse()
        house.server.script([.pending, .refusal(code, status)])
        let flow = try await house.begin()
        await house.live(flow.id)
        switch (code, try await house.status(flow.id)) {
        case ("access_denied", .failed(.accessDenied)), ("authorization_declined", .failed(.accessDenied)): break
        case ("expired_token", .expired(.flowExpired)): break
        case (_, .failed(.provider(.refused(code, _)))): break
        case (_, let status): Issue.record("\(status)")
        }
        for _ in 0..<20 { house.clock.advance(by: 60) }
        #expect(house.server.questions.count == 2)
        // Nobody asks for another code unasked.
        #expect(house.server.asked.count == 1)
    }

    @Test func `DEV-09: nothing is asked after the code's end`() async throws {
        let house = try await DeviceHouse()
        house.server.say(["expires_in": 12])
        let flow = try await house.begin()
        #expect(flow.expiresAt == flow.startedAt + .seconds(12))
        await house.live(flow.id, questions: 1)
        // The second question is the last: then only the flow's deadline is waited for.
        #expect(await house.wakeNext())
        #expect(await eventually { house.server.questions.count == 2 })
        for _ in 0..<30 {
            house.clock.advance(by: 1)
            await Task.yield()
        }
        #expect(await eventually { await !house.broker.flowRegistry.isPending(flow.id) })
        guard case .expired(.flowExpired(let reason)) = try await house.status(flow.id) else { throw Unexpected() }
        #expect(reason.holds("WDJB-MJHT") && reason.holds("https://id.example/device"))
        #expect(house.server.questions.count == 2)
    }

    @Test func `the caller's own bound ends it sooner`() async throws {
        let house = try await DeviceHouse()
        let flow = try await house.begin(timeout: 7)
        #expect(flow.expiresAt == flow.startedAt + .seconds(7))
        await house.live(flow.id)
        guard case .expired = try await house.status(flow.id) else { throw Unexpected() }
        #expect(house.server.questions.count == 1)
    }

    @Test func `DEV-15: after a suspend there is one question, and then the usual pause`() async throws {
        let house = try await DeviceHouse { $0.flowTimeout = .seconds(900) }
        let flow = try await house.begin()
        await house.live(flow.id, questions: 1)
        #expect(await house.settles(flow.id))
        house.clock.advance(by: 600)
        #expect(await eventually { house.server.questions.count == 2 })
        #expect(await house.settles(flow.id))
        await house.live(flow.id, questions: 3)
        #expect(house.server.questions.count == 3)
        #expect(house.server.pauses.last ?? 0 >= 5_000)
    }

    @Test func `a question that is on its way when time runs out is waited for`() async throws {
        for saysYes in [true, false] {
            let house = try await DeviceHouse()
            house.server.say(["expires_in": 8])
            house.server.script([saysYes ? .yes() : .pending])
            house.server.hold()
            let flow = try await house.begin()
            #expect(await house.settles(flow.id))
            house.clock.advance(by: 6)
            #expect(await eventually { house.server.arrivals == 1 })
            house.clock.advance(by: 10)
            for _ in 0..<50 { await Task.yield() }
            #expect(try await house.status(flow.id) == .pending)
            house.server.release()
            #expect(await eventually { await !house.broker.flowRegistry.isPending(flow.id) })
            switch try await house.status(flow.id) {
            case .completed: #expect(saysYes)
            case .expired: #expect(!saysYes)
            case let status: Issue.record("\(status)")
            }
        }
    }

    @Test func `wall clocks that are set change nothing`() async throws {
        let house = try await DeviceHouse()
        house.server.script([.pending, .pending, .yes()])
        let flow = try await house.begin()
        await house.live(flow.id, questions: 1)
        house.clock.setWall(by: 86_400)
        await house.live(flow.id, questions: 2)
        house.clock.setWall(by: -400_000)
        await house.live(flow.id)
        #expect(house.server.pauses.map { $0 / 1_000 } == [5, 5, 5])
    }
}
