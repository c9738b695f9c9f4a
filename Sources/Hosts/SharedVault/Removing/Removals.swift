internal import RingbackBase
internal import SessionVault

/// How a host is removed, in this order. The removing host can be killed between any two steps. It goes on when it is
/// started again, and so does any other host that sees the record.
///
/// 1. The record in the database says that the removal has begun.
/// 2. The database removes the host: from then on it reads nothing.
/// 3. The record says that the removal is done: its count grows.
/// 4. Each session whose content has a lower count is refreshed once, by a host that has its account.
struct Removals: Sendable {
    private static let mostChanges = 10
    let vault: SharedVault

    func remove(_ host: Host) async throws(HostFailure) {
        let removal = RemovalRecord.Begun(role: host.role, name: host.name ?? host.role)
        try await change { $0.begin(removal) }
        try await finish(removal)
    }

    func resume() async throws(HostFailure) {
        for removal in await vault.removals.begun where removal.role != vault.place.role { try await finish(removal) }
    }

    private func finish(_ removal: RemovalRecord.Begun) async throws(HostFailure) {
        // False if the database has removed it before.
        _ = try await vault.hosts.remove(host: removal.role)
        try await change { $0.end(removal) }
    }

    private func change(_ body: @escaping @Sendable (inout RemovalRecord) -> Void) async throws(HostFailure) {
        do throws(VaultError) { try await record(body) } catch { throw .vault(error) }
    }

    /// Changes the record in the database; nothing is written while that is away.
    func record(_ body: @Sendable (inout RemovalRecord) -> Void) async throws(VaultError) {
        // Another slot's turn: those of the record are taken by what is called here.
        let turn = VaultSlot(account: "removing", binding: "", kind: .hostsKey)
        try await vault.inTurn(turn) { @Sendable vault throws(VaultError) in
            for _ in 0..<Removals.mostChanges {
                _ = try await vault.load(vault.removalSlot)
                let former = vault.removals
                var record = former
                body(&record)
                guard record != former else { return }
                do throws(VaultError) {
                    return try await vault.store(record.encoded(), in: vault.removalSlot, as: .edit)
                } catch {
                    guard error == .unreachable(.changedElsewhere) || error == .unreachable(.heldElsewhere) else {
                        throw error
                    }
                }
            }
            throw .unreachable(.changedElsewhere)
        }
    }
}

extension SharedVault {
    var removals: RemovalRecord {
        guard let content = slots[removalSlot]?.entry?.content else { return RemovalRecord() }
        if removalsRead?.name != content.name {
            removalsRead = (content.name, content.text.flatMap { RemovalRecord(reading: $0) } ?? RemovalRecord())
        }
        return removalsRead?.record ?? RemovalRecord()
    }

    func isStale(_ slot: VaultSlot) -> Bool {
        slot.kind == .session && slots[slot]?.isOlder(than: removals.count) == true
    }

    /// To be called when a slot was read: there may be something to do about removals.
    func noteRemovals(in slot: VaultSlot) {
        if slot == removalSlot || isStale(slot) { removalNews.continuation.yield() }
    }
}

/// Which hosts were removed, as all hosts share it in a row of its own. The count grows with each removal that is done.
/// A removed host may have read a content that has a lower count (``RowContent/removals``).
struct RemovalRecord: Sendable, Equatable {
    struct Begun: Sendable, Equatable {
        let role: String
        let name: String
    }

    var count = 0
    var begun: [Begun] = []
    init() {}

    init?(reading text: Secret) {
        guard let object = (try? JSON(parsing: text.revealedBytes()))?.object, object["version"]?.integer == 1,
            let count = object["count"]?.integer, count >= 0, let begun = object["begun"]?.array
        else { return nil }
        self.count = count
        self.begun = begun.compactMap { entry in
            guard let role = entry["role"]?.string, let name = entry["name"]?.string else { return nil }
            return Begun(role: role, name: name)
        }
        guard self.begun.count == begun.count else { return nil }
    }

    func encoded() -> Secret {
        let begun = begun.map { entry in
            JSON.object(JSONObject([.init("role", .string(entry.role)), .init("name", .string(entry.name))]))
        }
        let object = JSONObject([
            .init("version", .integer(1)), .init("count", .integer(count)), .init("begun", .array(begun)),
        ])
        return Secret(bytes: JSON.object(object).serialized())
    }

    mutating func begin(_ removal: Begun) { if !begun.contains(removal) { begun.append(removal) } }

    /// Nothing if another host has noted it already.
    mutating func end(_ removal: Begun) {
        guard begun.contains(removal) else { return }
        begun.removeAll { $0 == removal }
        count += 1
    }
}
