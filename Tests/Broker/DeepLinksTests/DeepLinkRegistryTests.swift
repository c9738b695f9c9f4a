import BrokerCore
import DeepLinks
import RingbackBase
import Testing

@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `Links for apps` {
    private static let silent = LinkScheme(name: "notes", hasCommand: false, takesURL: false)
    private static let starting = LinkScheme(name: "notes", hasCommand: true, takesURL: false)
    private static let taking = LinkScheme(name: "notes", hasCommand: true, takesURL: true)

    @Test func `a link goes to the app that listens, in order, with growing names`() async throws {
        let registry = try await Desk([Self.silent])
        let app = try #require(await registry.registry.listen(to: "notes", peer: nil))
        #expect(await app.next(within: .zero) == .quiet)
        let first = try await registry.bring("notes://one", hasListener: true)
        let second = try await registry.bring("NOTES://two?x=1#y", hasListener: true)
        #expect(second > first)
        #expect(await app.urls() == ["notes://one", "NOTES://two?x=1#y"])
        #expect(await app.next(within: .zero) == .quiet)
        #expect(registry.started.isEmpty)
    }

    @Test func `a scheme is configured by a redirect URI as by a table`() async throws {
        let registry = try await Desk()
        let app = try #require(await registry.registry.listen(to: "SwissCoin", peer: nil))
        try await registry.bring("swisscoin://pay/7", hasListener: true)
        #expect(await app.urls() == ["swisscoin://pay/7"])
        #expect(await registry.registry.listen(to: "notes", peer: nil) == nil)
        let reception = await registry.registry.receive("notes://one")
        guard case .refused(let reason) = reception else { throw Unexpected() }
        #expect(reason.contains("[schemes.\"notes\"]"))
    }

    @Test(arguments: [
        "swisscoin://auth-callback?code=c", "swisscoin://Auth-Callback/", "swisscoin://x#access_token=t",
        "https://example.org", "no URL", "swisscoin://x?code=c&flow=anything", "swisscoin://caf\u{E9}",
    ])
    func `what may be of a sign-in is the broker's`(text: String) async throws {
        let registry = try await Desk([Self.silent])
        let app = try #require(await registry.registry.listen(to: "swisscoin", peer: nil))
        #expect(await registry.registry.receive(text) == .callback)
        #expect(await app.next(within: .zero) == .quiet)
    }

    @Test func `the state of a flow keeps a URL from every app, wherever and whenever it arrives`() async throws {
        let registry = try await Desk([Self.silent])
        let name = try #require(AccountName(Desk.account))
        let flow = try await registry.broker.signIn(name, SignInRequest()).flow
        let state = try #require(flow.authorizationURL.split(separator: "state=").last?.prefix { $0 != "&" })
        #expect(await registry.registry.receive("notes://elsewhere?error=access_denied&state=\(state)") == .callback)
        _ = try await registry.broker.cancel(flow.id, isForAll: true)
        #expect(await registry.registry.receive("notes://elsewhere?error=access_denied&state=\(state)") == .callback)
        try await registry.bring("notes://elsewhere?error=access_denied&state=other", hasListener: false)
    }

    @Test func `a flow of an earlier configuration keeps its redirect URI from apps`() async throws {
        let registry = try await Desk()
        let name = try #require(AccountName(Desk.account))
        _ = try await registry.broker.signIn(name, SignInRequest())
        try await registry.configure([LinkScheme(name: "swisscoin", hasCommand: false, takesURL: false)])
        #expect(await registry.registry.receive("swisscoin://auth-callback?code=c") == .callback)
    }

    @Test func `an event tells the scheme and nothing else of a link`() async throws {
        let registry = try await Desk([Self.silent])
        let live = try await registry.broker.events(of: nil, after: nil).live
        try await registry.bring("notes://one", hasListener: false)
        guard case .events(let events) = await live.next(within: .seconds(30)) else { throw Unexpected() }
        let event = try #require(events.first { $0.event.kind == .deepLink }).event
        #expect(event.scheme == "notes" && event.account == nil && event.state == nil)
        var text = ""
        dump(event, to: &text)
        #expect(!text.contains("://"))
    }

    @Test func `a link prints nothing of itself`() async throws {
        let registry = try await Desk([Self.silent])
        var text = ""
        dump(await registry.registry.receive("notes://canary"), to: &text)
        #expect(text.contains("notes") && !text.contains("canary"))
    }

    @Test func `the newest listener gets the links, and the former one hears it last`() async throws {
        let registry = try await Desk([Self.silent])
        let former = try #require(await registry.registry.listen(to: "notes", peer: PolicyPeer(uid: 1, pid: 10)))
        let link = try await registry.bring("notes://one", hasListener: true)
        #expect(await former.urls() == ["notes://one"])
        let live = try await registry.broker.events(of: nil, after: nil).live
        let newest = try #require(await registry.registry.listen(to: "notes", peer: PolicyPeer(uid: 1, pid: 11)))
        #expect(await former.next(within: .seconds(30)) == .replaced)
        #expect(await former.next(within: .seconds(30)) == .replaced)
        // What nobody acknowledged is given again; what came later goes to one alone.
        #expect(await newest.urls() == ["notes://one"])
        #expect(registry.registry.acknowledge(link))
        try await registry.bring("notes://two", hasListener: true)
        #expect(await newest.urls() == ["notes://two"])
        guard case .linkListenerReplaced("notes", let program?, let before?)? = registry.facts.first else {
            throw Unexpected()
        }
        #expect(program.pid == 11 && before.pid == 10 && registry.facts.count == 1)
        guard case .events(let events) = await live.next(within: .seconds(30)) else { throw Unexpected() }
        #expect(events.map(\.event.kind).contains(.listenerReplaced))
        // Its end is no end of the other one.
        former.stop()
        try await registry.bring("notes://three", hasListener: true)
        #expect(await newest.urls() == ["notes://three"])
    }

    @Test func `a wait ends when a link comes, when another listens, and when its caller goes`() async throws {
        let registry = try await Desk([Self.silent])
        let app = try #require(await registry.registry.listen(to: "notes", peer: nil))
        async let next = app.urls()
        let link = try await registry.bring("notes://one", hasListener: true)
        #expect(await next == ["notes://one"])
        #expect(registry.registry.acknowledge(link))
        let waiting = Task { await app.next(within: .seconds(300)) }
        _ = await registry.registry.listen(to: "notes", peer: nil)
        #expect(await waiting.value == .replaced)
        let last = try #require(await registry.registry.listen(to: "notes", peer: nil))
        let leaving = Task { await last.next(within: .seconds(300)) }
        leaving.cancel()
        #expect(await leaving.value == .cancelled)
    }

    @Test func `acknowledged is acknowledged, however often; what never was is not`() async throws {
        let registry = try await Desk([Self.silent])
        let link = try await registry.bring("notes://one", hasListener: false)
        let other = try await registry.bring("notes://two", hasListener: false)
        #expect(registry.registry.acknowledge(link) && registry.registry.acknowledge(link))
        #expect(!registry.registry.acknowledge(link &+ 1_000))
        let app = try #require(await registry.registry.listen(to: "notes", peer: nil))
        #expect(await app.urls() == ["notes://two"])
        #expect(registry.registry.acknowledge(other))
    }

    @Test func `a scheme that is configured no more ends its listener and drops its links`() async throws {
        let registry = try await Desk([Self.silent])
        let app = try #require(await registry.registry.listen(to: "notes", peer: nil))
        try await registry.bring("notes://one", hasListener: true)
        try await registry.configure([])
        #expect(await app.next(within: .seconds(30)) == .removed)
        try await registry.configure([Self.silent])
        let back = try #require(await registry.registry.listen(to: "notes", peer: nil))
        #expect(await back.next(within: .zero) == .quiet)
        // A reload that leaves the scheme alone leaves its listener alone.
        try await registry.configure([Self.silent])
        try await registry.bring("notes://two", hasListener: true)
        #expect(await back.urls() == ["notes://two"])
    }

    @Test func `without a listener the program is started, and the link waits for it`() async throws {
        let registry = try await Desk([Self.starting])
        try await registry.bring("notes://one", hasListener: false)
        #expect(await eventually { registry.started == ["notes notes://one"] })
        let app = try #require(await registry.registry.listen(to: "notes", peer: nil))
        #expect(await app.urls() == ["notes://one"])
        #expect(
            await eventually {
                registry.facts.contains { if case .applicationStarted("notes") = $0 { true } else { false } }
            })
    }

    @Test func `it is started at most once in ten seconds, and then for what came meanwhile`() async throws {
        let registry = try await Desk([Self.starting])
        for number in 0..<5 { try await registry.bring("notes://\(number)", hasListener: false) }
        #expect(await eventually { registry.started == ["notes notes://0"] })
        registry.clock.advance(milliseconds: 9_999)
        try await registry.bring("notes://5", hasListener: false)
        registry.clock.advance(milliseconds: 1)
        // One start is enough for all that wait: the program listens.
        #expect(await eventually { registry.started == ["notes notes://0", "notes notes://1"] })
        registry.clock.advance(milliseconds: 30_000)
        let app = try #require(await registry.registry.listen(to: "notes", peer: nil))
        #expect(await app.urls()?.count == 6)
        #expect(registry.started.count == 2)
    }

    @Test func `a program that is given the link is started for each of them, ten seconds apart`() async throws {
        let registry = try await Desk([Self.taking])
        for number in 0..<3 { try await registry.bring("notes://\(number)", hasListener: false) }
        for number in 1...3 {
            #expect(await eventually { registry.started.count == number })
            registry.clock.advance(milliseconds: 10_000)
        }
        #expect(registry.started == (0..<3).map { "notes notes://\($0)" })
    }

    @Test func `a listener that comes in time spares the start`() async throws {
        let registry = try await Desk([Self.taking])
        try await registry.bring("notes://0", hasListener: false)
        try await registry.bring("notes://1", hasListener: false)
        #expect(await eventually { registry.started.count == 1 })
        let app = try #require(await registry.registry.listen(to: "notes", peer: nil))
        #expect(await app.urls()?.count == 2)
        registry.clock.advance(milliseconds: 20_000)
        try await registry.bring("notes://2", hasListener: true)
        #expect(registry.started.count == 1)
    }

    @Test func `an app that goes away with a fresh link is started again, with an old one it is not`() async throws {
        let registry = try await Desk([Self.starting])
        let app = try #require(await registry.registry.listen(to: "notes", peer: nil))
        try await registry.bring("notes://old", hasListener: true)
        registry.clock.advance(milliseconds: 5_001)
        app.stop()
        let next = try #require(await registry.registry.listen(to: "notes", peer: nil))
        #expect(registry.started.isEmpty)
        try await registry.bring("notes://fresh", hasListener: true)
        next.stop()
        #expect(await eventually { registry.started == ["notes notes://fresh"] })
    }

    @Test func `a link waits a minute, and sixteen of them at most`() async throws {
        let registry = try await Desk([Self.silent])
        for number in 0..<20 { try await registry.bring("notes://\(number)", hasListener: false) }
        let app = try #require(await registry.registry.listen(to: "notes", peer: nil))
        #expect(await app.urls() == (4..<20).map { "notes://\($0)" })
        app.stop()
        registry.clock.advance(milliseconds: 59_999)
        let late = try await registry.bring("notes://late", hasListener: false)
        registry.clock.advance(milliseconds: 1)
        let second = try #require(await registry.registry.listen(to: "notes", peer: nil))
        #expect(await second.urls() == ["notes://late"])
        registry.clock.advance(milliseconds: 60_000)
        let third = try #require(await registry.registry.listen(to: "notes", peer: nil))
        #expect(await third.next(within: .zero) == .quiet)
        #expect(!registry.registry.acknowledge(late))
    }

    @Test func `a program that cannot be started is told of, and the link waits`() async throws {
        let registry = try await Desk([Self.starting])
        registry.failToStart("there is no such program")
        try await registry.bring("notes://one", hasListener: false)
        #expect(
            await eventually {
                registry.facts.contains { fact in
                    guard case .applicationNotStarted("notes", let reason) = fact else { return false }
                    return reason == "there is no such program"
                }
            })
        let app = try #require(await registry.registry.listen(to: "notes", peer: nil))
        #expect(await app.urls() == ["notes://one"])
    }

    @Test func `a scheme without a command starts nothing`() async throws {
        let registry = try await Desk([Self.silent])
        try await registry.bring("notes://one", hasListener: false)
        try await registry.bring("swisscoin://one", hasListener: false)
        registry.clock.advance(milliseconds: 30_000)
        #expect(registry.started.isEmpty)
    }
}
