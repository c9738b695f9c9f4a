// What a file in the vault's directory is, is in its name:
//
//     ACCOUNT+HASH.sealed                     a session
//     ACCOUNT+HASH.registration               a client registration; with the same endings as a session
//     ACCOUNT+HASH.people                     what was known of the people who signed in; likewise
//     ACCOUNT+HASH.sealed.next                a change of it is announced, and here is room for it
//     ACCOUNT+HASH.sealed.tmp                 being written
//     ACCOUNT+HASH.sealed.damaged-N           set aside
//     retired-NUMBER+ACCOUNT+HASH.sealed      left its slot; by age

internal import Cryptography
internal import StrictJSON

/// The names of one slot's files, and its header.
struct SlotFiles: Equatable {
    let live: String
    let kind: SealedFile.Kind
    var next: String { live + SlotFiles.nextSuffix }

    private static let suffixes: [(kind: SealedFile.Kind, text: String)] = [
        (.session, sealedSuffix), (.registration, ".registration"), (.people, ".people"),
    ]
    private static let sealedSuffix = ".sealed"
    private static let nextSuffix = ".next"
    private static let retiredPrefix = "retired-"
    /// Wide enough for a sign-out every millisecond for three hundred years.
    private static let digits = 13

    /// Throws for an account that is no account's name, or a binding that is longer than any.
    init(_ slot: VaultSlot) throws(VaultError) {
        // The name becomes a file's name: nothing but these characters, whatever the caller has checked.
        let isName =
            (1...64).contains(slot.account.utf8.count)
            && slot.account.utf8.allSatisfy { SlotFiles.isLetterOrDigit($0) || ".-_".utf8.contains($0) }
            && slot.account.utf8.first.map(SlotFiles.isLetterOrDigit) == true
        guard isName else { throw .refused(reason: "\"\(slot.account.prefix(64))\" is no account's name.") }
        guard slot.binding.utf8.count <= 8_192 else {
            throw .refused(reason: "What \(slot.account) is bound to is longer than 8,192 bytes.")
        }
        let hash = Digest.hex(Digest.sha256(slot.binding).prefix(16))
        let kind = SealedFile.Kind(slot.kind)
        let suffix = SlotFiles.suffixes.first { $0.kind == kind }?.text ?? SlotFiles.sealedSuffix
        live = "\(slot.account)+\(hash)\(suffix)"
        self.kind = kind
    }

    func retired(_ number: Int) -> String {
        let text = String(number)
        let zeros = String(repeating: "0", count: max(0, SlotFiles.digits - text.utf8.count))
        return "\(SlotFiles.retiredPrefix)\(zeros)\(text)+\(live)"
    }

    func damaged(_ number: Int) -> String { "\(live).damaged-\(number)" }

    static func header(_ slot: VaultSlot) -> JSONObject {
        JSONObject([
            JSONObject.Member("account", .string(slot.account)), JSONObject.Member("binding", .string(slot.binding)),
        ])
    }

    /// The slot that a sealed file was written for.
    static func slot(_ header: JSONObject, _ kind: SealedFile.Kind = .session) -> VaultSlot? {
        guard let account = header["account"]?.string, let binding = header["binding"]?.string else { return nil }
        guard let kind = VaultSlot.Kind(kind) else { return nil }
        return VaultSlot(account: account, binding: binding, kind: kind)
    }

    // MARK: Names found in the directory

    static func isLive(_ name: String) -> Bool { kind(ofLive: name) != nil }

    /// True if nothing but the vault's key brings back what the file holds.
    static func isPrecious(_ name: String) -> Bool {
        isRetired(name) || kind(ofLive: name).map { $0 != .people } ?? false
    }

    /// What a live file holds; nil for other files.
    static func kind(ofLive name: String) -> SealedFile.Kind? {
        parts(name) == 2 ? suffixes.first { name.hasSuffix($0.text) }?.kind : nil
    }

    static func isRetired(_ name: String) -> Bool { retiredNumber(name) != nil }

    static func isTemporary(_ name: String) -> Bool {
        suffixes.contains { name.hasSuffix($0.text + SyncedDirectory.temporarySuffix) }
    }

    /// The live file that a mark belongs to.
    static func live(ofNext name: String) -> String? {
        guard name.hasSuffix(nextSuffix) else { return nil }
        let live = String(name.dropLast(nextSuffix.count))
        return isLive(live) ? live : nil
    }

    /// The name of the slot's file that a retired one was made of.
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

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: false
        }
    }

    private static func parts(_ name: String) -> Int { name.split(separator: "+").count }
}

extension SealedFile.Kind {
    init(_ kind: VaultSlot.Kind) {
        switch kind {
        case .session: self = .session
        case .registration: self = .registration
        case .people: self = .people
        }
    }
}

extension VaultSlot.Kind {
    /// Nil for what rests in no slot.
    init?(_ kind: SealedFile.Kind) {
        switch kind {
        case .session: self = .session
        case .registration: self = .registration
        case .people: self = .people
        case .vaultKey: return nil
        }
    }
}
