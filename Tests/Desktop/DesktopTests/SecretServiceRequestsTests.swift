import Glibc
import RingbackBase
import Testing

@testable import Desktop

@Suite(.timeLimit(.minutes(2))) struct `The keyring through the helper` {
    private let bus: PrivateBus
    private let helper: InnerHelper
    private let key = Secret(bytes: [UInt8](0..<32))

    init() throws {
        bus = try PrivateBus()
        helper = try InnerHelper(
            places: .init(session: bus.address, system: bus.address), commands: ["mail": ["/bin/echo", "now"]])
    }

    @Test func `keeps, reads and deletes a key, and says what the keyring says`() async throws {
        let connection = helper.connection
        let reason = "no Secret Service is on the session bus"
        await #expect(throws: HelperError.secretService(.unavailable(reason: reason))) {
            try await connection.isKeyringLocked()
        }
        await #expect(throws: HelperError.secretService(.unavailable(reason: reason))) {
            try await connection.readKey(id: "k1")
        }
        let fake = try bus.fake("secrets")
        #expect(try await connection.isKeyringLocked() == false)
        try await connection.createKey(id: "k1", key: key)
        #expect(try await connection.readKey(id: "k1") == key)
        try fake.order("lock")
        #expect(try await connection.isKeyringLocked())
        await #expect(throws: HelperError.secretService(.locked)) { try await connection.readKey(id: "k1") }
        try fake.order("prompt no")
        await #expect(throws: HelperError.secretService(.dismissed)) {
            try await connection.readKey(id: "k1", mayPrompt: true)
        }
        try fake.order("prompt yes")
        #expect(try await connection.readKey(id: "k1", mayPrompt: true) == key)
        try await connection.deleteKey(id: "k1")
        await #expect(throws: HelperError.secretService(.notFound)) { try await connection.readKey(id: "k1") }
    }

    @Test func `refuses a key that is too large or has no name`() async throws {
        let connection = helper.connection
        for length in [0, 1_025] {
            await #expect(throws: HelperError.secretService(.failed(reason: "a secret has 1 to 1024 bytes"))) {
                try await connection.createKey(id: "k1", key: Secret(bytes: [UInt8](repeating: 1, count: length)))
            }
        }
        await #expect(throws: HelperError.secretService(.failed(reason: "not an identifier of a key"))) {
            try await connection.readKey(id: "k1/../k2")
        }
    }

    @Test func `lets commands run while a question is open`() async throws {
        let fake = try bus.fake("secrets")
        try fake.order("lock")
        try fake.order("prompt never")
        let (connection, key) = (helper.connection, key)
        let question = Task { try await connection.createKey(id: "k1", key: key, mayPrompt: true) }
        try fake.waitFor("asked")
        #expect(try await connection.clientSecret(account: "mail").revealed() == "now")
        #expect(try await connection.isKeyringLocked())
        question.cancel()
        await #expect(throws: HelperError.cancelled) { try await question.value }
        // Ends the conversation in the helper as well.
        fake.end()
    }

    @Test func `answers many at once`() async throws {
        let fake = try bus.fake("secrets")
        let connection = helper.connection
        try await connection.createKey(id: "k1", key: key)
        let key = key
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 { group.addTask { try await connection.readKey(id: "k1") == key } }
            for try await isRight in group { #expect(isRight) }
        }
        withExtendedLifetime(fake) {}
    }
}

@Suite(.timeLimit(.minutes(2))) struct `The helper's events` {
    private static let own = "/org/freedesktop/login1/session/_31"

    @Test func `tell of the keyring and of the screen, each to who listens`() async throws {
        let bus = try PrivateBus()
        let login = try bus.fake("login1")
        let helper = try InnerHelper(places: .init(session: bus.address, system: bus.address))
        var screen = helper.connection.events(.screenLocked).makeAsyncIterator()
        try login.waitFor("hint asked")
        try login.order("signal \(Self.own)")
        #expect(await screen.next() == .screenLocked)

        var keyring = helper.connection.events(.secretServiceChanged).makeAsyncIterator()
        #expect(await keyring.next() == .secretServiceChanged)
        let secrets = try bus.fake("secrets")
        #expect(await keyring.next() == .secretServiceChanged)
        try secrets.order("lock")
        #expect(await keyring.next() == .secretServiceChanged)
        try login.order("hint \(Self.own)")
        #expect(await screen.next() == .screenLocked)
    }

    @Test func `end with the connection`() async throws {
        var connection: HelperConnection? = try HelperConnection.start(executable: "/bin/cat", arguments: ["/dev/null"])
        var events = try #require(connection?.events(.screenLocked)).makeAsyncIterator()
        connection = nil
        #expect(await events.next() == nil)
    }
}
