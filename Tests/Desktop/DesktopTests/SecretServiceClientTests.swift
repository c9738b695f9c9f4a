import Foundation
import RingbackBase
import Testing

@testable import Desktop

@Suite(.timeLimit(.minutes(2))) struct `The Secret Service's client` {
    private let bus: PrivateBus
    private let key = Secret(bytes: [UInt8](0..<32))

    init() throws {
        bus = try PrivateBus()
    }

    private func client(promptTimeout: Duration = .seconds(20)) -> SecretServiceClient {
        SecretServiceClient(place: .session(address: bus.address), promptTimeout: promptTimeout)
    }

    @Test(arguments: [[], ["plain"]]) func `keeps, reads and deletes a key`(modes: [String]) throws {
        let fake = try modes.isEmpty ? bus.fake("secrets") : bus.fake("secrets", "plain")
        #expect(try !client().isLocked())
        try client().create(id: "k1", secret: key)
        #expect(try fake.waitFor("kept") == "kept Ringback vault key")
        #expect(try client().read(id: "k1") == key)
        #expect(throws: SecretServiceError.notFound) { try client().read(id: "k2") }
        try client().delete(id: "k1")
        #expect(throws: SecretServiceError.notFound) { try client().read(id: "k1") }
        #expect(throws: SecretServiceError.notFound) { try client().delete(id: "k1") }
    }

    @Test func `shows no secret to who watches the bus`() throws {
        let fake = try bus.fake("secrets")
        let secret = Secret("a canary in the coal mine, thirty")
        let monitor = try Program("dbus-monitor", "--address", bus.address, "--binary")
        // The bus takes its name from a connection that becomes a monitor.
        try monitor.waitForOutput(with: "NameLost")
        try client().create(id: "k1", secret: secret)
        #expect(try client().read(id: "k1") == secret)
        fake.end()
        bus.end()
        let seen = Data(monitor.rest())
        #expect(seen.range(of: Data("GetSecret".utf8)) != nil)
        #expect(seen.range(of: Data(secret.revealedBytes())) == nil)
        #expect(seen.range(of: Data(Data(secret.revealedBytes()).base64EncodedString().prefix(40).utf8)) == nil)
    }

    @Test func `does not replace a key`() throws {
        let fake = try bus.fake("secrets")
        defer { fake.end() }
        try client().create(id: "k1", secret: key)
        let reason = "the keyring has a key with this identifier already"
        #expect(throws: SecretServiceError.failed(reason: reason)) {
            try client().create(id: "k1", secret: Secret("x"))
        }
        #expect(try client().read(id: "k1") == key)
    }

    @Test func `notices a key that is not kept as it was given`() throws {
        let fake = try bus.fake("secrets")
        try fake.order("garble")
        #expect(throws: SecretServiceError.failed(reason: "the keyring did not store the key unchanged")) {
            try client().create(id: "k1", secret: Secret(bytes: [UInt8](repeating: 0xFF, count: 33)))
        }
        #expect(throws: SecretServiceError.notFound) { try client().read(id: "k1") }
    }

    @Test(arguments: ["", "a/b", "a b", "ä", String(repeating: "x", count: 129)])
    func `refuses what is no identifier`(id: String) throws {
        #expect(throws: SecretServiceError.failed(reason: "not an identifier of a key")) { try client().read(id: id) }
    }

    @Test func `asks nobody unless it may`() throws {
        let fake = try bus.fake("secrets")
        try client().create(id: "k1", secret: key)
        try fake.order("lock")
        #expect(try client().isLocked())
        #expect(throws: SecretServiceError.locked) { try client().read(id: "k1") }
        // The question was not left lying about.
        try fake.waitFor("dismissed")
        #expect(throws: SecretServiceError.locked) { try client().create(id: "k2", secret: key) }
        #expect(throws: SecretServiceError.locked) { try client().delete(id: "k1") }
        try fake.order("unlock")
        #expect(try client().read(id: "k1") == key)
    }

    @Test func `unlocks when the person says yes`() throws {
        let fake = try bus.fake("secrets")
        try client().create(id: "k1", secret: key)
        try fake.order("lock")
        #expect(try client().read(id: "k1", mayPrompt: true) == key)
        try fake.waitFor("asked")
        #expect(try !client().isLocked())
        try fake.order("lock")
        try client().create(id: "k2", secret: key, mayPrompt: true)
        #expect(throws: SecretServiceError.notFound) { try client().read(id: "k3", mayPrompt: true) }
    }

    @Test func `says that the person said no`() throws {
        let fake = try bus.fake("secrets")
        try client().create(id: "k1", secret: key)
        try fake.order("lock")
        try fake.order("prompt no")
        #expect(throws: SecretServiceError.dismissed) { try client().read(id: "k1", mayPrompt: true) }
        #expect(throws: SecretServiceError.dismissed) {
            try client().create(id: "k2", secret: key, mayPrompt: true)
        }
    }

    @Test func `does not wait for ever for an answer`() throws {
        let fake = try bus.fake("secrets")
        try fake.order("lock")
        try fake.order("prompt never")
        #expect(throws: SecretServiceError.failed(reason: "the keyring's prompt was not completed in time")) {
            try client(promptTimeout: .milliseconds(200)).create(id: "k1", secret: key, mayPrompt: true)
        }
        try fake.waitFor("dismissed")
    }

    @Test func `notices that the service died over its question`() async throws {
        let fake = try bus.fake("secrets")
        try fake.order("lock")
        try fake.order("prompt never")
        let (client, key) = (client(), key)
        async let outcome = blocking {
            Result { () throws(SecretServiceError) in try client.create(id: "k1", secret: key, mayPrompt: true) }
        }
        try fake.waitFor("asked")
        fake.end()
        let result = await outcome
        // Whether the bus or its silence tells first is a matter of luck.
        guard case .failure(.unavailable) = result else {
            Issue.record("\(result)")
            return
        }
    }

    @Test func `says that there is no service`() throws {
        let reason = "no Secret Service is on the session bus"
        #expect(throws: SecretServiceError.unavailable(reason: reason)) { try client().isLocked() }
        #expect(throws: SecretServiceError.unavailable(reason: reason)) { try client().read(id: "k1") }
    }

    @Test func `says that there is no bus`() throws {
        let client = SecretServiceClient(place: .session(address: "unix:path=/nonexistent/bus"))
        #expect(throws: SecretServiceError.unavailable(reason: "there is no session bus")) { try client.isLocked() }
    }

    @Test func `says that there is no default keyring`() throws {
        let fake = try bus.fake("secrets")
        try fake.order("forget")
        #expect(throws: SecretServiceError.unavailable(reason: "the Secret Service has no default keyring yet")) {
            try client().isLocked()
        }
    }

    @Test func `does not wait for ever for a service that hangs`() throws {
        let fake = try bus.fake("secrets", "silent")
        defer { fake.end() }
        #expect(throws: SecretServiceError.unavailable(reason: "the Secret Service does not respond")) {
            try client().isLocked()
        }
    }
}
