internal import Cryptography
internal import Glibc
internal import RingbackBase

/// One sequence of calls to the Secret Service: its steps may prompt the user, and secrets are transferred in one
/// session.
final class SecretServiceConversation {
    private let service: SecretServiceObjects
    /// Nil if no prompt may be shown.
    private let promptTimeout: Duration?
    private var transport: SecretTransport?

    init(service: SecretServiceObjects, promptTimeout: Duration?) {
        self.service = service
        self.promptTimeout = promptTimeout
    }

    func defaultCollection() throws(SecretServiceError) -> String {
        for alias in ["default", "login"] {
            if let path = try ask({ () throws(BusFailure) in try service.collection(alias: alias) }) { return path }
        }
        throw .unavailable(reason: "the Secret Service has no default keyring yet")
    }

    func isLocked(_ collection: String) throws(SecretServiceError) -> Bool {
        try ask { () throws(BusFailure) in try service.isLocked(collection: collection) }
    }

    /// Unlocks a collection or an item, with a prompt if that is needed and allowed.
    func unlock(_ path: String) throws(SecretServiceError) {
        let answer = try ask { () throws(BusFailure) in try service.unlock(path) }
        if answer.prompt == SecretServiceObjects.noObject {
            guard answer.unlocked.contains(path) else { throw .locked }
        } else {
            try follow(answer.prompt)
        }
    }

    func find(_ id: String) throws(SecretServiceError) -> (path: String, isLocked: Bool)? {
        let found = try ask { () throws(BusFailure) in try service.search(id) }
        if let path = found.unlocked.first { return (path, false) }
        return found.locked.first.map { ($0, true) }
    }

    func unlockedItem(_ id: String) throws(SecretServiceError) -> String {
        guard let item = try find(id) else { throw .notFound }
        guard item.isLocked else { return item.path }
        try unlock(item.path)
        // Some services use another object path after they have opened their database.
        guard let item = try find(id) else { throw .notFound }
        guard !item.isLocked else { throw .locked }
        return item.path
    }

    /// The secret of an item. It is stored as base64url text, because some services store only text.
    func read(_ item: String) throws(SecretServiceError) -> Secret {
        // Some services drop a leading zero of the shared number, so that one session in 256 uses a wrong key. A new
        // session has another number.
        for _ in 0..<3 {
            let transport = try openTransport()
            let sealed = try ask { () throws(BusFailure) in try service.secret(of: item, session: transport.session) }
            if let text = transport.open(parameters: sealed.parameters, value: sealed.value) {
                guard let secret = SecretServiceConversation.decode(text) else { break }
                return secret
            }
            self.transport = nil
        }
        throw .failed(reason: "the keyring's item with this identifier is not a key of Ringback")
    }

    func create(_ id: String, _ secret: Secret, in collection: String) throws(SecretServiceError) {
        let transport = try openTransport()
        var (parameters, value) = try transport.seal(SecretServiceConversation.encode(secret))
        defer {
            parameters.erase()
            value.erase()
        }
        let prompt = try ask { () throws(BusFailure) in
            try service.createItem(id, in: collection, session: transport.session, parameters: parameters, value: value)
        }
        if prompt != SecretServiceObjects.noObject { try follow(prompt) }
    }

    func delete(_ item: String) throws(SecretServiceError) {
        let prompt = try ask { () throws(BusFailure) in try service.delete(item) }
        if prompt != SecretServiceObjects.noObject { try follow(prompt) }
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

    private func openTransport() throws(SecretServiceError) -> SecretTransport {
        if let transport { return transport }
        let agreed = try openAgreedTransport()
        let opened = if let agreed { agreed } else { try openPlainTransport() }
        transport = opened
        return opened
    }

    /// Nil if the service does not support the algorithm.
    private func openAgreedTransport() throws(SecretServiceError) -> SecretTransport? {
        let agreement = try KeyAgreement()
        let session: (path: String, number: [UInt8])
        do throws(BusFailure) {
            session = try service.openSession(SecretTransport.agreedAlgorithm, publicNumber: agreement.publicNumber)
        } catch {
            if error == .refused("org.freedesktop.DBus.Error.NotSupported") { return nil }
            throw SecretServiceError(error)
        }
        guard let key = agreement.key(with: session.number) else {
            throw .failed(reason: "the Secret Service's public number for the key agreement is not usable")
        }
        return SecretTransport(session: session.path, key: key)
    }

    private func openPlainTransport() throws(SecretServiceError) -> SecretTransport {
        let session = try ask { () throws(BusFailure) in
            try service.openSession(SecretTransport.plainAlgorithm, publicNumber: nil)
        }
        return SecretTransport(session: session.path, key: nil)
    }

    /// Shows the service's prompt and waits until it is completed. The caller then checks whether the step succeeded.
    private func follow(_ prompt: String) throws(SecretServiceError) {
        guard let promptTimeout else {
            // A prompt that is never shown would stay in the service's memory.
            try? service.dismiss(prompt)
            throw .locked
        }
        let deadline = SuspendingClock.now + promptTimeout
        do throws(BusFailure) {
            try service.bus.addMatch(
                "type='signal',interface='org.freedesktop.Secret.Prompt',member='Completed',path='\(prompt)'")
            try service.bus.addOwnerMatch(SecretServiceClient.name)
            try service.prompt(prompt)
            guard try awaitCompletion(of: prompt, until: deadline) else { throw .dismissed }
        } catch {
            if error == .unanswered { try? service.dismiss(prompt) }
            throw SecretServiceError(error)
        }
    }

    /// False if the user dismissed the prompt.
    private func awaitCompletion(
        of prompt: String, until deadline: SuspendingClock.Instant
    ) throws(BusFailure) -> Bool {
        while let message = try service.bus.next(until: deadline) {
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

    private func ask<Answer>(_ step: () throws(BusFailure) -> Answer) throws(SecretServiceError) -> Answer {
        do throws(BusFailure) {
            return try step()
        } catch {
            throw SecretServiceError(error)
        }
    }
}

/// The methods of the Secret Service's objects (interface version 0.2), one function for each.
struct SecretServiceObjects {
    private static let root = "/org/freedesktop/secrets"
    /// The object path that stands for "none".
    static let noObject = "/"

    let bus: BusConnection

    /// Throws `absent` if the service is not running and the bus cannot activate it.
    init(_ bus: BusConnection) throws(BusFailure) {
        self.bus = bus
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

    /// Opens a session. Returns its path and, for a key agreement, the service's public number.
    func openSession(_ algorithm: String, publicNumber: [UInt8]?) throws(BusFailure) -> (path: String, [UInt8]) {
        let answer = try call(
            "OpenSession", "Service", .text(algorithm), .variant(publicNumber.map { .bytes($0) } ?? .text("")))
        guard publicNumber != nil else {
            try answer.skip("v")
            return (try answer.readPath(), [])
        }
        try answer.enter("v", "ay")
        let number = try answer.readBytes()
        try answer.leave()
        return (try answer.readPath(), number)
    }

    /// The collection with this alias; nil if there is none.
    func collection(alias: String) throws(BusFailure) -> String? {
        let path = try call("ReadAlias", "Service", .text(alias)).readPath()
        return path == SecretServiceObjects.noObject ? nil : path
    }

    func search(_ id: String) throws(BusFailure) -> (unlocked: [String], locked: [String]) {
        let answer = try call("SearchItems", "Service", SecretServiceObjects.attributes(id))
        return (try answer.readPaths(), try answer.readPaths())
    }

    /// Unlocks. Returns the paths that were unlocked at once, and the prompt's path for the others.
    func unlock(_ path: String) throws(BusFailure) -> (unlocked: [String], prompt: String) {
        let answer = try call("Unlock", "Service", .array(of: "o", [.path(path)]))
        return (try answer.readPaths(), try answer.readPath())
    }

    func isLocked(collection: String) throws(BusFailure) -> Bool {
        try bus.property(
            "Locked", "b", of: "org.freedesktop.Secret.Collection", at: collection, in: SecretServiceClient.name
        ).readBool()
    }

    /// Returns the path of a prompt, or `/` if none is needed.
    func createItem(
        _ id: String, in collection: String, session: String, parameters: [UInt8], value: [UInt8]
    ) throws(BusFailure) -> String {
        let item = "org.freedesktop.Secret.Item."
        let properties: [BusValue] = [
            .entry(item + "Label", .variant(.text(SecretServiceClient.label))),
            .entry(item + "Attributes", .variant(SecretServiceObjects.attributes(id))),
        ]
        // Do not replace: another process may have stored an item since we searched.
        let answer = try call(
            "CreateItem", "Collection", at: collection, .array(of: "{sv}", properties),
            .structure([.path(session), .bytes(parameters), .bytes(value), .text("text/plain")]), .bool(false),
            isSensitive: true)
        try answer.skip("o")
        return try answer.readPath()
    }

    func secret(of item: String, session: String) throws(BusFailure) -> (parameters: [UInt8], value: [UInt8]) {
        let answer = try call("GetSecret", "Item", at: item, .path(session), isSensitive: true)
        try answer.enter("r", "oayays")
        try answer.skip("o")
        return (try answer.readBytes(), try answer.readBytes())
    }

    /// Returns the path of a prompt, or `/` if none is needed.
    func delete(_ item: String) throws(BusFailure) -> String { try call("Delete", "Item", at: item).readPath() }

    func prompt(_ path: String) throws(BusFailure) {
        // We have no window that the prompt could be placed over.
        _ = try call("Prompt", "Prompt", at: path, .text(""))
    }

    func dismiss(_ path: String) throws(BusFailure) { _ = try call("Dismiss", "Prompt", at: path) }

    private static func attributes(_ id: String) -> BusValue {
        .array(of: "{ss}", [.entry("application", .text("ringback")), .entry("key-id", .text(id))])
    }
}
