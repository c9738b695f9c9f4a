internal import Glibc
public import OAuth
public import RingbackBase

/// A file with a client secret in one line. It is read each time the secret is needed, so a replaced secret is used at
/// once and none is kept in memory.
enum ClientSecretFile {
    /// The bytes of a file that only the user and root can read.
    static func read(_ path: String, user: UInt32, maxSize: Int = 65_536) throws(Mistake) -> [UInt8] {
        try FileTrust(user: user).bytes(of: path, isSecret: true, maxSize: maxSize)
    }

    /// The content without line ends at its end, and without a byte order mark.
    static func line(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        var line = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
        while let last = line.last, last == 0x0A || last == 0x0D { line.removeLast() }
        return line
    }

    static func secret(at path: String, user: UInt32) throws(Mistake) -> Secret {
        let line = line(try read(path, user: user))
        guard !line.isEmpty else { throw Mistake("the file is empty") }
        if let found = controlCharacter(in: line) {
            throw Mistake(
                "\(path) has more than one line or a control character: \(found). Write the secret alone into the file")
        }
        return Secret(bytes: line)
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

    static func key(at path: String, named keyID: String?, user: UInt32) throws(Mistake) -> ClientKey {
        let content = try read(path, user: user)
        do throws(OAuthError) {
            return try ClientKey(parsing: Secret(bytes: content), keyID: keyID)
        } catch {
            throw Mistake(error.message)
        }
    }
}

extension AccountConfiguration {
    /// The client's private key from a credential that was passed to the daemon. Throws if it cannot be used.
    public func clientKey(in credential: Secret) throws(ConfigurationError) -> ClientKey {
        do throws(OAuthError) {
            return try ClientKey(parsing: credential, keyID: clientKeyID)
        } catch {
            throw mistake(at: "client_key_file", "the credential \(clientKeyCredential ?? "") \(error.message)")
        }
    }

    /// The client secret in what a command printed or the daemon was given, without line ends at its end. Throws if it
    /// is empty, or has several lines or a control character.
    ///
    /// - Parameters:
    ///   - place: what holds the secret, as the begin of a sentence.
    ///   - key: the setting that names it.
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
        return try reading("client_key_file") { () throws(Mistake) in
            try ClientSecretFile.key(at: path, named: clientKeyID, user: user)
        }
    }

    /// The client secret, if it is in the configuration or in a file. Nil if there is none, or if it comes from a
    /// command (run by the helper process), a credential or the vault. The file is checked again. Blocks for a moment.
    /// Throws if the file cannot be used. `user` is the uid that the file must belong to, unless it is root's.
    public func readClientSecret(user: UInt32) throws(ConfigurationError) -> Secret? {
        switch clientSecret {
        case .none, .command, .credential, .registered: return nil
        case .inline(let secret): return secret
        case .file(let path):
            return try reading("client_secret_file") { () throws(Mistake) in
                try ClientSecretFile.secret(at: path, user: user)
            }
        }
    }

    /// Reads the file that a key names.
    func reading<Value>(_ key: String, _ body: () throws(Mistake) -> Value) throws(ConfigurationError) -> Value {
        do throws(Mistake) { return try body() } catch { throw mistake(at: key, error) }
    }
}

/// Reads a `ca_file`. A user who can change this file can impersonate the provider, so the rules of ``FileTrust`` apply.
enum CertificateFile {
    /// The maximum size in bytes, five times that of a system's bundle.
    private static let maxSize = 1 << 20

    static func read(_ path: String, user: UInt32) throws(Mistake) -> [UInt8] {
        let bytes = try FileTrust(user: user).bytes(of: path, maxSize: maxSize)
        let lines = bytes.split { $0 == 0x0A || $0 == 0x0D }
        guard lines.contains(where: { $0.elementsEqual("-----BEGIN CERTIFICATE-----".utf8) }),
            lines.contains(where: { $0.elementsEqual("-----END CERTIFICATE-----".utf8) })
        else { throw Mistake("the file holds no PEM certificate") }
        return bytes
    }
}

extension ServerTrust {
    /// Trust in the certificates of a `ca_file` for an account that is not configured yet. The same rules apply. Throws
    /// if the file cannot be used.
    ///
    /// - Parameter user: the uid that the file must belong to, unless it is root's.
    public init(certificatesIn path: String, user: UInt32) throws(ConfigurationError) {
        do throws(Mistake) {
            guard path.hasPrefix("/") else { throw Mistake("must be an absolute path") }
            self.init(certificateAuthorities: try CertificateFile.read(path, user: user))
        } catch {
            throw ConfigurationError(file: path, key: "ca_file", message: error.message, cause: error.cause)
        }
    }
}

/// A descriptor from which a credential is read (`--credential-fd NAME=N`).
public enum CredentialDescriptor {
    public enum Failure: Error, Equatable {
        case notOpen
        /// The writer did not close its end in time.
        case notClosed
        case unreadable
        case tooLong
    }

    /// In bytes.
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
            try wait(for: descriptor, until: .now + .milliseconds(timeout))
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

    private static func wait(for descriptor: Int32, until end: SuspendingClock.Instant) throws(Failure) {
        while true {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let left = max(0, (end - .now) / .milliseconds(1))
            let ready = unsafe poll(&entry, 1, Int32(left.rounded(.up)))
            let code = errno
            if ready > 0 { return }
            guard ready < 0, code == EINTR else { throw .notClosed }
        }
    }
}
