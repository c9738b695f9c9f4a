import RingbackBase

@testable import SessionVault

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
        guard case .file(let file) = try SealedFile.read(sealed, .session, key: key) else {
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
        if case .file = try SealedFile.read(bytes, .session, key: key) { true } else { false }
    }

    private static func checkReading(_ bytes: [UInt8]) throws {
        let session = SealedFile.split(bytes, .session)
        let vaultKey = SealedFile.split(bytes, .vaultKey)
        if case .success = session, case .success = vaultKey {
            throw LawBroken(law: "a file is of one kind")
        }
        guard case .success(let parts) = session else { return }
        try hold("the parts are the whole", 30 + parts.header.count + parts.box.count == bytes.count)
        try hold("a header has a bound", parts.header.count <= SealedFile.maximumHeader)
        try hold("a box has a tag", parts.box.count >= 28)
        try hold("the check value is found", SealedFile.check(of: bytes).map { Array($0) } == parts.check)
        let stranger = try SealingKey(Secret(bytes: [UInt8](repeating: 7, count: 32)))
        try hold("another key opens nothing", !opens(bytes, stranger))
    }
}
