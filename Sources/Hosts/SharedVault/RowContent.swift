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
        var header = JSONObject([
            .init("name", .string(Hex.text(name))), .init("ancestors", .array(ancestors.map { .string(Hex.text($0)) })),
        ])
        if session != name { header["session"] = .string(Hex.text(session)) }
        if text == nil { header["removed"] = true }
        if removals > 0 { header["removals"] = .integer(removals) }
        if edits > 0 { header["edits"] = .integer(edits) }
        if isEnd { header["ended"] = true }
        header["clock"] = clock.map { .integer($0) }
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
