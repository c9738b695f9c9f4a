import BrokerCore
import RingbackBase
import Synchronization
import Testing

@testable import APIServer
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `What a person is told of a callback` {
    private func deliver(_ house: APIHouse, _ url: String, isTold: JSON = true) async -> APIHouse.Answer {
        await house.ask("POST", "/v1/callbacks", (["url": .string(url), "notify": isTold] as JSON).text)
    }

    private func callback(_ house: APIHouse) async throws -> String {
        let flow = await house.ask("POST", "/v1/accounts/work/sign-in")
        return try house.provider.consent(try #require(flow["authorization_url"]?.string))
    }

    @Test func `is that it worked, and the answer says whether they see it`() async throws {
        let house = try await APIHouse()
        let answer = await deliver(house, try await callback(house))
        #expect(answer.status == 200 && answer["flow"]?["status"] == "completed" && answer["notified"] == true)
        #expect(house.told.all == ["completed work nil"])
        house.told.isShown.withLock { $0 = false }
        #expect(await deliver(house, try await callback(house))["notified"] == false)
    }

    @Test func `is the sentence for people where it failed`() async throws {
        let house = try await APIHouse()
        // The code is sent once more after a failure that may pass.
        for _ in 0..<2 { house.provider.answerNext(.init(status: 500)) }
        let answer = await deliver(house, try await callback(house))
        #expect(answer["flow"]?["status"] == "failed" && answer["notified"] == true)
        #expect(house.told.all == ["failed work Service temporarily unavailable. Please try again later."])
    }

    @Test func `is that a link is of no use, without a name`() async throws {
        let house = try await APIHouse()
        let url = try await callback(house)
        #expect(await deliver(house, url + "&state=x")["notified"] == true)
        #expect(await deliver(house, url, isTold: false).status == 200)
        house.clock.advance(by: 10)
        let late = await deliver(house, url)
        #expect(late.status == 410 && late["notified"] == true)
        #expect(await deliver(house, "nobody:x")["notified"] == true)
        #expect(await deliver(house, "swisscoin://x", isTold: "yes").code == "validation_failed")
        #expect(house.told.all == ["ignored nil nil", "ended nil nil", "ignored nil nil"])
    }

    @Test func `is nothing where nobody asked for it`() async throws {
        let house = try await APIHouse()
        let answer = await deliver(house, try await callback(house), isTold: false)
        #expect(answer.status == 200 && answer["notified"] == nil)
        #expect(await deliver(house, "http://127.0.0.1:4711/x?state=1&code=2", isTold: false)["notified"] == nil)
        #expect(await deliver(house, "x", isTold: "yes").code == "validation_failed")
        #expect(house.told.all == [])
    }
}
