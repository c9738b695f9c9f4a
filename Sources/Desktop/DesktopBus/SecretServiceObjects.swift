internal import Secrets

/// The methods of the Secret Service's objects (interface version 0.2), one function for each.
struct SecretServiceObjects {
    private static let root = "/org/freedesktop/secrets"
    /// The object path that stands for "none".
    static let noObject = "/"

    let bus: BusConnection

    /// Throws `absent` if the service is not running and the bus cannot activate it.
    init(_ bus: BusConnection) throws(BusFailure) {
        self.bus = bus
        let request = try driver("NameHasOwner")
        try request.append(SecretServiceClient.name)
        if try bus.call(request).readBool() { return }
        let names = try bus.call(try driver("ListActivatableNames")).readTexts()
        guard names.contains(SecretServiceClient.name) else { throw .absent }
    }

    private func driver(_ member: String) throws(BusFailure) -> BusMessage {
        let bus = "org.freedesktop.DBus"
        return try self.bus.request(member, of: bus, at: "/org/freedesktop/DBus", in: bus)
    }

    private func request(_ member: String, _ interface: String, at path: String) throws(BusFailure) -> BusMessage {
        try bus.request(member, of: "org.freedesktop.Secret." + interface, at: path, in: SecretServiceClient.name)
    }

    private func service(_ member: String) throws(BusFailure) -> BusMessage {
        try request(member, "Service", at: SecretServiceObjects.root)
    }

    // MARK: Service

    /// Opens a session. Returns its path and, for a key agreement, the service's public number.
    func openSession(_ algorithm: String, publicNumber: [UInt8]?) throws(BusFailure) -> (path: String, [UInt8]) {
        let request = try service("OpenSession")
        try request.append(algorithm)
        try request.open("v", publicNumber == nil ? "s" : "ay")
        if let publicNumber { try request.append(bytes: publicNumber) } else { try request.append("") }
        try request.close()
        let answer = try bus.call(request)
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
        let request = try service("ReadAlias")
        try request.append(alias)
        let path = try bus.call(request).readPath()
        return path == SecretServiceObjects.noObject ? nil : path
    }

    func search(_ id: String) throws(BusFailure) -> (unlocked: [String], locked: [String]) {
        let request = try service("SearchItems")
        try request.append(SecretServiceObjects.attributes(id))
        let answer = try bus.call(request)
        return (try answer.readPaths(), try answer.readPaths())
    }

    /// Unlocks. Returns the paths that were unlocked at once, and the prompt's path for the others.
    func unlock(_ path: String) throws(BusFailure) -> (unlocked: [String], prompt: String) {
        let request = try service("Unlock")
        try request.open("a", "o")
        try request.append(path: path)
        try request.close()
        let answer = try bus.call(request)
        return (try answer.readPaths(), try answer.readPath())
    }

    // MARK: Collection

    func isLocked(collection: String) throws(BusFailure) -> Bool {
        let request = try bus.request(
            "Get", of: "org.freedesktop.DBus.Properties", at: collection, in: SecretServiceClient.name)
        try request.append("org.freedesktop.Secret.Collection")
        try request.append("Locked")
        let answer = try bus.call(request)
        try answer.enter("v", "b")
        return try answer.readBool()
    }

    /// Stores an item. Returns the path of a prompt, or `/` if none is needed.
    func createItem(_ id: String, in collection: String, _ value: SealedValue) throws(BusFailure) -> String {
        let item = "org.freedesktop.Secret.Item."
        let request = try request("CreateItem", "Collection", at: collection)
        request.markSensitive()
        try request.open("a", "{sv}")
        try request.open("e", "sv")
        try request.append(item + "Label")
        try request.open("v", "s")
        try request.append(SecretServiceClient.label)
        try request.close(2)
        try request.open("e", "sv")
        try request.append(item + "Attributes")
        try request.open("v", "a{ss}")
        try request.append(SecretServiceObjects.attributes(id))
        try request.close(3)
        try request.open("r", "oayays")
        try request.append(path: value.session)
        try request.append(bytes: value.parameters)
        try request.append(bytes: value.value)
        try request.append("text/plain")
        try request.close()
        // Do not replace: another process may have stored an item since we searched.
        try request.append(false)
        let answer = try bus.call(request)
        try answer.skip("o")
        return try answer.readPath()
    }

    // MARK: Item

    func secret(of item: String, session: String) throws(BusFailure) -> (parameters: [UInt8], value: [UInt8]) {
        let request = try request("GetSecret", "Item", at: item)
        try request.append(path: session)
        let answer = try bus.call(request)
        answer.markSensitive()
        try answer.enter("r", "oayays")
        try answer.skip("o")
        return (try answer.readBytes(), try answer.readBytes())
    }

    /// Deletes an item. Returns the path of a prompt, or `/` if none is needed.
    func delete(_ item: String) throws(BusFailure) -> String {
        try bus.call(try request("Delete", "Item", at: item)).readPath()
    }

    // MARK: Prompt

    func prompt(_ path: String) throws(BusFailure) {
        let request = try request("Prompt", "Prompt", at: path)
        // We have no window that the prompt could be placed over.
        try request.append("")
        _ = try bus.call(request)
    }

    func dismiss(_ path: String) throws(BusFailure) {
        _ = try bus.call(try request("Dismiss", "Prompt", at: path))
    }

    /// A secret as it is transferred.
    struct SealedValue {
        let session: String
        let parameters: [UInt8]
        let value: [UInt8]
    }

    /// The attributes by which a key of Ringback is found.
    private static func attributes(_ id: String) -> KeyValuePairs<String, String> {
        ["application": "ringback", "key-id": id]
    }
}
