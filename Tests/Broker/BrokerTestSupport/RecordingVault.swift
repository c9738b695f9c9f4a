import Glibc
import RingbackBase

@testable import BrokerCore
@testable import SessionVault

/// Keeps texts and remembers what was asked of it; fails, holds or locks as told.
actor RecordingVault: Vault {
    /// What happened, in words: `announce`, `store R`, `store R > S` (with a successor), `replace R`, `settle`,
    /// `remove`, `retire`.
    private(set) var log: [String] = []
    private var texts: [VaultSlot: Secret] = [:]
    private var announced: Set<VaultSlot> = []
    private var leaving: [RetiredEntry] = []
    private var failure: VaultError?
    private var announcementFailure: VaultError?
    private var storeFailure: VaultError?
    private var nextStoreFailures: [VaultError] = []
    private var failsAfterReplacing = false
    private var failsReplacing = false
    private var openFailure: VaultError?
    private var gate: Promise<Void>?
    private var openingGate: Promise<Void>?
    private var isClosed = true
    private var openings = 0
    private var announcements: [Announcement] = []
    private var provesEnds = true
    /// How many requests the lease still allows; nil for any number.
    private var requestsLeft: Int?
    private var unheard: EndProof.UnheardRequest?
    private let othersChanges = AsyncStream.makeStream(of: VaultSlot?.self)

    func fail(with error: VaultError?) { failure = error }
    func failAnnouncing(with error: VaultError?) { announcementFailure = error }
    func failStoring(with error: VaultError?) { storeFailure = error }
    /// The next calls of `store` fail.
    func failOnceStoring(with errors: VaultError...) { nextStoreFailures += errors }
    /// The next `replace` takes effect and fails all the same, as where a directory cannot be synced.
    func failOnceAfterReplacing() { failsAfterReplacing = true }
    /// The next `replace` fails, as where there is room for one record, but not for two.
    func failOnceReplacing() { failsReplacing = true }
    func failOpening(with error: VaultError?) { openFailure = error }
    func hold() { gate = Promise() }
    func release() {
        gate?.fulfil(())
        gate = nil
    }

    func answer(_ announcements: Announcement...) { self.announcements += announcements }
    func endLease(afterRequests count: Int?) { requestsLeft = count }
    var answersLeft: Int { announcements.count }
    /// Whether an end that the provider tells is proven.
    func setProvesEnds(_ provesEnds: Bool) { self.provesEnds = provesEnds }
    func setUnheard(_ unheard: EndProof.UnheardRequest) { self.unheard = unheard }
    func change(_ slot: VaultSlot, to text: Secret?) {
        texts[slot] = text
        announced.remove(slot)
        othersChanges.continuation.yield(slot)
    }

    func holdOpening() { openingGate = Promise() }
    func releaseOpening() { openingGate?.fulfil(()) }

    var openingCount: Int { openings }

    func open(passphrase: Secret?) async throws(VaultError) {
        openings += 1
        let openFailure = openFailure
        _ = await openingGate?.wait()
        if let openFailure {
            // After a restart it is closed, whatever it was before.
            isClosed = true
            throw openFailure
        }
        isClosed = false
    }

    func close() { isClosed = true }

    func rekey(to choice: KeySourceChoice, passphrase: Secret?) async throws(VaultError) {
        log.append("rekey \(choice.rawValue)")
        if let failure { throw failure }
        if isClosed { throw .locked(.locked) }
    }

    private func enter() async throws(VaultError) {
        _ = await gate?.wait()
        if let failure { throw failure }
        if isClosed { throw .locked(.locked) }
    }

    func load(_ slot: VaultSlot) async throws(VaultError) -> VaultEntry? {
        try await enter()
        return texts[slot].map { VaultEntry(text: $0, isInterrupted: announced.contains(slot)) }
    }

    func announce(_ slot: VaultSlot) async throws(VaultError) {
        log.append("announce")
        if let announcementFailure { throw announcementFailure }
        try await enter()
        announced.insert(slot)
    }

    func announce(
        _ slot: VaultSlot, presenting token: Secret?, accessTokenLeft: Duration?
    ) async throws(VaultError) -> Announcement {
        if !announcements.isEmpty {
            let announcement = announcements.removeFirst()
            guard case .granted = announcement else {
                try await enter()
                return announcement
            }
            try await announce(slot)
            return announcement
        }
        try await announce(slot)
        return .granted(.unshared)
    }

    func requestBound(_ slot: VaultSlot, under lease: RefreshLease) async throws(VaultError) -> Duration? {
        guard let left = requestsLeft else { return nil }
        guard left > 0 else { throw .unreachable(.leaseOver) }
        requestsLeft = left - 1
        return .seconds(20)
    }

    func proofOfEnd(_ slot: VaultSlot) async -> EndProof? { provesEnds ? EndProof(unheard: unheard) : nil }

    nonisolated var changes: AsyncStream<VaultSlot?> { othersChanges.stream }

    func store(_ text: Secret, in slot: VaultSlot) async throws(VaultError) {
        let session = try? SessionRecord.decode(text, by: .system)
        let tokens = session?.refreshTokens.reversed().map { $0.revealed() } ?? []
        // The log is of sessions.
        if slot.kind != .people, slot.kind != .provider { log.append("store \(tokens.joined(separator: " > "))") }
        if let storeFailure { throw storeFailure }
        if !nextStoreFailures.isEmpty { throw nextStoreFailures.removeFirst() }
        try await enter()
        texts[slot] = text
        announced.remove(slot)
    }

    func settle(_ slot: VaultSlot) async throws(VaultError) {
        log.append("settle")
        try await enter()
        announced.remove(slot)
    }

    func remove(_ slot: VaultSlot) async throws(VaultError) {
        log.append("remove")
        try await enter()
        texts[slot] = nil
        announced.remove(slot)
    }

    func retire(_ slot: VaultSlot) async throws(VaultError) -> RetiredEntry? {
        log.append("retire")
        try await enter()
        guard let text = texts.removeValue(forKey: slot) else { return nil }
        announced.remove(slot)
        let entry = RetiredEntry(id: "retired-\(log.count)", slot: slot, text: text)
        leaving.append(entry)
        return entry
    }

    func replace(_ text: Secret, in slot: VaultSlot) async throws(VaultError) -> RetiredEntry? {
        log.append("replace \((try? SessionRecord.decode(text, by: .system))?.refreshToken?.revealed() ?? "")")
        if let storeFailure { throw storeFailure }
        if failsReplacing {
            failsReplacing = false
            throw .unwritable(.diskFull)
        }
        try await enter()
        announced.remove(slot)
        let former = texts.updateValue(text, forKey: slot)
        guard let former else { return nil }
        let entry = RetiredEntry(id: "retired-\(log.count)", slot: slot, text: former)
        leaving.append(entry)
        if failsAfterReplacing {
            failsAfterReplacing = false
            throw .unwritable(.diskBroken)
        }
        return entry
    }

    func keep(_ text: Secret, retiredFrom slot: VaultSlot) async throws(VaultError) -> RetiredEntry {
        log.append("keep")
        if let storeFailure { throw storeFailure }
        try await enter()
        let entry = RetiredEntry(id: "retired-\(log.count)", slot: slot, text: text)
        leaving.append(entry)
        return entry
    }

    func retired() async throws(VaultError) -> [RetiredEntry] {
        try await enter()
        return leaving
    }

    func slots(of kind: VaultSlot.Kind, besides known: Set<VaultSlot>) async throws(VaultError) -> [VaultSlot] {
        try await enter()
        return texts.keys.filter { $0.kind == kind && !known.contains($0) }
    }

    func discard(_ id: String) async throws(VaultError) {
        try await enter()
        leaving.removeAll { $0.id == id }
    }

    func put(_ text: Secret, in slot: VaultSlot, isInterrupted: Bool = false) {
        texts[slot] = text
        if isInterrupted { announced.insert(slot) }
    }
    func putRetired(_ entry: RetiredEntry) { leaving.append(entry) }
    var sessions: [Session] { texts.values.compactMap { try? SessionRecord.decode($0, by: TestClock().clock) } }
    var stores: [String] { log.filter { $0.hasPrefix("store") || $0.hasPrefix("replace") } }
    var leavingCount: Int { leaving.count }
    var isAnnounced: Bool { !announced.isEmpty }

    nonisolated var status: VaultStatus {
        VaultStatus(kind: .sealedFile, isLocked: false, keySource: .keyFile, protection: .unknown)
    }
}

extension VaultReason {
    static let diskFull = failed(ENOSPC)
    static let readOnly = failed(EROFS)
    static let diskBroken = failed(EIO)
    static let keyringLocked = VaultReason.keptBy(.secretService, .keyringLocked)
    static let ofNewerVersion = VaultReason.newer(path: "/state/vault/a", version: 2)
    static let setAside = VaultReason.damaged(
        path: "/state/vault/a", .changed, kind: .session, place: "/state/vault/a.damaged-1")

    private static func failed(_ code: Int32) -> VaultReason {
        .file(FileFailure(action: .write, path: "/state/vault/a", code: code))
    }
}
