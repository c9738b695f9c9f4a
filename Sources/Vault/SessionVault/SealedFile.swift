// The format of all sealed files, of sessions as well as of the vault's key:
//
//     bytes  0 to  7   "ringback"
//            8         kind: 'S' session, 'R' client registration, 'P' known users, 'H' the data key of shared
//                      rows, 'K' the vault's key
//            9         format version, 1
//           10 to 25   check value of the key that sealed it
//           26 to 29   length of the header, big-endian
//           30 ...     header: a JSON object, not encrypted
//           then       nonce (12), ciphertext, tag (16): AES-256-GCM to the end of the file
//
// Everything before the nonce except the check value is authenticated. The check value only distinguishes "another key"
// from "damaged" after decryption has failed.

internal import Cryptography
internal import RingbackBase

struct SealingKey: Sendable {
    static let checkLength = 16
    let secret: Secret
    /// Identifies the key without revealing it: equal keys have equal check values.
    let check: [UInt8]

    init(_ secret: Secret) throws(CryptographyError) {
        self.secret = secret
        let purpose = "ringback sealing key check 1"
        check = try KeyDerivation.derive(from: secret, purpose: purpose, length: SealingKey.checkLength).revealedBytes()
    }

    static func random() throws(CryptographyError) -> SealingKey {
        try SealingKey(Secret(bytes: RandomToken.bytes(SealedBox.keyLength)))
    }
}

struct SealedFile: Sendable, Equatable {
    /// What a file holds, as in its byte 8.
    struct Kind: Equatable {
        static let session = Kind(.session)
        static let vaultKey = Kind(rawValue: 0x4B)
        let rawValue: UInt8
    }

    enum Failure: Error, Equatable {
        /// Written in a newer version of the format.
        case newer(version: Int)
        /// Sealed with another key, according to the check value.
        case foreign
        /// The content was changed or is malformed.
        case damaged(FileDamage)
        /// The cryptography library failed, which says nothing about the file.
        case cryptography

        static func mapping<Value>(_ body: () throws(CryptographyError) -> Value) throws(Failure) -> Value {
            do throws(CryptographyError) { return try body() } catch { throw .cryptography }
        }
    }

    /// The parts that can be read without the key. None of them is authenticated yet.
    struct Parts: Equatable {
        var check: [UInt8]
        /// The JSON text.
        var header: ArraySlice<UInt8>
        var context: [UInt8]
        var box: ArraySlice<UInt8>
    }

    /// In bytes.
    static let maximumText = 1 << 20
    static let maximumHeader = 1 << 16
    static let maximumSize = prologue + maximumHeader + SealedBox.overhead + maximumText
    static let version: UInt8 = 1
    private static let magic = Array("ringback".utf8)
    static let checkEnd = 26
    private static let prologue = 30
    /// One reader for each format version. The reader of a released version is never removed.
    private static let readers: [UInt8: @Sendable ([UInt8]) -> Parts?] = [1: readVersion1]
    var header: JSONObject
    var text: Secret

    func sealed(_ kind: Kind, with key: SealingKey) throws(CryptographyError) -> [UInt8] {
        let json = JSON.object(header).serialized()
        let length = SealedFile.bigEndian(json.count)
        let start = SealedFile.magic + [kind.rawValue, SealedFile.version]
        let box = try SealedBox.seal(text, with: key.secret, context: start + length + json)
        return start + key.check + length + json + box
    }

    static func read(_ bytes: [UInt8], _ kind: Kind, key: SealingKey) throws(Failure) -> SealedFile {
        let parts = try split(bytes, kind)
        let text = try Failure.mapping { () throws(CryptographyError) in
            try SealedBox.open(parts.box, with: key.secret, context: parts.context)
        }
        guard let text else { throw parts.check == key.check ? .damaged(.changed) : .foreign }
        guard let header = (try? JSON(parsing: parts.header))?.object else { throw .damaged(.invalidHeader) }
        return SealedFile(header: header, text: text)
    }

    /// Nil if the bytes are not a sealed file.
    static func check(of bytes: [UInt8]) -> ArraySlice<UInt8>? {
        guard bytes.starts(with: magic), bytes.count >= checkEnd else { return nil }
        return bytes[10..<checkEnd]
    }

    /// Needs no key.
    static func split(_ bytes: [UInt8], _ kind: Kind) throws(Failure) -> Parts {
        guard bytes.count >= 10 else { throw .damaged(.tooShort) }
        guard bytes.starts(with: magic), bytes[8] == kind.rawValue else { throw .damaged(.otherKind) }
        guard let reader = readers[bytes[9]] else {
            throw bytes[9] > version ? .newer(version: Int(bytes[9])) : .damaged(.invalidVersion)
        }
        guard let parts = reader(bytes) else { throw .damaged(.invalidLengths) }
        return parts
    }

    @Sendable private static func readVersion1(_ bytes: [UInt8]) -> Parts? {
        guard bytes.count >= prologue + SealedBox.overhead, bytes.count <= maximumSize else { return nil }
        let length = bytes[checkEnd..<prologue].reduce(0) { $0 << 8 | Int($1) }
        guard length <= maximumHeader, length <= bytes.count - prologue - SealedBox.overhead else { return nil }
        let header = bytes[prologue..<(prologue + length)]
        return Parts(
            check: Array(bytes[10..<checkEnd]), header: header,
            context: Array(bytes[..<10]) + Array(bytes[checkEnd..<prologue]) + header,
            box: bytes[(prologue + length)...])
    }

    private static func bigEndian(_ number: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }
}

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
