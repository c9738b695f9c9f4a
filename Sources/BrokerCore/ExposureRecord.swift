internal import SessionVault
internal import StrictJSON

/// The exposures that calls made, as text for the state directory: no secret is among it. Each is checked like a call's
/// when it is read back: a file is no better than its last writer.
enum ExposureRecord {
    static let version = 1
    /// Larger files are none of ours.
    static let maxSize = 1 << 20

    static func encode(_ exposures: [Exposure], bootID: String) -> [UInt8] {
        let list = exposures.map { exposure -> JSON in
            let order = exposure.order
            var object = JSONObject([
                .init("id", .string(exposure.id)), .init("name", .string(order.name)),
                .init("accounts", .array(order.accounts.map { .string($0.rawValue) })),
                .init("created_at", .integer(exposure.createdAt)),
            ])
            object["scope"] = order.ceiling.map { .array($0.map { .string($0) }) }
            if !order.allowedUIDs.isEmpty { object["allow_uids"] = .array(order.allowedUIDs.map { .integer(Int($0)) }) }
            object["flatpak"] = order.flatpak.map { .string($0) }
            object["ttl"] = order.lifetime.map { .integer($0) }
            object["expiry"] = exposure.expiry.map { ["at": .integer($0.at), "boot": .integer($0.boot)] }
            return .object(object)
        }
        let document: JSON = [
            "version": .integer(version), "boot_id": .string(bootID), "grants": .array(list),
        ]
        return document.serialized()
    }

    /// Nil for a text that is none of this version or has a mistake anywhere: half of it would be a guess.
    static func decode(_ bytes: [UInt8], by clock: BrokerClock) -> [Exposure]? {
        guard let object = try? JSON(parsing: bytes).object, object["version"]?.integer == version,
            let list = object["grants"]?.array
        else { return nil }
        let reader = DeadlineReader(
            clock: clock, isSameBoot: !clock.bootID.isEmpty && object["boot_id"]?.string == clock.bootID)
        var exposures: [Exposure] = []
        var names: Set<String> = []
        for entry in list {
            guard let exposure = decode(entry, reader), names.insert(exposure.name).inserted else { return nil }
            exposures.append(exposure)
        }
        return exposures
    }

    private static func decode(_ entry: JSON, _ reader: DeadlineReader) -> Exposure? {
        guard let id = entry["id"]?.string, let name = entry["name"]?.string,
            let accounts = names(entry["accounts"])?.compactMap({ AccountName($0) }),
            let createdAt = entry["created_at"]?.integer
        else { return nil }
        let scopes = names(entry["scope"])
        let uids = (entry["allow_uids"]?.array ?? []).map { $0.integer.flatMap { UInt32(exactly: $0) } }
        // What is there and cannot be read may have been a bound.
        guard accounts.count == entry["accounts"]?.array?.count, (scopes == nil) == (entry["scope"] == nil),
            !uids.contains(nil), (entry["ttl"] == nil) == (entry["expiry"] == nil)
        else { return nil }
        let order = Exposure.Order(
            name: name, accounts: accounts, ceiling: scopes, allowedUIDs: uids.compactMap(\.self),
            flatpak: entry["flatpak"]?.string, lifetime: entry["ttl"]?.integer)
        let expiry = reader.read(entry["expiry"], lifetime: order.lifetime)
        guard order.mistake == nil, (order.lifetime == nil) == (expiry == nil) else { return nil }
        return Exposure(id: id, order: order, origin: .call, createdAt: createdAt, expiry: expiry)
    }

    private static func names(_ json: JSON?) -> [String]? {
        guard let array = json?.array else { return nil }
        let texts = array.compactMap(\.string)
        return texts.count == array.count ? texts : nil
    }
}
