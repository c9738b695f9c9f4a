public import OAuth
public import Secrets

/// A file that holds a client's secret and perhaps a newline. It is read whenever the secret is needed: a secret that
/// was exchanged counts at once, and none rests in memory.
enum ClientSecretFile {
    /// Bytes.
    static let maxSize = 65_536

    /// The content without one newline at its end.
    static func secret(in content: FileTrust.Content) -> Secret {
        let bytes = content.bytes
        return Secret(bytes: bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...])
    }

    /// Why the file's key is not one to sign with; nil if it is.
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
    /// The client's private key in a credential that was given to the daemon.
    public func clientKey(in credential: Secret) throws(ConfigurationError) -> ClientKey {
        do throws(OAuthError) {
            return try ClientKey(parsing: credential, keyID: clientKeyID)
        } catch {
            throw mistake(
                at: "client_key_file", "the credential \(clientKeyCredential ?? "") \(AccountReader.reason(error))")
        }
    }

    /// The client's private key; nil if it has none. Read and checked like ``readClientSecret(user:)``.
    public func readClientKey(user: UInt32) throws(ConfigurationError) -> ClientKey? {
        guard let path = clientKeyFile else { return nil }
        let reason: String
        do throws(FileTrust.Failure) {
            let content = try FileTrust(user: user).read(path, isSecret: true, maxSize: ClientSecretFile.maxSize)
            if let key = try? ClientKey(parsing: Secret(bytes: content.bytes), keyID: clientKeyID) { return key }
            reason = ClientSecretFile.mistake(inKey: content, named: clientKeyID) ?? "cannot be used"
        } catch {
            reason = AccountReader.sentence(error, path)
        }
        throw mistake(at: "client_key_file", reason)
    }

    /// The client's secret, where it is written or in a file; nil if there is none, if a command prints it (which
    /// the helper process runs), if it is a credential, or if the vault holds it. The file is checked as it was when the configuration was read. Blocks for a moment.
    ///
    /// `user` is the uid that the file must belong to, if not to root.
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
                throw mistake(at: "client_secret_file", AccountReader.sentence(error, path))
            }
        }
    }
}
