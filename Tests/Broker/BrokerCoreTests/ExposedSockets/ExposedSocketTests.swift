import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport

@Suite struct `What a restricted socket may show` {
    static func order(
        _ name: String = "ci", ceiling: [String]? = nil, uids: [UInt32] = [], flatpak: String? = nil,
        lifetime: Duration? = nil
    ) -> ExposedSocket.Order {
        ExposedSocket.Order(
            name: name, accounts: [House.named("mail"), House.named("work")], ceiling: ceiling, allowedUIDs: uids,
            flatpak: flatpak, lifetime: lifetime)
    }

    static func exposedSocket(_ ceiling: [String]? = nil, uids: [UInt32] = []) -> ExposedSocket {
        ExposedSocket(
            id: "id", order: order(ceiling: ceiling, uids: uids), origin: .call, createdAt: WallInstant(seconds: 0),
            expiry: nil)
    }

    private func token(_ scope: String?, isStated: Bool) -> AccessToken {
        AccessToken(value: Secret("t"), type: "Bearer", scope: scope, isScopeStated: isStated)
    }

    @Test func `equal wishes are equal, however they are written`() {
        let one = ExposedSocket.Order(
            name: "a", accounts: [House.named("b"), House.named("a"), House.named("b")], ceiling: ["y", "x", "y"],
            allowedUIDs: [3, 2, 3])
        let other = ExposedSocket.Order(
            name: "a", accounts: [House.named("a"), House.named("b")], ceiling: ["x", "y"], allowedUIDs: [2, 3])
        #expect(one == other)
    }

    @Test(arguments: [
        ("", "name"), ("A", "name"), (".", "name"), ("..", "name"), ("a/b", "name"), ("-a", "name"), ("a b", "name"),
        (String(repeating: "a", count: 65), "name"),
    ])
    func `a name is no path, and no other text`(name: String, member: String) {
        #expect(Self.order(name).mistake?.member == member)
    }

    @Test func `what cannot be is named`() {
        #expect(Self.order().mistake == nil)
        #expect(ExposedSocket.Order(name: "a", accounts: []).mistake?.member == "accounts")
        #expect(Self.order(ceiling: []).mistake?.member == "scope")
        #expect(Self.order(ceiling: ["a b"]).mistake?.member == "scope")
        #expect(Self.order(ceiling: ["a\"b"]).mistake?.member == "scope")
        #expect(Self.order(ceiling: (0...64).map { "s\($0)" }).mistake?.member == "scope")
        #expect(Self.order(uids: [65_534]).mistake?.member == "allow_uids")
        #expect(Self.order(uids: [.max]).mistake?.member == "allow_uids")
        #expect(Self.order(uids: Array(1...17)).mistake?.member == "allow_uids")
        #expect(Self.order(lifetime: .zero).mistake?.member == "ttl")
        #expect(Self.order(lifetime: .seconds(31_536_001)).mistake?.member == "ttl")
        #expect(Self.order(uids: [1], flatpak: "org.example.App").mistake?.member == "allow_uids")
    }

    @Test(arguments: ["org.example.App", "org.example.App-2", "a.b", "io.github._7x.App"])
    func `an app's id is taken`(id: String) { #expect(Self.order(flatpak: id).mistake == nil) }

    @Test(arguments: ["", "app", "..", "a..b", "a.", "/a.b", "a.b/c", "a.7b", "-a.b", "a.b c", "a.b\0"])
    func `what is none is refused, since it would be a directory`(id: String) {
        #expect(Self.order(flatpak: id).mistake?.member == "flatpak")
    }

    @Test func `without a ceiling any token is within it`() {
        #expect(Self.exposedSocket().permits(token(nil, isStated: false)))
        #expect(Self.exposedSocket().permits(token("anything", isStated: true)))
    }

    @Test func `with one, the provider's own word counts`() {
        let exposedSocket = Self.exposedSocket(["openid", "email"])
        #expect(exposedSocket.permits(token("openid", isStated: true)))
        #expect(exposedSocket.permits(token("email openid", isStated: true)))
        #expect(!exposedSocket.permits(token("openid email mail", isStated: true)))
        #expect(!exposedSocket.permits(token("OPENID", isStated: true)))
        // What was asked for is no proof of what was given.
        #expect(!exposedSocket.permits(token("openid", isStated: false)))
        #expect(!exposedSocket.permits(token(nil, isStated: true)))
        #expect(!exposedSocket.permits(token("", isStated: true)))
    }

    @Test func `the policy of a restricted socket has a list of what is allowed, and no list of what is not`() {
        let policy = Policy(owner: 1_000, showing: Self.exposedSocket(["openid"], uids: [100_999]))
        func allows(
            uid: UInt32 = 1_000, _ operation: PolicyOperation = .token, _ account: String? = "mail",
            _ key: TokenKey? = nil
        ) -> Bool {
            policy.decide(
                PolicyPeer(uid: uid, pid: 1), account: account, operation: operation, token: key
            ).isAllowed
        }
        #expect(allows() && allows(uid: 0) && allows(uid: 100_999) && allows(.readState, nil))
        #expect(!allows(uid: 65_534) && !allows(uid: 1_001))
        #expect(!allows(.token, "other"))
        for operation in PolicyOperation.allCases where ![.readState, .token].contains(operation) {
            #expect(!allows(operation), "\(operation)")
        }
        #expect(allows(.token, "mail", TokenKey(scopes: ["openid"])))
        #expect(!allows(.token, "mail", TokenKey(scopes: ["openid", "email"])))
        #expect(!allows(.token, "mail", TokenKey(audience: "x")))
        #expect(!allows(.token, "mail", TokenKey(scopes: ["openid"], resource: "https://x.example")))
        #expect(policy.name == "restricted" && Policy(owner: 1).name == "same-uid")
    }

    @Test func `the daemon's own socket admits its owner and root, until it is asked anew`() {
        let policy = Policy(owner: 1_000)
        #expect(policy.admits(uid: 1_000) && policy.admits(uid: 0) && !policy.admits(uid: 1_001))
        for (uid, isAllowed) in [(1_000, true), (0, true), (1_001, false), (65_534, false)] as [(UInt32, Bool)] {
            let decision = policy.decide(PolicyPeer(uid: uid, pid: 1), account: "x", operation: .manage)
            #expect(decision.isAllowed == isAllowed && decision.coversEverything)
            #expect(decision.generation == policy.generation)
        }
        let before = policy.generation
        policy.invalidate()
        #expect(policy.generation > before)
    }
}

@Suite struct `Restricted sockets at rest` {
    private static let binding = SessionBinding(provider: "https://id.example", clientID: "c")

    @Test func `come back as they were`() throws {
        let clock = TestClock()
        let exposedSockets = [
            ExposedSocket(
                id: "a",
                order: ExposedSocket.Order(
                    name: "one", accounts: [House.name], ceiling: ["x", "y"], allowedUIDs: [7, 100_999],
                    lifetime: .seconds(60)), origin: .call, createdAt: WallInstant(seconds: 5),
                expiry: Deadline(in: .seconds(60), by: clock.clock), bindings: [House.name: Self.binding]),
            ExposedSocket(
                id: "b", order: ExposedSocket.Order(name: "two", accounts: [House.name], flatpak: "org.example.App"),
                origin: .call, createdAt: WallInstant(seconds: 6), expiry: nil),
            ExposedSocket(
                id: "c",
                order: ExposedSocket.Order(
                    name: "mcp", accounts: [House.name], mcp: .init(tools: ["echo"], methods: ["tools/call"])),
                origin: .call, createdAt: WallInstant(seconds: 7), expiry: nil),
        ]
        var revoked = ExposedSocketTable(ExposedSocket.Order(name: "three", accounts: [House.name]), by: clock.clock)
        revoked.ending = .revoked
        let ending = ExposedSocketTable(
            ExposedSocket.Order(name: "four", accounts: [House.name], lifetime: .seconds(9)), by: clock.clock)
        let record = ExposedSocketRecord(exposedSockets: exposedSockets, tables: ["three": revoked, "four": ending])
        let bytes = record.encode(bootID: clock.clock.bootID)
        #expect(ExposedSocketRecord(reading: bytes, by: clock.clock) == record)
    }

    @Test(arguments: [true, false]) func `none lives longer than its whole life`(isSameBoot: Bool) throws {
        let clock = TestClock()
        let far = Deadline(in: .seconds(1_000_000), by: clock.clock)
        let exposedSocket = ExposedSocket(
            id: "a", order: ExposedSocket.Order(name: "one", accounts: [House.name], lifetime: .seconds(60)),
            origin: .call, createdAt: WallInstant(seconds: 5), expiry: far, bindings: [House.name: Self.binding])
        let bytes = ExposedSocketRecord(exposedSockets: [exposedSocket]).encode(
            bootID: isSameBoot ? clock.clock.bootID : "another")
        let record = try #require(ExposedSocketRecord(reading: bytes, by: clock.clock))
        #expect(record.exposedSockets.map(\.expiry) == [Deadline(in: .seconds(60), by: clock.clock)])
    }

    @Test func `a table of which nothing is to be remembered is not written`() {
        let clock = TestClock()
        let plain = ExposedSocketTable(ExposedSocket.Order(name: "one", accounts: [House.name]), by: clock.clock)
        let bytes = ExposedSocketRecord(tables: ["one": plain]).encode(bootID: "")
        #expect(ExposedSocketRecord(reading: bytes, by: clock.clock) == ExposedSocketRecord())
    }

    @Test func `what an older version wrote is read`() throws {
        let text =
            #"{"version":1,"boot_id":"","exposed_sockets":[{"id":"a","name":"x","accounts":["work"],"created_at":1}]}"#
        let record = try #require(ExposedSocketRecord(reading: Array(text.utf8), by: TestClock().clock))
        #expect(record.exposedSockets.map(\.name) == ["x"] && record.exposedSockets[0].bindings.isEmpty)
    }

    @Test(arguments: [
        #"{}"#, #"{"methods":["tools/call"],"tools":"echo"}"#, #"{"methods":["tools/call"],"tools":[1]}"#,
        #"{"methods":[""]}"#, #"{"methods":"all"}"#, "true",
    ])
    func `what may be called and cannot be read is no permission`(mcp: String) throws {
        let socket = #"{"id":"a","name":"x","accounts":["work"],"created_at":1,"mcp":\#(mcp)}"#
        let text = #"{"version":1,"boot_id":"","exposed_sockets":[\#(socket)]}"#
        #expect(ExposedSocketRecord(reading: Array(text.utf8), by: TestClock().clock) == nil)
    }

    @Test func `two of a name are none`() {
        let clock = TestClock()
        let one = ExposedSocket(
            id: "a", order: ExposedSocket.Order(name: "one", accounts: [House.name]), origin: .call,
            createdAt: WallInstant(seconds: 5), expiry: nil)
        let bytes = ExposedSocketRecord(exposedSockets: [one, one]).encode(bootID: "")
        #expect(ExposedSocketRecord(reading: bytes, by: clock.clock) == nil)
    }

    @Test func `a table's words count, not how they are written`() {
        let table = ExposedSocketTable(
            ExposedSocket.Order(name: "a", accounts: [House.named("x"), House.named("y")], ceiling: ["b", "a"]),
            by: TestClock().clock)
        func says(_ order: ExposedSocket.Order) -> Bool { table.matches(order) }
        #expect(
            says(ExposedSocket.Order(name: "a", accounts: [House.named("y"), House.named("x")], ceiling: ["a", "b"])))
        #expect(!says(ExposedSocket.Order(name: "a", accounts: [House.named("x"), House.named("y")], ceiling: ["a"])))
        #expect(!says(ExposedSocket.Order(name: "a", accounts: [House.named("x"), House.named("y")])))
        #expect(
            !says(
                ExposedSocket.Order(
                    name: "a", accounts: [House.named("x"), House.named("y")], ceiling: ["a", "b"],
                    lifetime: .seconds(5))))
    }
}
