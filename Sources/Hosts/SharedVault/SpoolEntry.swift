internal import RingbackBase
internal import SessionVault

/// What the local vault has of a shared slot: the content, and what the database knows of it.
struct SpoolEntry: Sendable, Equatable {
    enum Origin: Sendable, Equatable {
        /// From the row's head, or it has become the head.
        case row
        /// A response to a request of this host.
        case attempt(LeaseID, epoch: Int64, step: Int, isFinal: Bool)
        /// Written here without a request. `overrides`: whatever other hosts have written.
        case put(overrides: Bool)
    }

    var content: RowContent
    /// The version of the head that has it, or that it shall become.
    var version: Int64
    var origin: Origin
    /// The database has it.
    var isSent: Bool
    /// The row's head had it when the row was last read.
    var isHead: Bool { isSent && origin == .row }

    /// Whether the database has had it before this head: the head is it, or was made from it. A sign-in or sign-out is known
    /// by the session that begins with it, however many refreshes came after it.
    func isKnown(before head: RowContent) -> Bool {
        if case .put(overrides: true) = origin, head.session == content.session { return true }
        return head.name == content.name || head.comes(from: content)
    }

    /// The head of this version has it.
    mutating func confirm(_ head: Int64) { (version, origin, isSent) = (head, .row, true) }

    func encoded() -> Secret {
        var members: [JSONObject.Member] = [.init("version", .integer(Int(version))), .init("sent", .bool(isSent))]
        switch origin {
        case .row: break
        case .attempt(let id, let epoch, let step, let isFinal):
            members += [
                .init("attempt", .string(Hex.text(id.bytes))), .init("epoch", .integer(Int(epoch))),
                .init("step", .integer(step)), .init("final", .bool(isFinal)),
            ]
        case .put(let overrides): members.append(.init("overrides", .bool(overrides)))
        }
        return content.encoded(adding: members)
    }

    /// Reads the local vault's text. A text without our header was stored before the vault was shared.
    static func read(_ text: Secret) -> SpoolEntry? {
        guard let (content, header) = RowContent.read(text), let version = header["version"]?.integer, version >= 0,
            case .bool(let isSent)? = header["sent"]
        else { return nil }
        var origin = Origin.row
        if case .bool(let overrides)? = header["overrides"] { origin = .put(overrides: overrides) }
        if let id = header["attempt"]?.string.flatMap(Hex.bytes), let epoch = header["epoch"]?.integer,
            let step = header["step"]?.integer, case .bool(let isFinal)? = header["final"]
        {
            origin = .attempt(LeaseID(bytes: id), epoch: Int64(epoch), step: step, isFinal: isFinal)
        }
        return SpoolEntry(content: content, version: Int64(version), origin: origin, isSent: isSent)
    }
}

struct SlotState: Sendable {
    struct Attempt: Sendable {
        let id: LeaseID
        let epoch: Int64
        /// When the lease is over at the earliest, by the time since boot.
        let end: Duration
        var steps = 0
        var mayBeSent = false
    }

    let key: RowKey
    /// What the local vault has, or is to have; nil if that is nothing.
    var entry: SpoolEntry?
    /// The version of the row's head, as it was last read; 0 if there is no row.
    var rowVersion: Int64 = 0
    /// The content that the broker got or wrote last: what it writes next is made from that.
    var base: RowContent.Name?
    var attempt: Attempt?
    /// Until when the database is not given the entry, by the time since boot: its validated form may follow at once.
    var heldUntil: Duration?
    /// The candidates that were given to the broker with the last announcement.
    var offered: Set<RowContent.Name> = []
    /// Those of them that were presented before the slot's own.
    var newer: [RowContent.Name] = []
    /// The local vault could not be written: the entry is here. It is kept while the vault is locked.
    var isUnwritten = false
    /// The database has the entry, and the local vault does not have it yet, or does not know that the database has it.
    var isUncopied = false
    /// A change of the row was told while a request was under way, or could not be read.
    var isOverlooked = false
    /// What was signed out here, until the row has it.
    var signedOut: RowContent?
    /// What was kept until the provider has been told, so that it is kept once.
    var kept: Set<RowContent.Name> = []
    /// The row cannot be used: it does not open with the hosts' key, or it is older than what was seen.
    var refusal: SharedVault.Refusal?

    /// Whether a request may be under way. It ends with the row as it is then.
    func isBusy(at now: Duration) -> Bool { attempt.map { $0.end > now } ?? false }

    /// Whether a change of the row is looked at now. If something is to be sent, it is looked at after that.
    func isLookedAt(at now: Duration) -> Bool { !isBusy(at: now) && entry?.isSent != false }

    /// When a change that was overlooked can be looked at, by the time since boot; nil if there is none.
    var overlookedUntil: Duration? { isOverlooked ? attempt?.end ?? .zero : nil }
    /// How many of the row's versions have the tokens of the head before them.
    var edits: Int64 { Int64(entry?.content.edits ?? 0) }

    mutating func note(written entry: SpoolEntry) {
        (self.entry, base, isUnwritten, isUncopied) = (entry, entry.content.name, false, false)
    }

    /// Whether its text came before so many hosts had been removed.
    func isOlder(than removals: Int) -> Bool {
        guard let content = entry?.content, content.text != nil else { return false }
        return content.removals < removals
    }

    /// A text from before the vault was shared is to be sent, if the row has none; `name` is a random one for it.
    init(key: RowKey, stored text: Secret?, name: RowContent.Name) {
        self.key = key
        entry = text.map { text in
            SpoolEntry.read(text)
                ?? SpoolEntry(
                    content: RowContent(text, after: nil, name: name), version: 0, origin: .put(overrides: false),
                    isSent: false)
        }
        if let entry, entry.isHead { rowVersion = entry.version }
    }
}

extension RetiredEntry {
    /// With the slot's own text; nil if it says that the slot was empty.
    var unwrapped: RetiredEntry? {
        guard let stored = SpoolEntry.read(text) else { return self }
        return stored.content.text.map { RetiredEntry(id: id, slot: slot, text: $0) }
    }
}
