// File names in the vault's directory:
//
//     ACCOUNT+HASH.sealed                     a session
//     ACCOUNT+HASH.registration               a client registration
//     ACCOUNT+HASH.people                     the known users who have signed in
//     providers+HASH.provider                 what was learned of a provider
//     ACCOUNT+HASH.hostskey                   the data key of rows that hosts share
//     ACCOUNT+HASH.sealed.next                a change is announced; the file has reserved space for it
//     ACCOUNT+HASH.sealed.tmp                 being written
//     ACCOUNT+HASH.sealed.damaged-N           could not be read, and was renamed
//     retired-NUMBER+ACCOUNT+HASH.sealed      a retired session; numbers increase
//
// The endings `.next`, `.tmp` and `.damaged-N` are also used with the endings of the other kinds.

internal import Cryptography
internal import RingbackBase

struct SlotFiles: Equatable {
    let live: String
    let kind: VaultSlot.Kind
    var next: String { live + SlotFiles.nextSuffix }

    private static let suffixes: [(kind: VaultSlot.Kind, text: String)] = [
        (.session, sealedSuffix), (.registration, ".registration"), (.people, ".people"),
        (.provider, ".provider"), (.hostsKey, ".hostskey"),
    ]
    private static let sealedSuffix = ".sealed"
    private static let nextSuffix = ".next"
    private static let retiredPrefix = "retired-"
    /// Enough for one retirement per millisecond for three hundred years.
    private static let digits = 13

    /// Throws `refused` for an invalid account name or a binding of more than 8,192 bytes.
    init(_ slot: VaultSlot) throws(VaultError) {
        // The name becomes part of a file name, so only these characters are allowed, whatever the caller has checked.
        let isName =
            (1...64).contains(slot.account.utf8.count)
            && slot.account.utf8.allSatisfy { SlotFiles.isLetterOrDigit($0) || ".-_".utf8.contains($0) }
            && slot.account.utf8.first.map(SlotFiles.isLetterOrDigit) == true
        guard isName else { throw .refused(.notAnAccountName(String(slot.account.prefix(64)))) }
        guard slot.binding.utf8.count <= 8_192 else { throw .refused(.bindingTooLong(account: slot.account)) }
        let hash = Digest.hex(Digest.sha256(slot.binding).prefix(16))
        let suffix = SlotFiles.suffixes.first { $0.kind == slot.kind }?.text ?? SlotFiles.sealedSuffix
        live = "\(slot.account)+\(hash)\(suffix)"
        kind = slot.kind
    }

    func retired(_ number: Int) -> String {
        let text = String(number)
        let zeros = String(repeating: "0", count: max(0, SlotFiles.digits - text.utf8.count))
        return "\(SlotFiles.retiredPrefix)\(zeros)\(text)+\(live)"
    }

    func damaged(_ number: Int) -> String { "\(live).damaged-\(number)" }
    static func header(_ slot: VaultSlot) -> JSONObject { ["account": slot.account, "binding": slot.binding] }

    static func slot(_ header: JSONObject, _ kind: VaultSlot.Kind = .session) -> VaultSlot? {
        guard let account = header["account"]?.string, let binding = header["binding"]?.string else { return nil }
        return VaultSlot(account: account, binding: binding, kind: kind)
    }

    static func isLive(_ name: String) -> Bool { kind(ofLive: name) != nil }

    /// True if the content cannot be obtained again without the vault's key.
    static func isPrecious(_ name: String) -> Bool {
        isRetired(name) || kind(ofLive: name).map { $0 != .people && $0 != .provider } ?? false
    }

    /// Nil for other files.
    static func kind(ofLive name: String) -> VaultSlot.Kind? {
        parts(name) == 2 ? suffixes.first { name.hasSuffix($0.text) }?.kind : nil
    }

    static func isRetired(_ name: String) -> Bool { retiredNumber(name) != nil }

    static func isTemporary(_ name: String) -> Bool {
        suffixes.contains { name.hasSuffix($0.text + SyncedDirectory.temporarySuffix) }
    }

    static func live(ofNext name: String) -> String? {
        guard name.hasSuffix(nextSuffix) else { return nil }
        let live = String(name.dropLast(nextSuffix.count))
        return isLive(live) ? live : nil
    }

    static func live(ofRetired name: String) -> String? {
        guard isRetired(name) else { return nil }
        return name.split(separator: "+", maxSplits: 1).dropFirst().first.map(String.init)
    }

    static func retiredNumber(_ name: String) -> Int? {
        guard name.hasPrefix(retiredPrefix), name.hasSuffix(sealedSuffix), parts(name) == 3, !name.contains("/") else {
            return nil
        }
        return Int(name.dropFirst(retiredPrefix.count).prefix { $0 != "+" })
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool { byte.isDigit || (0x61...0x7A).contains(byte) }
    private static func parts(_ name: String) -> Int { name.split(separator: "+").count }
}

extension SealedFile.Kind {
    init(_ kind: VaultSlot.Kind) { rawValue = kind.rawValue }
}
