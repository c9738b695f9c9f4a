import RingbackBase
import SessionVault

@testable import SharedVault

/// What a host keeps of a shared slot, and what a row holds before it is sealed.
enum SpoolEntryLaw {
    private static let sealing = RowSealing(dataKey: Secret(bytes: [UInt8](repeating: 7, count: 32)), owner: "ada")
    private static let slot = VaultSlot(account: "work", binding: "https://issuer.example", kind: .session)

    static func check(_ bytes: [UInt8]) throws {
        let text = Secret(bytes: bytes)
        if let entry = SpoolEntry.read(text) {
            try hold("an entry is read as it was written", SpoolEntry.read(entry.encoded()) == entry)
            try hold("versions are not negative", entry.version >= 0)
        }
        guard let content = RowContent.read(text)?.content else { return }
        try hold("content is read as it was written", RowContent.read(content.encoded())?.content == content)
        try hold(
            "names have 16 bytes",
            ([content.name] + content.ancestors).allSatisfy { $0.count == RowContent.nameLength }
                && content.ancestors.count <= RowContent.mostAncestors)
        try holdSealed(content)
    }

    /// Sealed content opens in its place alone.
    private static func holdSealed(_ content: RowContent) throws {
        let key = try sealing.key(of: slot)
        let sealed = try sealing.seal(content, as: key, version: 3)
        try hold("what was sealed opens", try sealing.open(sealed, as: key, version: 3) == content)
        let other = RowKey(bytes: [UInt8](repeating: 1, count: 32))
        let stranger = RowSealing(dataKey: sealing.dataKey, owner: "eve")
        try hold("no other version", try sealing.open(sealed, as: key, version: 4) == nil)
        try hold("no other row", try sealing.open(sealed, as: other, version: 3) == nil)
        try hold("no other owner", try stranger.open(sealed, as: key, version: 3) == nil)
        try hold("not cut", try sealing.open(Array(sealed.dropLast()), as: key, version: 3) == nil)
        var flipped = sealed
        flipped[sealed.count / 2] ^= 1
        try hold("not changed", try sealing.open(flipped, as: key, version: 3) == nil)
    }
}
