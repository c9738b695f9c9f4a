public import OAuth
public import Secrets

/// A file with a client secret and at most one line feed. It is read each time the secret is needed, so a replaced
/// secret is used at once and none is kept in memory.
enum ClientSecretFile {
    /// The maximum size in bytes.
    static let maxSize = 65_536

    /// The content without one line feed at its end.
    static func secret(in content: FileTrust.Content) -> Secret {
        let bytes = content.bytes
        return Secret(bytes: bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...])
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
            do throws(FileTrust.Failure) {
                let trust = FileTrust(user: user)
                return ClientSecretFile.secret(
                    in: try trust.read(path, isSecret: true, maxSize: ClientSecretFile.maxSize))
            } catch {
                throw mistake(at: "client_secret_file", error.mistake(of: path))
            }
        }
    }
}
