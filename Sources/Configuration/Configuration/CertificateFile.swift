public import HTTPMessages

/// Reads a `ca_file`. Whoever can change this file can impersonate the provider, so the rules of ``FileTrust`` apply.
struct CertificateFile {
    /// The maximum size in bytes, five times that of a system's bundle.
    private static let maxSize = 1 << 20

    /// The file's content, or the error if it cannot be used.
    static func read(_ path: String, user: UInt32) -> Result<[UInt8], Mistake> {
        do throws(FileTrust.Failure) {
            let content = try FileTrust(user: user).read(path, maxSize: maxSize)
            guard holdsCertificate(content.bytes) else { return .failure(Mistake("the file holds no PEM certificate")) }
            return .success(content.bytes)
        } catch {
            return .failure(error.mistake(of: path))
        }
    }

    private static func holdsCertificate(_ bytes: [UInt8]) -> Bool {
        let lines = bytes.split { $0 == 0x0A || $0 == 0x0D }
        return lines.contains { $0.elementsEqual("-----BEGIN CERTIFICATE-----".utf8) }
            && lines.contains { $0.elementsEqual("-----END CERTIFICATE-----".utf8) }
    }
}

extension ServerTrust {
    /// Trust in the certificates of a `ca_file` for an account that is not configured yet. The same rules apply. Throws
    /// if the file cannot be used.
    ///
    /// - Parameter user: the uid that the file must belong to, unless it is root's.
    public init(certificatesIn path: String, user: UInt32) throws(ConfigurationError) {
        guard path.hasPrefix("/") else {
            throw ConfigurationError(file: path, line: nil, key: "ca_file", message: "must be an absolute path")
        }
        switch CertificateFile.read(path, user: user) {
        case .success(let bytes): self.init(certificateAuthorities: bytes)
        case .failure(let mistake):
            throw ConfigurationError(
                file: path, line: nil, key: "ca_file", message: mistake.message, cause: mistake.cause)
        }
    }
}
