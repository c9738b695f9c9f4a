// All sessions are sealed with one random data key. It is stored in `vault.key`, wrapped by a key of the source that
// the header names. When the key is moved to another source, only this file is rewritten.

internal import Cryptography
internal import Secrets
internal import StrictJSON

/// The unencrypted header of `vault.key`. It is authenticated only after the key was unwrapped.
struct VaultKeyFile: Sendable, Equatable {
    static let name = "vault.key"
    /// The maximum size of the file in bytes.
    static let maximumSize = SealedFile.maximumHeader + 4_096

    var source: KeySourceChoice
    /// The wrapping key's identifier in its source: hexadecimal digits, because sources use it in names.
    var keyID: String
    /// Parameters of the source.
    var parameters: JSONObject

    enum Failure: Error, Equatable {
        case unreadable(SealedFile.SplitFailure)
        /// The wrapping key is not the one with which the file was made.
        case otherKey
    }

    static func newKeyID() -> String { Digest.hex(RandomToken.bytes(16)) }

    static func isKeyID(_ text: String) -> Bool {
        text.utf8.count == 32 && text.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) }
    }

    init(source: KeySourceChoice, keyID: String, parameters: JSONObject) {
        self.source = source
        self.keyID = keyID
        self.parameters = parameters
    }

    init(parsing bytes: [UInt8]) throws(SealedFile.SplitFailure) {
        let parts: SealedFile.Parts
        switch SealedFile.split(bytes, .vaultKey) {
        case .success(let found): parts = found
        case .failure(let failure): throw failure
        }
        guard let header = (try? JSON(parsing: parts.header))?.object else {
            throw .damaged(.invalidHeader)
        }
        try self.init(header: header)
    }

    init(header: JSONObject) throws(SealedFile.SplitFailure) {
        guard let source = header["source"]?.string.flatMap(KeySourceChoice.init(rawValue:)),
            source != .auto, source != .memory
        else { throw .damaged(.noKeySource) }
        guard let keyID = header["id"]?.string, VaultKeyFile.isKeyID(keyID) else {
            throw .damaged(.noKeyName)
        }
        guard let parameters = header["parameters"]?.object else { throw .damaged(.noParameters) }
        self.init(source: source, keyID: keyID, parameters: parameters)
    }

    var header: JSONObject {
        JSONObject([
            JSONObject.Member("source", .string(source.rawValue)), JSONObject.Member("id", .string(keyID)),
            JSONObject.Member("parameters", .object(parameters)),
        ])
    }

    /// The content of the file with the wrapped data key.
    func sealed(_ dataKey: SealingKey, with wrappingKey: Secret) throws(CryptographyError) -> [UInt8] {
        try SealedFile(header: header, text: dataKey.secret).sealed(.vaultKey, with: SealingKey(wrappingKey))
    }

    /// The data key of a file. Throws ``Failure`` or an error of libcrypto.
    static func open(_ bytes: [UInt8], with wrappingKey: Secret) throws -> SealingKey {
        switch try SealedFile.read(bytes, .vaultKey, key: SealingKey(wrappingKey)) {
        case .file(let file):
            guard file.text.count == SealedBox.keyLength else { throw Failure.unreadable(.damaged(.noKey)) }
            return try SealingKey(file.text)
        case .newer(let version): throw Failure.unreadable(.newer(version: version))
        case .foreign: throw Failure.otherKey
        case .damaged(let damage): throw Failure.unreadable(.damaged(damage))
        }
    }
}
