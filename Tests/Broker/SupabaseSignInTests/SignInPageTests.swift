import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `What is kept of a sign-in page` {
    private struct Kept: Sendable {
        weak var session: PageSession?
    }

    @Test func `has two words that differ`() {
        for _ in 0..<2_000 {
            let words = PageWords.random().split(separator: " ")
            #expect(
                words.count == 2 && words[0] != words[1] && words.allSatisfy { PageWords.list.contains(String($0)) })
        }
    }

    @Test func `goes with its flow, after ten minutes`() async throws {
        let house = try await SupabaseHouse()
        var pages: [Kept] = []
        for _ in 0..<20 {
            house.project.script(
                "GET /settings",
                .answer(200, #"{"external":{"email":true}}"#, [("Content-Type", "application/json")]))
            let flow = try #require(try await house.begin("page"))
            // A start address: its ticket refers to the page too.
            _ = try await house.broker.signInContext.broker.openURL(of: flow.id)
            let awaited = await house.broker.flowRegistry.entries[flow.id]?.flow.awaited as? PageFlow
            let session = try #require(awaited?.session)
            _ = session.ticket(to: try #require(await house.broker.flowRegistry.entries[flow.id]?.flow))
            pages.append(Kept(session: session))
            _ = try await house.broker.cancel(flow.id, isForAll: true)
        }
        #expect(await eventually { house.doors.closed.count == house.doors.opened })
        house.clock.advance(by: 601)
        _ = await house.broker.flows()
        let kept = pages
        #expect(await eventually { kept.allSatisfy { $0.session == nil } })
    }
}
