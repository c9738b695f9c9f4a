public import OAuth
public import Secrets

/// A file with a client secret in one line. It is read each time the secret is needed, so a replaced secret is used at
/// once and none is kept in memory.
enum ClientSecretFile {
    /// The maximum size in bytes.
    static let maxSize = 65_536

    /// The content without line ends at its end, and without a byte order mark.
    static func secret(in content: FileTrust.Content) -> Secret { Secret(bytes: line(content.bytes)) }

    static func line(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        var line = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
        while let last = line.last, last == 0x0A || last == 0x0D { line.removeLast() }
        return line
    }

    /// Why the file's content is no client secret; nil if it is one. No provider issues a secret with a control character:
    /// it was added when the file was written, and the provider would reject it.
    static func mistake(inSecret content: FileTrust.Content, of path: String) -> String? {
        let line = line(content.bytes)
        guard !line.isEmpty else { return "the file is empty" }
        guard let index = line.firstIndex(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
        let byte = String(line[index], radix: 16, uppercase: true)
        return "\(path) has more than one line or a control character: byte \(index) is "
            + "0x\(byte.utf8.count == 1 ? "0" : "")\(byte). Write the secret alone into the file"
    }

    /// Why the file's key cannot be used for signing; nil if it can.
    static func mistake(inKey content: FileTrust.Content, named keyID: String?) -> String? {
        do throws(OAuthError) {
            _ = try ClientKey(parsing: Secret(bytes: content.bytes), keyID: keyID)
            return nil
        } catch {
            return AccountReader.reason(error)
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
                at: "client_key_file", "the credential \(clientKeyCredential ?? "") \(AccountReader.reason(error))")
        }
    }

    /// The client's private key; nil if the account has none. Read and checked like ``readClientSecret(user:)``.
    public func readClientKey(user: UInt32) throws(ConfigurationError) -> ClientKey? {
        guard let path = clientKeyFile else { return nil }
        let content: FileTrust.Content
        do throws(FileTrust.Failure) {
            content = try FileTrust(user: user).read(path, isSecret: true, maxSize: ClientSecretFile.maxSize)
        } catch {
            throw mistake(at: "client_key_file", error.mistake(of: path))
        }
        if let key = try? ClientKey(parsing: Secret(bytes: content.bytes), keyID: clientKeyID) { return key }
        throw mistake(
            at: "client_key_file", ClientSecretFile.mistake(inKey: content, named: clientKeyID) ?? "cannot be used")
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
            let content: FileTrust.Content
            do throws(FileTrust.Failure) {
                content = try FileTrust(user: user).read(path, isSecret: true, maxSize: ClientSecretFile.maxSize)
            } catch {
                throw mistake(at: "client_secret_file", error.mistake(of: path))
            }
            if let reason = ClientSecretFile.mistake(inSecret: content, of: path) {
                throw mistake(at: "client_secret_file", reason)
            }
            return ClientSecretFile.secret(in: content)
        }
    }
}
