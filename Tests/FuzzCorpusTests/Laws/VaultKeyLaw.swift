import RingbackBase

@testable import SessionVault

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
        do {
            _ = try VaultKeyFile.open(written, with: keys.data.secret)
        } catch VaultKeyFile.Failure.otherKey {
            return
        }
        throw LawBroken(law: "another key opens nothing")
    }
}
