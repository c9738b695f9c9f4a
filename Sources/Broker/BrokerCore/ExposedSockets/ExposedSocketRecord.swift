internal import RingbackBase
internal import SessionVault

/// The exposed sockets of calls, and what is remembered of the configuration's tables, as text for the state directory,
/// without secrets. Each entry is checked when it is read: another program may have changed the file.
struct ExposedSocketRecord: Equatable {
    var exposedSockets: [ExposedSocket]
    var tables: [String: ExposedSocketTable]

    static let version = 1
    /// A larger file was not written by Ringback.
    static let maxSize = 1 << 20

    init(exposedSockets: [ExposedSocket] = [], tables: [String: ExposedSocketTable] = [:]) {
        self.exposedSockets = exposedSockets
        self.tables = tables
    }

    // MARK: Writing

    func encode(bootID: String) -> [UInt8] {
        let list = exposedSockets.map { exposedSocket -> JSONObject in
            var object = ExposedSocketRecord.members(of: exposedSocket.order)
            object["id"] = .string(exposedSocket.id)
            object["created_at"] = .integer(exposedSocket.createdAt.seconds)
            object["expiry"] = exposedSocket.expiry?.json
            let bindings = exposedSocket.bindings.sorted { $0.key < $1.key }.map { name, binding in
                JSONObject.Member(
                    name.rawValue, ["provider": .string(binding.provider), "client_id": .string(binding.clientID)])
            }
            if !bindings.isEmpty { object["bindings"] = .object(JSONObject(bindings)) }
            return object
        }
        let kept = tables.filter(\.value.isKept).sorted { $0.key < $1.key }.map { name, table -> JSONObject in
            [
                "name": name, "digest": table.digest, "ttl": table.lifetime?.wholeSeconds,
                "expiry": table.expiry?.json, "ending": table.ending?.rawValue,
            ]
        }
        let document: JSONObject = [
            "version": ExposedSocketRecord.version, "boot_id": bootID, "exposed_sockets": list, "configured": kept,
        ]
        return JSON.object(document).serialized()
    }

    static func members(of order: ExposedSocket.Order) -> JSONObject {
        [
            "name": order.name, "accounts": order.accounts.map(\.rawValue), "scope": order.ceiling,
            "allow_uids": order.allowedUIDs.isEmpty ? nil : order.allowedUIDs.map(Int.init),
            "flatpak": order.flatpak, "ttl": order.lifetime?.wholeSeconds, "proof": order.givesProofs ? true : nil,
            "mcp": order.mcp.map { mcp -> JSONObject in ["methods": mcp.methods, "tools": mcp.tools] },
        ]
    }

    // MARK: Reading

    /// Nil for another version or a mistake anywhere: the rest may hold a restriction, so no part of it is used.
    init?(reading bytes: [UInt8], by clock: BrokerClock) {
        guard let object = try? JSON(parsing: bytes).object, object["version"]?.integer == ExposedSocketRecord.version,
            let list = object["exposed_sockets"]?.array
        else { return nil }
        self.init()
        let reader = DeadlineReader(
            clock: clock, isSameBoot: !clock.bootID.isEmpty && object["boot_id"]?.string == clock.bootID)
        var names: Set<String> = []
        for entry in list {
            guard let exposedSocket = ExposedSocketRecord.exposedSocket(entry, reader),
                names.insert(exposedSocket.name).inserted
            else { return nil }
            exposedSockets.append(exposedSocket)
        }
        // Older versions did not write this member.
        guard let kept = object["configured"] else { return }
        guard let kept = kept.array else { return nil }
        for entry in kept {
            guard let name = entry["name"]?.string, AccountName(name) != nil,
                let table = ExposedSocketRecord.table(entry, reader), tables.updateValue(table, forKey: name) == nil
            else { return nil }
        }
    }

    private static func exposedSocket(_ entry: JSON, _ reader: DeadlineReader) -> ExposedSocket? {
        guard let id = entry["id"]?.string, let name = entry["name"]?.string,
            let accounts = names(entry["accounts"])?.compactMap({ AccountName($0) }),
            let createdAt = entry["created_at"]?.integer.map({ WallInstant(seconds: $0) })
        else { return nil }
        let scopes = names(entry["scope"])
        let uids = (entry["allow_uids"]?.array ?? []).map { $0.integer.flatMap { UInt32(exactly: $0) } }
        // A member that is there and cannot be read may have been a restriction.
        let mcp = entry["mcp"].flatMap { mcpAccess($0) }
        guard (mcp == nil) == (entry["mcp"] == nil), accounts.count == entry["accounts"]?.array?.count,
            (scopes == nil) == (entry["scope"] == nil),
            !uids.contains(nil), (entry["ttl"] == nil) == (entry["expiry"] == nil)
        else { return nil }
        var order = ExposedSocket.Order(
            name: name, accounts: accounts, ceiling: scopes, allowedUIDs: uids.compactMap(\.self),
            flatpak: entry["flatpak"]?.string, lifetime: entry["ttl"]?.integer.map { .seconds($0) }, mcp: mcp)
        order.givesProofs = entry["proof"]?.bool ?? false
        let expiry = reader.read(entry["expiry"], lifetime: order.lifetime)
        guard order.mistake == nil, (order.lifetime == nil) == (expiry == nil),
            let bindings = bindings(entry["bindings"])
        else { return nil }
        return ExposedSocket(
            id: id, order: order, origin: .call, createdAt: createdAt, expiry: expiry, bindings: bindings)
    }

    private static func mcpAccess(_ json: JSON) -> ExposedSocket.MCPAccess? {
        let tools = names(json["tools"])
        guard let methods = names(json["methods"]), (tools == nil) == (json["tools"] == nil) else { return nil }
        return ExposedSocket.MCPAccess(tools: tools, methods: methods)
    }

    /// Older versions did not write this member.
    private static func bindings(_ json: JSON?) -> [AccountName: SessionBinding]? {
        guard let json else { return [:] }
        guard let members = json.object?.members else { return nil }
        var bindings: [AccountName: SessionBinding] = [:]
        for member in members {
            guard let name = AccountName(member.name), let provider = member.value["provider"]?.string,
                let clientID = member.value["client_id"]?.string
            else { return nil }
            bindings[name] = SessionBinding(provider: provider, clientID: clientID)
        }
        return bindings
    }

    private static func table(_ entry: JSON, _ reader: DeadlineReader) -> ExposedSocketTable? {
        guard let digest = entry["digest"]?.string, (entry["ttl"] == nil) == (entry["expiry"] == nil) else {
            return nil
        }
        let ending = entry["ending"]?.string.flatMap { ExposedSocketRegistry.Ending(rawValue: $0) }
        let lifetime: Duration? = entry["ttl"]?.integer.map { .seconds($0) }
        let expiry = reader.read(entry["expiry"], lifetime: lifetime)
        guard (ending == nil) == (entry["ending"] == nil), (lifetime == nil) == (entry["ttl"] == nil),
            (expiry == nil) == (lifetime == nil)
        else { return nil }
        return ExposedSocketTable(digest: digest, lifetime: lifetime, expiry: expiry, ending: ending)
    }

    private static func names(_ json: JSON?) -> [String]? {
        guard let array = json?.array else { return nil }
        let texts = array.compactMap(\.string)
        return texts.count == array.count ? texts : nil
    }
}

/// A closed socket that programs may expect: it is listed until it is opened, revoked, or gone from the configuration.
public struct ClosedSocket: Sendable, Equatable {
    public enum Reason: String, Sendable, CaseIterable {
        /// Its table is still in the configuration. The socket stays closed until the table changes.
        case revoked, expired
        /// The record of revocations is lost, so this may have been revoked. It stays closed until its table changes.
        case forgotten
        case nameTaken = "name_taken"
        /// An account that it showed is now configured for another provider or client.
        case accountChanged = "account_changed"
        case failed
    }

    public let exposedSocket: ExposedSocket
    public let reason: Reason
    public let detail: BrokerCore.Reason
    /// The directory that is open to others, if the socket could not be opened because of that.
    public let unsafePath: String?

    public var name: String { exposedSocket.name }

    /// True if the user should be told without asking. A socket that was revoked or has expired is closed on purpose.
    public var isTrouble: Bool {
        reason != .revoked && reason != .expired
    }

    init(_ exposedSocket: ExposedSocket, failed detail: BrokerCore.Reason, unsafePath: String? = nil) {
        self.exposedSocket = exposedSocket
        self.unsafePath = unsafePath
        reason = .failed
        self.detail = detail
    }

    /// - Parameter reason: not `failed`, which needs a cause of its own.
    init(_ exposedSocket: ExposedSocket, _ reason: Reason) {
        self.exposedSocket = exposedSocket
        self.reason = reason
        unsafePath = nil
        let place: String? = if case .configuration(let place) = exposedSocket.origin { place } else { nil }
        detail = .stated(reason.sentence(at: place ?? "the configuration"))
    }
}

extension ClosedSocket.Reason {
    fileprivate func sentence(at place: String) -> String {
        switch self {
        case .revoked: "It was revoked. It stays closed until its table is changed, at \(place)."
        case .expired: "Its time is over. It stays closed until its table is changed, at \(place)."
        case .forgotten:
            "The record of what was revoked (exposed-sockets.json in the state directory) was lost or damaged, so "
                + "this may have been revoked. It stays closed until its table is changed, at \(place)."
        case .nameTaken:
            "A socket of this name was made by a call, and stays as it was. Give the table at \(place) another name, "
                + "or revoke that socket and have the configuration read again."
        case .accountChanged:
            "An account that it showed is configured for another provider or client now. Make it anew if that is "
                + "to be shown. It is listed until it is revoked."
        case .failed: "It cannot be opened."
        }
    }
}
