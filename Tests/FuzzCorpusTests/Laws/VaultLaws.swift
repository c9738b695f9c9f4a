import Cryptography
import KeptFiles
import PostgresClient
import RingbackBase
import RowDatabase

@testable import SessionVault
@testable import SharedVault

/// Sealed sessions: bytes that nobody sealed never open. An input is also taken as a header and a text to seal (its
/// first line and the rest), so that what opens is reached as well.
enum SealedFileLaw {
    private static let key = Result { try SealingKey(Secret(bytes: Array(0..<32))) }

    static func check(_ bytes: [UInt8]) throws {
        try checkReading(bytes)
        let (line, text) = bytes.headLineAndRest
        guard let header = (try? JSON(parsing: Array(line.utf8)))?.object, text.count <= 4_096 else { return }
        let key = try key.get()
        let sealed = try SealedFile(header: header, text: Secret(bytes: text)).sealed(.session, with: key)
        guard let file = try? SealedFile.read(sealed, .session, key: key) else {
            throw LawBroken(law: "what was sealed opens")
        }
        try hold("the text comes back", file.text == Secret(bytes: text))
        try hold("the header comes back", JSON.object(file.header).serialized() == JSON.object(header).serialized())
        try checkReading(sealed)
        for index in stride(from: text.count % 5, to: sealed.count, by: max(1, sealed.count / 16)) {
            var changed = sealed
            changed[index] ^= UInt8(1 << (text.count % 8))
            let isOpen = try opens(changed, key)
            // The check value only says which key it was.
            try hold("what was changed does not open", isOpen == (10..<26).contains(index))
        }
        try hold("what was cut off does not open", !opens(sealed.dropLast(), key))
        try hold("nothing may follow", !opens(sealed + [0], key))
    }

    private static func opens(_ bytes: [UInt8], _ key: SealingKey) throws -> Bool {
        do throws(SealedFile.Failure) { _ = try SealedFile.read(bytes, .session, key: key) } catch {
            if error == .cryptography { throw error }
            return false
        }
        return true
    }

    private static func checkReading(_ bytes: [UInt8]) throws {
        guard let parts = try? SealedFile.split(bytes, .session) else { return }
        try hold("a file is of one kind", (try? SealedFile.split(bytes, .vaultKey)) == nil)
        try hold("the parts are the whole", 30 + parts.header.count + parts.box.count == bytes.count)
        try hold("a header has a bound", parts.header.count <= SealedFile.maximumHeader)
        try hold("a box has a tag", parts.box.count >= 28)
        try hold("the check value is found", SealedFile.check(of: bytes).map { Array($0) } == parts.check)
        let stranger = try SealingKey(Secret(bytes: [UInt8](repeating: 7, count: 32)))
        try hold("another key opens nothing", !opens(bytes, stranger))
    }
}

/// The vault's key at rest. An input is a file, and also the header of one: sealed here, it must be read as it was meant.
enum VaultKeyLaw {
    private static let keys = Result {
        (data: try SealingKey(Secret(bytes: Array(0..<32))), wrapping: Secret(bytes: Array(64..<96)))
    }

    static func check(_ bytes: [UInt8]) throws {
        try checkFile(bytes)
        guard let header = (try? JSON(parsing: bytes))?.object, bytes.count <= SealedFile.maximumHeader else { return }
        let keys = try keys.get()
        let file = SealedFile(header: header, text: keys.data.secret)
        try checkFile(file.sealed(.vaultKey, with: SealingKey(keys.wrapping)))
    }

    private static func checkFile(_ bytes: [UInt8]) throws {
        guard let file = try? VaultKeyFile(parsing: bytes) else { return }
        try hold("a key's identifier can be a name", VaultKeyFile.isKeyID(file.keyID))
        try hold("a source holds keys", file.source != .auto && file.source != .memory)
        let keys = try keys.get()
        let written = try file.sealed(keys.data, with: keys.wrapping)
        let again = try VaultKeyFile(parsing: written)
        try hold("what is written names the same key", again.source == file.source && again.keyID == file.keyID)
        try hold(
            "the parameters come back",
            JSON.object(again.parameters).serialized() == JSON.object(file.parameters).serialized())
        try hold("the key comes back", VaultKeyFile.open(written, with: keys.wrapping).secret == keys.data.secret)
        do throws(SealedFile.Failure) {
            _ = try VaultKeyFile.open(written, with: keys.data.secret)
        } catch .foreign {
            return
        }
        throw LawBroken(law: "another key opens nothing")
    }
}

/// Who holds the state directory, as a lock file says: what is written is read as the same, and can be shown.
enum LeaseLaw {
    static func check(_ bytes: [UInt8]) throws {
        guard let lease = StateLease(parsing: bytes) else { return }
        try hold("a host can be shown", lease.host.isPrintableASCII && (1...255).contains(lease.host.utf8.count))
        try hold("a process has a number", lease.pid > 0)
        let written = lease.serialized()
        try hold("what is written is read as the same", StateLease(parsing: written) == lease)
        try hold("it ends in a line's end", written.last == 0x0A && written.count >= StateLease.size)
        _ = lease.isAlive
    }
}

/// The record of the kept files, as it rests in the state directory.
enum KeptFilesLaw {
    static func check(_ bytes: [UInt8]) throws {
        let entries = FileEntry.decode(bytes)
        try hold("a path is absolute", entries.keys.allSatisfy { $0.hasPrefix("/") && !$0.utf8.contains(0) })
        try hold("a digest has 32 bytes", entries.values.allSatisfy { $0.digests.allSatisfy { $0.count == 32 } })
        try hold("what is written is read as the same", FileEntry.decode(FileEntry.encode(entries)) == entries)
    }
}

/// What a database returns for rows: values with a byte each for the length, 255 for null; ten make a line.
enum SharedRowLaw {
    static func check(_ bytes: [UInt8]) throws {
        var values: [[UInt8]?] = []
        var rest = bytes[...]
        while let length = rest.popFirst() {
            values.append(length == 255 ? nil : Array(rest.prefix(Int(length))))
            if length != 255 { rest = rest.dropFirst(Int(length)) }
        }
        let lines = stride(from: 0, to: values.count, by: 10).map { Array(values[$0..<min($0 + 10, values.count)]) }
        guard let parts = try? RowParts(PostgresRows(lines)) else { return }
        for (key, row) in parts.rows {
            try hold("a row is at its key", row.key == key && key.bytes.count == 32)
            try hold("versions begin with 1, epochs with 0", row.version >= 1 && row.epoch >= 0)
            let ids = row.openAttempts.map(\.id) + row.candidates.map(\.attempt) + (row.lease.map { [$0.id] } ?? [])
            try hold("leases have names of 16 bytes", ids.allSatisfy { $0.bytes.count == 16 })
            try hold(
                "no time is negative",
                row.openAttempts.allSatisfy { $0.age >= .zero } && row.lease?.left ?? .zero >= .zero)
            let ages = row.openAttempts.map(\.age)
            try hold("attempts are in order", ages == ages.sorted())
        }
        let lineKinds = lines.count { $0.count == 10 }
        try hold("nothing is made up", parts.rows.count <= lineKinds && parts.slots.count <= lineKinds)
    }
}

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

/// What a person types as a host's code, what a host keeps of its joining, what the database shows of another host, and the
/// record of removed hosts.
enum JoiningLaw {
    private static let code = HostCode([UInt8](repeating: 7, count: 13))
    private static let agreement = Secret(bytes: [UInt8](repeating: 9, count: AgreementKey.length))

    static func check(_ bytes: [UInt8]) throws {
        let text = Secret(bytes: bytes)
        if let typed = HostCode(text) {
            try hold("a code is read as it is shown", HostCode(Secret(typed.revealed())) == typed)
            try hold("a code has four groups", typed.revealed().utf8.count == 23)
        }
        if let record = JoiningRecord(reading: text) {
            try hold("a record is read as it was written", JoiningRecord(reading: record.encoded()) == record)
        }
        if let record = RemovalRecord(reading: text) {
            try hold("removals are read as they were written", RemovalRecord(reading: record.encoded()) == record)
        }
        try hold("nothing proves itself", try code.publicKey(in: bytes, of: "role") == nil)
        let key = try AgreementKey(secret: agreement)
        try hold("nothing opens", try code.open(bytes, with: key, of: "role", owner: "ada") == nil)
    }
}
