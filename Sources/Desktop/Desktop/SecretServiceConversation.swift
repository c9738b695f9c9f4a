internal import Cryptography
internal import Glibc
internal import RingbackBase

/// One sequence of calls to the Secret Service (interface version 0.2): its steps may prompt the user, and secrets are
/// transferred in one session. Throws ``SecretServiceError`` and ``BusFailure``.
final class SecretServiceConversation {
    private static let root = "/org/freedesktop/secrets"
    /// The object path that stands for "none".
    private static let noObject = "/"
    private let bus: BusConnection
    /// Nil if no prompt may be shown.
    private let promptTimeout: Duration?
    private var transport: SecretTransport?

    /// Throws `absent` if the service is not running and the bus cannot activate it.
    init(_ bus: BusConnection, promptTimeout: Duration?) throws(BusFailure) {
        self.bus = bus
        self.promptTimeout = promptTimeout
        if try bus.hasOwner(SecretServiceClient.name) { return }
        let names = try bus.callBus("ListActivatableNames").readTexts()
        guard names.contains(SecretServiceClient.name) else { throw .absent }
    }

    private func call(
        _ member: String, _ interface: String, at path: String = root, _ arguments: BusValue...,
        isSensitive: Bool = false
    ) throws(BusFailure) -> BusMessage {
        try bus.call(
            member, of: "org.freedesktop.Secret." + interface, at: path, in: SecretServiceClient.name, arguments,
            isSensitive: isSensitive)
    }

    func defaultCollection() throws -> String {
        for alias in ["default", "login"] {
            let path = try call("ReadAlias", "Service", .text(alias)).readPath()
            if path != SecretServiceConversation.noObject { return path }
        }
        throw SecretServiceError.unavailable(reason: "the Secret Service has no default keyring yet")
    }

    func isLocked(_ collection: String) throws(BusFailure) -> Bool {
        try bus.property(
            "Locked", "b", of: "org.freedesktop.Secret.Collection", at: collection, in: SecretServiceClient.name
        ).readBool()
    }

    /// Unlocks a collection or an item, with a prompt if that is needed and allowed.
    func unlock(_ path: String) throws {
        let answer = try call("Unlock", "Service", .array(of: "o", [.path(path)]))
        // Those that were unlocked at once, and the prompt for the others.
        let (unlocked, prompt) = (try answer.readPaths(), try answer.readPath())
        if prompt == SecretServiceConversation.noObject, !unlocked.contains(path) { throw SecretServiceError.locked }
        try follow(prompt)
    }

    func find(_ id: String) throws(BusFailure) -> (path: String, isLocked: Bool)? {
        let answer = try call("SearchItems", "Service", SecretServiceConversation.attributes(id))
        let (unlocked, locked) = (try answer.readPaths(), try answer.readPaths())
        if let path = unlocked.first { return (path, false) }
        return locked.first.map { ($0, true) }
    }

    func unlockedItem(_ id: String) throws -> String {
        guard let item = try find(id) else { throw SecretServiceError.notFound }
        guard item.isLocked else { return item.path }
        try unlock(item.path)
        // Some services use another object path after they have opened their database.
        guard let item = try find(id) else { throw SecretServiceError.notFound }
        guard !item.isLocked else { throw SecretServiceError.locked }
        return item.path
    }

    /// The secret of an item. It is stored as base64url text, because some services store only text.
    func read(_ item: String) throws -> Secret {
        // Some services drop a leading zero of the shared number, so that one session in 256 uses a wrong key. A new
        // session has another number.
        for _ in 0..<3 {
            let transport = try openTransport()
            let answer = try call("GetSecret", "Item", at: item, .path(transport.session), isSensitive: true)
            try answer.enter("r", "oayays")
            try answer.skip("o")
            if let text = transport.open(parameters: try answer.readBytes(), value: try answer.readBytes()) {
                guard let secret = SecretServiceConversation.decode(text) else { break }
                return secret
            }
            self.transport = nil
        }
        throw SecretServiceError.failed(reason: "the keyring's item with this identifier is not a key of Ringback")
    }

    func create(_ id: String, _ secret: Secret, in collection: String) throws {
        let transport = try openTransport()
        var (parameters, value) = try transport.seal(SecretServiceConversation.encode(secret))
        defer {
            parameters.erase()
            value.erase()
        }
        let item = "org.freedesktop.Secret.Item."
        let properties: [BusValue] = [
            .entry(item + "Label", .variant(.text(SecretServiceClient.label))),
            .entry(item + "Attributes", .variant(SecretServiceConversation.attributes(id))),
        ]
        // Do not replace: another process may have stored an item since we searched.
        let answer = try call(
            "CreateItem", "Collection", at: collection, .array(of: "{sv}", properties),
            .structure([.path(transport.session), .bytes(parameters), .bytes(value), .text("text/plain")]),
            .bool(false), isSensitive: true)
        try answer.skip("o")
        try follow(try answer.readPath())
    }

    func delete(_ item: String) throws { try follow(try call("Delete", "Item", at: item).readPath()) }

    private static func attributes(_ id: String) -> BusValue {
        .array(of: "{ss}", [.entry("application", .text("ringback")), .entry("key-id", .text(id))])
    }

    private static func encode(_ secret: Secret) -> Secret {
        var bytes = secret.revealedBytes()
        var text = Base64URL.encodeToBytes(bytes)
        defer {
            bytes.erase()
            text.erase()
        }
        return Secret(bytes: text)
    }

    private static func decode(_ text: Secret) -> Secret? {
        var bytes = text.revealedBytes()
        defer { bytes.erase() }
        guard var decoded = Base64URL.decode(bytes[...]), !decoded.isEmpty else { return nil }
        defer { decoded.erase() }
        return Secret(bytes: decoded)
    }

    private func openTransport() throws -> SecretTransport {
        if let transport { return transport }
        let agreed = try openAgreedTransport()
        let opened = if let agreed { agreed } else { try openPlainTransport() }
        transport = opened
        return opened
    }

    /// Nil if the service does not support the algorithm.
    private func openAgreedTransport() throws -> SecretTransport? {
        let agreement = try KeyAgreement()
        let answer: BusMessage
        do throws(BusFailure) {
            answer = try call(
                "OpenSession", "Service", .text(SecretTransport.agreedAlgorithm),
                .variant(.bytes(agreement.publicNumber)))
        } catch {
            if error == .refused("org.freedesktop.DBus.Error.NotSupported") { return nil }
            throw error
        }
        try answer.enter("v", "ay")
        let number = try answer.readBytes()
        try answer.leave()
        let session = try answer.readPath()
        guard let key = agreement.key(with: number) else {
            throw SecretServiceError.failed(
                reason: "the Secret Service's public number for the key agreement is not usable")
        }
        return SecretTransport(session: session, key: key)
    }

    private func openPlainTransport() throws(BusFailure) -> SecretTransport {
        let answer = try call("OpenSession", "Service", .text(SecretTransport.plainAlgorithm), .variant(.text("")))
        try answer.skip("v")
        return SecretTransport(session: try answer.readPath(), key: nil)
    }

    /// Shows the service's prompt, unless it is `/`, and waits until it is completed. The caller then checks whether the
    /// step succeeded.
    private func follow(_ prompt: String) throws {
        guard prompt != SecretServiceConversation.noObject else { return }
        guard let promptTimeout else {
            // A prompt that is never shown would stay in the service's memory.
            try? dismiss(prompt)
            throw SecretServiceError.locked
        }
        let deadline = SuspendingClock.now + promptTimeout
        do throws(BusFailure) {
            try bus.addMatch(
                "type='signal',interface='org.freedesktop.Secret.Prompt',member='Completed',path='\(prompt)'")
            try bus.addOwnerMatch(SecretServiceClient.name)
            // We have no window that the prompt could be placed over.
            _ = try call("Prompt", "Prompt", at: prompt, .text(""))
            guard try awaitCompletion(of: prompt, until: deadline) else { throw .dismissed }
        } catch {
            if error == .unanswered { try? dismiss(prompt) }
            throw error
        }
    }

    private func dismiss(_ prompt: String) throws(BusFailure) { _ = try call("Dismiss", "Prompt", at: prompt) }

    /// False if the user dismissed the prompt.
    private func awaitCompletion(
        of prompt: String, until deadline: SuspendingClock.Instant
    ) throws(BusFailure) -> Bool {
        while let message = try bus.next(until: deadline) {
            if message.isSignal("Completed", of: "org.freedesktop.Secret.Prompt"), message.path == prompt {
                return try !message.readBool()
            }
            // The service has ended, and its prompt with it.
            if message.isSignal("NameOwnerChanged", of: "org.freedesktop.DBus"),
                try message.readText() == SecretServiceClient.name
            {
                throw .absent
            }
        }
        throw .unanswered
    }
}
