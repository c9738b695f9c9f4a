internal import Cryptography
internal import Glibc
public import Secrets
public import StrictJSON

/// Derives the key from the credential `ringback-vault-key` that systemd passes to the unit (`LoadCredential=`,
/// `LoadCredentialEncrypted=`). A digest of the credential is recorded, so that another credential can be distinguished
/// from a damaged vault. This source cannot create credentials; it uses the existing one.
public struct SystemdCredentialSource: KeySource {
    /// The credential's name in the unit.
    public static let credential = "ringback-vault-key"
    private static let minimumLength = 32
    private static let maximumLength = 1 << 20

    private let directory: String?

    /// - Parameter directory: the value of `CREDENTIALS_DIRECTORY`; nil if it is not set.
    public init(directory: String?) {
        self.directory = directory
    }

    public var choice: KeySourceChoice { .systemdCredential }
    public var protection: VaultProtection { .systemdCredential }

    public func canHoldNewKey() async -> Bool { (try? read()) != nil }

    public func create(
        _ id: String, passphrase: Secret?
    ) async throws(KeySourceError) -> (key: Secret, parameters: JSONObject) {
        let credential = try read()
        let parameters = JSONObject([
            JSONObject.Member("credential", .string(try SystemdCredentialSource.identifier(credential)))
        ])
        return (try SystemdCredentialSource.derive(credential, "key 1 \(id)", 32), parameters)
    }

    public func fetch(
        _ id: String, parameters: JSONObject, passphrase: Secret?
    ) async throws(KeySourceError) -> Secret {
        let credential = try read()
        guard parameters["credential"]?.string == (try SystemdCredentialSource.identifier(credential)) else {
            throw .locked(.otherCredential)
        }
        return try SystemdCredentialSource.derive(credential, "key 1 \(id)", 32)
    }

    /// The credential belongs to the unit, so nothing is removed.
    public func remove(_ id: String, parameters: JSONObject) async -> Bool { true }

    private func read() throws(KeySourceError) -> Secret {
        let name = SystemdCredentialSource.credential
        guard let directory, !directory.isEmpty else {
            throw .absent(.noCredentials)
        }
        var bytes: [UInt8]
        do throws(FileFailure) {
            let place = try SyncedDirectory(opening: directory)
            guard let found = try place.read(name, atMost: SystemdCredentialSource.maximumLength) else {
                throw FileFailure(action: .read, path: "\(directory)/\(name)", code: ENOENT)
            }
            bytes = found
        } catch {
            throw error.code == ENOENT ? .absent(.noCredential) : .failed(.file(error))
        }
        defer { bytes.erase() }
        guard bytes.count >= SystemdCredentialSource.minimumLength else {
            throw .failed(.credentialTooShort)
        }
        guard bytes.count <= SystemdCredentialSource.maximumLength else {
            throw .failed(.credentialTooLarge)
        }
        return Secret(bytes: bytes)
    }

    private static func identifier(_ credential: Secret) throws(KeySourceError) -> String {
        Digest.hex(try derive(credential, "identifier 1", 16).revealedBytes())
    }

    private static func derive(
        _ credential: Secret, _ purpose: String, _ length: Int
    ) throws(KeySourceError) -> Secret {
        do throws(CryptographyError) {
            return try KeyDerivation.derive(
                from: credential, purpose: "ringback vault systemd-credential \(purpose)", length: length)
        } catch {
            throw .failed(.cryptography)
        }
    }
}
