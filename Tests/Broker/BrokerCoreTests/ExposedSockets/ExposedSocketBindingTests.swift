import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `A restricted socket and the account that it was made for`: ExposedSocketSuite {
    let house: ExposedSocketHouse

    init() throws { house = try ExposedSocketHouse() }

    @Test func `an account that becomes another one under its name takes its sockets with it`() async throws {
        let first = sessionManager()
        try await first.add(order("one"))
        let early = first
        bindings.set("https://other.example")
        await early.configure([])
        #expect(sockets.open.isEmpty)
        #expect(await early.missing.map(\.reason) == [.accountChanged])
        #expect(told.all.last == "closed one account_changed")
        // For good: nor does it come back with the old one.
        bindings.set("https://id.example")
        let second = sessionManager()
        await second.restore()
        #expect(sockets.open.isEmpty)
        try await second.add(order("one"))
        await second.closeAll()
        bindings.set("https://id.example", "another client")
        let third = sessionManager()
        await third.restore()
        #expect(sockets.open.isEmpty)
        #expect(await third.missing.map(\.reason) == [.accountChanged])
        // The note is taken away.
        try await third.revoke("one")
        #expect(await third.missing.isEmpty)
    }

    @Test func `an account that goes and comes back as it was keeps them; one that comes back as another does not`()
        async throws
    {
        let sessionManager = sessionManager()
        try await sessionManager.add(order("one"))
        bindings.set(nil)
        await sessionManager.configure([])
        #expect(sockets.open == ["one"])
        bindings.set("https://id.example")
        await sessionManager.configure([])
        #expect(sockets.open == ["one"] && sockets.opened == 1)
        bindings.set(nil)
        await sessionManager.configure([])
        bindings.set("https://other.example")
        await sessionManager.configure([])
        #expect(sockets.open.isEmpty)
    }

    @Test func `a table shows what the configuration means by the name, to connections of its own, for no longer`()
        async throws
    {
        let sessionManager = sessionManager()
        await sessionManager.configure([(order("one", 60), "f:1")])
        clock.advance(by: 20)
        bindings.set("https://other.example")
        await sessionManager.configure([(order("one", 60), "f:1")])
        #expect(sockets.open == ["one"] && sockets.opened == 2)
        #expect(told.all.suffix(2) == ["closed one configuration", "opened one"])
        #expect(await sessionManager.find("one")?.expiry?.remaining(at: clock.bootInstant) == .seconds(40))
    }

    @Test func `nothing is shown of an account that is not there`() async throws {
        bindings.set(nil)
        let sessionManager = sessionManager()
        guard
            case .accountNotFound? = await error({ () throws(BrokerError) in try await sessionManager.add(order("one"))
            })
        else { throw Unexpected() }
        #expect(sockets.opened == 0)
    }

    @Test func `what cannot be opened at a start is tried at the next one, or taken back`() async throws {
        let first = sessionManager()
        try await first.add(order("one"))
        try await first.add(order("two"))
        await first.closeAll()
        sockets.refuse("one")
        let second = sessionManager()
        await second.restore()
        #expect(await second.missing.map(\.reason) == [.failed])
        // What is saved then still has it.
        try await second.revoke("two")
        await second.closeAll()
        sockets.refuse("")
        let third = sessionManager()
        await third.restore()
        #expect(sockets.open == ["one"])
        await third.closeAll()
        sockets.refuse("one")
        let fourth = sessionManager()
        await fourth.restore()
        try await fourth.revoke("one")
        sockets.refuse("")
        await self.sessionManager().restore()
        #expect(sockets.open.isEmpty)
    }
}
