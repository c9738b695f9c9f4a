import BrokerCore
import DeepLinks
import LocalHTTP
import RingbackBase
import Synchronization
import Testing

@testable import APIServer
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `Links for apps on the socket` {
    private func house() async throws -> APIHouse {
        let house = try await APIHouse()
        var account = try APIHouse.account("coin")
        account.redirectURI = "swisscoin://auth-callback"
        try await house.configure([try APIHouse.account("work"), account])
        await house.links.configure([LinkScheme(name: "notes", hasCommand: true, takesURL: true)])
        return house
    }

    private func listen(_ house: APIHouse, _ scheme: String) async throws -> AsyncStream<[UInt8]>.Iterator {
        let answer = await house.ask("GET", "/v1/deep-links?scheme=\(scheme)")
        #expect(answer.status == 200 && answer.response.fields["Content-Type"] == "text/event-stream")
        #expect(answer.response.fields["Cache-Control"] == "no-store")
        guard case .stream(let stream) = answer.response.body else { throw Unexpected() }
        var pieces = stream.makeAsyncIterator()
        #expect(await pieces.next() == Array(": listening\n\n".utf8))
        return pieces
    }

    @Test func `a link is accepted, told to the app, and acknowledged`() async throws {
        let house = try await house()
        var app = try await listen(house, "swisscoin")
        let accepted = await house.deliver("swisscoin://pay/7?amount=1")
        #expect(accepted.status == 202)
        let id = try #require(accepted["deep_link"]?["id"]?.string)
        #expect(accepted["deep_link"] == ["id": .string(id), "scheme": "swisscoin", "heard": true])
        let event = try #require(try StreamEvent.all(in: await app.next(), on: "/v1/deep-links").first)
        #expect(event.name == "deep_link" && event.id == id)
        #expect(
            event.data == [
                "id": .string(id), "scheme": "swisscoin", "url": "swisscoin://pay/7?amount=1", "at": 1_800_000_000,
            ])
        for _ in 0..<2 {
            let taken = await house.ask("POST", "/v1/deep-links/\(id)/ack")
            #expect(taken.status == 200 && taken["acknowledged"] == true)
        }
    }

    @Test func `an unacknowledged link is told to the next listener, and the former one is told so`() async throws {
        let house = try await house()
        #expect(await house.deliver("notes://one")["deep_link"]?["heard"] == false)
        #expect(await eventually { house.started.all == ["notes notes://one"] })
        var former = try await listen(house, "NOTES")
        #expect(
            try StreamEvent.all(in: await former.next(), on: "/v1/deep-links").map(\.data).map { $0["url"] } == [
                "notes://one"
            ])
        var next = try await listen(house, "notes")
        let last = try StreamEvent.all(in: await former.next(), on: "/v1/deep-links")
        #expect(last.map(\.name) == ["listener_replaced"] && last.first?.data["scheme"] == "notes")
        #expect(await former.next() == nil)
        #expect(
            try StreamEvent.all(in: await next.next(), on: "/v1/deep-links").map(\.data).map { $0["url"] } == [
                "notes://one"
            ])
        let audit = await house.ask("GET", "/v1/audit")["entries"]?.array ?? []
        let replaced = try #require(audit.first { $0["event"] == "listener_replaced" })
        #expect(replaced["scheme"] == "notes" && replaced["pid"] == 4_711 && replaced["former_pid"] == 4_711)
        #expect(audit.contains { $0["event"] == "application_started" })
        #expect(audit.contains { $0["route"] == "GET /v1/deep-links" && $0["operation"] == "deep_link" })
        #expect(!(audit.map(\.text).joined().contains("://one")))
    }

    @Test(arguments: [
        "swisscoin://auth-callback?x=1", "SwissCoin://AUTH-CALLBACK/", "swisscoin://x?code=c&flow=k",
        "notes://x?code=c&state=s", "notes://x#access_token=canary", "notes://x?id%5Ftoken=canary",
        "notes://x#a=b&refresh_token=canary",
    ])
    func `a callback is none for an app, pending flow or not`(url: String) async throws {
        let house = try await house()
        var app = try await listen(house, String(url.prefix { $0 != ":" }))
        #expect(await house.deliver(url).code == "invalid_callback")
        await house.ask("POST", "/v1/accounts/coin/sign-in", "{}")
        let refused = await house.deliver(url)
        #expect(refused.status == 400 && refused.code == "invalid_callback")
        #expect(!refused.text.contains("canary"))
        #expect(await house.deliver("\(url.prefix { $0 != ":" })://a-link").status == 202)
        #expect(
            try StreamEvent.all(in: await app.next(), on: "/v1/deep-links").map(\.data).map {
                $0["url"]?.string?.contains("a-link")
            } == [
                true
            ])
    }

    @Test func `a callback of a scheme finishes its sign-in as before`() async throws {
        let house = try await house()
        let flow = try await house.signIn("coin")
        #expect(flow["status"] == "completed")
        #expect(await house.deliver("other://x").code == "invalid_callback")
        #expect(await house.deliver("other://x")["detail"]?.string?.contains("[schemes.\"other\"]") == true)
    }

    @Test func `events tell the scheme and nothing else`() async throws {
        let house = try await house()
        guard case .stream(let stream) = await house.ask("GET", "/v1/events").response.body else { throw Unexpected() }
        var pieces = stream.makeAsyncIterator()
        _ = await pieces.next()
        _ = await house.deliver("notes://canary?x=canary")
        let bytes = await pieces.next()
        #expect(!String(decoding: bytes ?? [], as: UTF8.self).contains("canary"))
        let event = try #require(try StreamEvent.all(in: bytes).first)
        #expect(event.name == "deep_link" && event.id != nil)
        #expect(event.data == ["scheme": "notes", "at": 1_800_000_000])
        for path in ["/v1/status", "/v1/metrics", "/v1/audit"] {
            #expect(!(await house.ask("GET", path).text.contains("canary")), "\(path)")
        }
    }

    @Test func `what is asked wrongly is said`() async throws {
        let house = try await house()
        #expect(await house.ask("GET", "/v1/deep-links").code == "validation_failed")
        #expect(await house.ask("GET", "/v1/deep-links?scheme=other").code == "not_found")
        #expect(await house.ask("POST", "/v1/deep-links/7/ack").code == "not_found")
        #expect(await house.ask("POST", "/v1/deep-links/x/ack").code == "not_found")
        #expect(await house.ask("POST", "/v1/deep-links").code == "method_not_allowed")
    }

    @Test func `a scheme that is removed ends its stream, and who stops reading is forgotten`() async throws {
        let house = try await house()
        var app = try await listen(house, "notes")
        await house.links.configure([])
        #expect(try StreamEvent.all(in: await app.next(), on: "/v1/deep-links").map(\.name) == ["dropped"])
        #expect(await app.next() == nil)
        func leave() async throws { _ = try await listen(house, "swisscoin") }
        try await leave()
        #expect(await house.deliver("swisscoin://x")["deep_link"]?["heard"] == false)
    }
}

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
