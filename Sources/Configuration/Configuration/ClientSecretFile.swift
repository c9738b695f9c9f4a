internal import Glibc
public import OAuth
public import RingbackBase

/// A file with a client secret in one line. It is read each time the secret is needed, so a replaced secret is used at
/// once and none is kept in memory.
enum ClientSecretFile {
    /// The maximum size in bytes.
    static let maxSize = 65_536

    /// The bytes of a file that only the user and root can read.
    static func read(_ path: String, user: UInt32, maxSize: Int = maxSize) throws(Mistake) -> [UInt8] {
        do throws(FileTrust.Failure) {
            return try FileTrust(user: user).read(path, isSecret: true, maxSize: maxSize).bytes
        } catch {
            throw error.mistake(of: path)
        }
    }

    /// The content without line ends at its end, and without a byte order mark.
    static func secret(in content: [UInt8]) -> Secret { Secret(bytes: line(content)) }

    static func line(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        var line = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
        while let last = line.last, last == 0x0A || last == 0x0D { line.removeLast() }
        return line
    }

    /// Why the file's content is no client secret; nil if it is one.
    static func mistake(inSecret content: [UInt8], of path: String) -> String? {
        let line = line(content)
        guard !line.isEmpty else { return "the file is empty" }
        return controlCharacter(in: line).map {
            "\(path) has more than one line or a control character: \($0). Write the secret alone into the file"
        }
    }

    /// Where the first control character of a client secret is; nil if there is none. No provider issues a secret with
    /// such a character: it was added when the secret was stored, and the provider would reject it.
    static func controlCharacter(in secret: some Collection<UInt8>) -> String? {
        guard let (index, value) = secret.enumerated().first(where: { $0.element < 0x20 || $0.element == 0x7F }) else {
            return nil
        }
        let byte = String(value, radix: 16, uppercase: true)
        return "byte \(index) is 0x\(byte.utf8.count == 1 ? "0" : "")\(byte)"
    }

    /// Why the file's key cannot be used for signing; nil if it can.
    static func mistake(inKey content: [UInt8], named keyID: String?) -> String? {
        do throws(OAuthError) {
            _ = try ClientKey(parsing: Secret(bytes: content), keyID: keyID)
            return nil
        } catch {
            return error.configurationMistake
        }
    }
}

extension AccountConfiguration {
    /// The client's private key from a credential that was passed to the daemon. Throws if it cannot be used.
    public func clientKey(in credential: Secret) throws(ConfigurationError) -> ClientKey {
        do throws(OAuthError) {
            return try ClientKey(parsing: credential, keyID: clientKeyID)
        } catch {
            throw mistake(
                at: "client_key_file", "the credential \(clientKeyCredential ?? "") \(error.configurationMistake)")
        }
    }

    /// The client secret in what a command printed or the daemon was given, without line ends at its end.
    ///
    /// - Parameters:
    ///   - place: what holds the secret, as the begin of a sentence.
    ///   - key: the setting that names it.
    /// - Throws: if it is empty, or has several lines or a control character.
    public func clientSecret(
        in content: Secret, of place: String, at key: String
    ) throws(ConfigurationError) -> Secret {
        let line = ClientSecretFile.line(content.revealedBytes())
        guard !line.isEmpty else { throw mistake(at: key, "\(place) is empty") }
        if let found = ClientSecretFile.controlCharacter(in: line) {
            throw mistake(
                at: key, "\(place) has more than one line or a control character: \(found). It must be the secret alone"
            )
        }
        return Secret(bytes: line)
    }

    /// The client's private key; nil if the account has none. Read and checked like ``readClientSecret(user:)``.
    public func readClientKey(user: UInt32) throws(ConfigurationError) -> ClientKey? {
        guard let path = clientKeyFile else { return nil }
        let content = try readFile(path, of: user, at: "client_key_file")
        do throws(OAuthError) {
            return try ClientKey(parsing: Secret(bytes: content), keyID: clientKeyID)
        } catch {
            throw mistake(at: "client_key_file", error.configurationMistake)
        }
    }

    /// The client secret, if it is in the configuration or in a file. Nil if there is none, or if it comes from a
    /// command (run by the helper process), a credential or the vault. The file is checked again. Blocks for a moment.
    /// Throws if the file cannot be used.
    ///
    /// `user` is the uid that the file must belong to, unless it is root's.
    public func readClientSecret(user: UInt32) throws(ConfigurationError) -> Secret? {
        switch clientSecret {
        case .none, .command, .credential, .registered: return nil
        case .inline(let secret): return secret
        case .file(let path):
            let content = try readFile(path, of: user, at: "client_secret_file")
            if let reason = ClientSecretFile.mistake(inSecret: content, of: path) {
                throw mistake(at: "client_secret_file", reason)
            }
            return ClientSecretFile.secret(in: content)
        }
    }

    private func readFile(_ path: String, of user: UInt32, at key: String) throws(ConfigurationError) -> [UInt8] {
        do throws(Mistake) { return try ClientSecretFile.read(path, user: user) } catch {
            throw mistake(at: key, error)
        }
    }
}

/// Reads a `ca_file`. A user who can change this file can impersonate the provider, so the rules of ``FileTrust`` apply.
struct CertificateFile {
    /// The maximum size in bytes, five times that of a system's bundle.
    private static let maxSize = 1 << 20

    /// The file's content. Throws if it cannot be used.
    static func read(_ path: String, user: UInt32) throws(Mistake) -> [UInt8] {
        let bytes: [UInt8]
        do throws(FileTrust.Failure) { bytes = try FileTrust(user: user).read(path, maxSize: maxSize).bytes } catch {
            throw error.mistake(of: path)
        }
        guard holdsCertificate(bytes) else { throw Mistake("the file holds no PEM certificate") }
        return bytes
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
        do throws(Mistake) {
            self.init(certificateAuthorities: try CertificateFile.read(path, user: user))
        } catch {
            throw ConfigurationError(
                file: path, line: nil, key: "ca_file", message: error.message, cause: error.cause)
        }
    }
}

/// A descriptor from which a credential is read (`--credential-fd NAME=N`).
public enum CredentialDescriptor {
    /// Why no credential was read.
    public enum Failure: Error, Equatable {
        case notOpen
        /// The writer did not close its end in time.
        case notClosed
        case unreadable
        /// There is more than a credential may have.
        case tooLong
    }

    /// The largest size of a credential, in bytes.
    public static let maxSize = 65_536
    /// The milliseconds for which the writer of a pipe may write nothing.
    public static let timeout = 10_000

    /// Reads to the end, without line ends there. A signal does not end the waiting. Does not close the descriptor.
    public static func read(_ descriptor: Int32, timeout: Int = timeout) throws(Failure) -> Secret {
        guard fcntl(descriptor, F_GETFD) >= 0 else { throw .notOpen }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        defer {
            for index in bytes.indices { bytes[index] = 0 }
            for index in buffer.indices { buffer[index] = 0 }
        }
        while true {
            try wait(for: descriptor, until: now() + timeout)
            let count = unsafe Glibc.read(descriptor, &buffer, buffer.count)
            let code = errno
            if count < 0, code == EINTR || code == EAGAIN { continue }
            guard count >= 0 else { throw .unreadable }
            if count == 0 { break }
            bytes += buffer[..<count]
            guard bytes.count <= maxSize else { throw .tooLong }
        }
        return Secret(bytes: ClientSecretFile.line(bytes))
    }

    private static func wait(for descriptor: Int32, until end: Int) throws(Failure) {
        while true {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let ready = unsafe poll(&entry, 1, Int32(clamping: max(0, end - now())))
            let code = errno
            if ready > 0 { return }
            guard ready < 0, code == EINTR else { throw .notClosed }
        }
    }

    /// Milliseconds of a monotonic clock.
    private static func now() -> Int {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int(time.tv_sec) * 1_000 + Int(time.tv_nsec) / 1_000_000
    }
}
