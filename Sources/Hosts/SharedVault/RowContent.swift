internal import Cryptography
internal import RingbackBase
internal import SessionVault

/// What a row holds, before it is sealed. Each content has a random name, and names those that it came from. So a host
/// can tell whether another content is newer than its own, older, or of another branch, whatever the database's
/// versions say after a failover.
struct RowContent: Sendable, Equatable {
    typealias Name = [UInt8]

    static let nameLength = 16
    static let mostAncestors = 16
    let name: Name
    /// The nearest first.
    let ancestors: [Name]
    /// The slot's text; nil if the slot was emptied.
    let text: Secret?
    /// The name of the content with which the session began, at a sign-in.
    var session: Name
    /// The number of removed hosts that the sender knew when it wrote the text.
    var removals = 0
    /// How often the text was changed without a request, since its tokens came: each time made another version of the row.
    var edits = 0
    /// The text says that the provider has ended the session.
    var isEnd = false
    /// What the database's clock showed when its host was booted, in milliseconds since 1970 (negative if it is wrong);
    /// nil if that was not known. With it other hosts read the text's times since boot.
    var clock: Int?
    func comes(from other: RowContent) -> Bool { ancestors.contains(other.name) }

    /// Whether a host that has this content knows of a token that the host did not try which wrote the other one, an end.
    func outlives(_ end: RowContent) -> Bool { end.isEnd && !isEnd && text != nil && !end.comes(from: self) }

    /// Whether it is of the same session, and came later.
    func continues(_ other: RowContent) -> Bool { session == other.session && comes(from: other) }

    /// What is to be added to the text's times since boot for a host with this clock; nil if one of the two is not known.
    func shift(to clock: Int?) -> Duration? {
        guard let clock, let own = self.clock else { return nil }
        return .milliseconds(own) - .milliseconds(clock)
    }
}

extension RowContent {
    /// New content in the place of another one. `others` are contents of other branches that it comes after, too.
    /// `begins`: a session begins with it. `isEdited`: the text has no tokens that the former one did not have.
    /// `isEnd`: the provider has ended the session.
    init(
        _ text: Secret?, after former: RowContent?, and others: [Name] = [], name: Name, begins: Bool = false,
        isEdited: Bool = false, isEnd: Bool = false, removals: Int = 0, clock: Int? = nil
    ) {
        self.name = name
        self.isEnd = isEnd
        self.clock = clock
        self.removals = isEdited ? former?.removals ?? 0 : removals
        edits = isEdited ? (former?.edits ?? 0) + 1 : 0
        session = begins ? name : former?.session ?? name
        self.text = text
        let names = (former.map { [$0.name] } ?? []) + others + (former?.ancestors ?? [])
        ancestors = Array(names.prefix(RowContent.mostAncestors))
    }

    /// The encoding: a line that says what it is, a line of JSON, and the text.
    func encoded(adding more: [JSONObject.Member] = []) -> Secret {
        var header: JSONObject = [
            "name": Hex.text(name), "ancestors": ancestors.map(Hex.text),
            "session": session == name ? nil : Hex.text(session), "removed": text == nil ? true : nil,
            "removals": removals > 0 ? removals : nil, "edits": edits > 0 ? edits : nil, "ended": isEnd ? true : nil,
            "clock": clock,
        ]
        header.members += more
        var bytes = RowContent.magic + JSON.object(header).serialized() + [0x0A]
        if let text { bytes += text.revealedBytes() }
        return Secret(bytes: bytes)
    }

    static func read(_ encoded: Secret) -> (content: RowContent, header: JSONObject)? {
        let bytes = encoded.revealedBytes()
        guard bytes.starts(with: magic), let end = bytes[magic.count...].firstIndex(of: 0x0A),
            let header = (try? JSON(parsing: bytes[magic.count..<end]))?.object,
            let name = header["name"]?.string.flatMap(Hex.bytes), name.count == nameLength,
            let names = header["ancestors"]?.array, names.count <= mostAncestors
        else { return nil }
        let ancestors = names.compactMap { $0.string.flatMap(Hex.bytes) }
        guard ancestors.count == names.count, ancestors.allSatisfy({ $0.count == nameLength }) else { return nil }
        let text = header["removed"] == true ? nil : Secret(bytes: bytes[(end + 1)...])
        let (removals, edits) = (header["removals"]?.integer ?? 0, header["edits"]?.integer ?? 0)
        let clock = header["clock"]?.integer
        guard removals >= 0, (0..<1 << 32).contains(edits), clock.map({ (-1 << 50..<1 << 50).contains($0) }) ?? true,
            let session = header["session"].map({ $0.string.flatMap(Hex.bytes) }) ?? name
        else { return nil }
        let content = RowContent(
            name: name, ancestors: ancestors, text: text, session: session, removals: removals, edits: edits,
            isEnd: header["ended"] == true, clock: clock)
        return (content, header)
    }

    private static let magic = Array("ringback: row 1\n".utf8)
}

enum Hex {
    static func text(_ bytes: [UInt8]) -> String { Digest.hex(bytes) }

    /// Nil if it is not an even number of digits in lower case: a text has one form.
    static func bytes(_ text: String) -> [UInt8]? {
        let digits = text.utf8.compactMap { (0x41...0x46).contains($0) ? nil : $0.hexValue }
        guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}

/// Seals contents, bound to owner, row and version: one in another place, under a newer number or cut does not open.
struct RowSealing: Sendable {
    let dataKey: Secret
    let owner: String

    func key(of slot: VaultSlot) throws(VaultError) -> RowKey {
        let names =
            switch slot.kind {
            case .session: ["session", slot.account, slot.binding]
            case .registration: ["registration", slot.account, slot.binding]
            // One for all hosts, of which each has its record bound to its own role.
            case .hostsKey, .people, .provider: [slot.account]
            }
        let parts = names.map { "\($0.utf8.count):\($0)" }
        return try VaultError.mapping { () throws(CryptographyError) in
            let key = try KeyDerivation.derive(
                from: dataKey, purpose: "ringback: row 1 " + parts.joined(), length: 32)
            return RowKey(bytes: key.revealedBytes())
        }
    }

    func seal(_ content: RowContent, as key: RowKey, version: Int64) throws(VaultError) -> [UInt8] {
        try VaultError.mapping { () throws(CryptographyError) in
            try SealedBox.seal(content.encoded(), with: dataKey, context: context(key, version))
        }
    }

    /// Nil if it was sealed with another key, or for another place or version, or was changed.
    func open(_ sealed: [UInt8], as key: RowKey, version: Int64) throws(VaultError) -> RowContent? {
        try VaultError.mapping { () throws(CryptographyError) in
            let text = try SealedBox.open(sealed, with: dataKey, context: context(key, version))
            return text.flatMap { RowContent.read($0)?.content }
        }
    }

    private func context(_ key: RowKey, _ version: Int64) -> [UInt8] {
        let owner = Array(owner.utf8)
        let numbers = [UInt64(owner.count), UInt64(bitPattern: version)].map { number in
            stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> UInt64($0)) }
        }
        return Array("ringback: row content 1".utf8) + numbers[0] + owner + key.bytes + numbers[1]
    }
}

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
