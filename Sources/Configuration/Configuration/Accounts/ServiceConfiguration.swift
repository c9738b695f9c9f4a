internal import Glibc
public import OAuth
public import Secrets

/// How a service account gets tokens without a user.
public struct ServiceConfiguration: Sendable, Equatable {
    public let grant: ServiceGrantType
    /// A path that ``AccountConfiguration/readAssertion(user:)`` reads at each use; nil for client credentials.
    public let assertionFile: String?
    /// The type of the file's token, for a token exchange.
    public let subjectTokenType: ExchangedTokenType
    public let audience: String?
    /// RFC 8707.
    public let resource: String?
}

extension AccountConfiguration {
    /// The maximum size in bytes: a token of 64 KiB and white space around it.
    private static let maxAssertion = 66_000

    /// The current content of the assertion file; nil for an account without one. The file is checked each time,
    /// because the platform may replace it at any time. Blocks for a moment. Throws if it cannot be used.
    ///
    /// `user` is the uid that the file must belong to, unless it is root's.
    public func readAssertion(user: UInt32) throws(ConfigurationError) -> Assertion? {
        guard let service, let path = service.assertionFile else { return nil }
        switch AccountConfiguration.assertion(at: path, for: service.grant, user: user) {
        case .success(let assertion): return assertion
        case .failure(let mistake): throw self.mistake(at: "assertion_file", mistake)
        }
    }

    /// True if the file does not exist yet or is empty.
    static func awaitsAssertion(at path: String) -> Bool {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return errno == ENOENT }
        return status.st_mode & S_IFMT == S_IFREG && status.st_size == 0
    }

    static func assertion(
        at path: String, for grant: ServiceGrantType, user: UInt32
    ) -> Result<Assertion, Mistake> {
        do throws(FileTrust.Failure) {
            let content = try FileTrust(user: user).read(path, isSecret: true, maxSize: maxAssertion)
            do throws(OAuthError) {
                return .success(try grant.assertion(in: Secret(bytes: content.bytes)))
            } catch {
                return .failure(Mistake("the file \(FileTrust.quoted(path)) \(AccountReader.reason(error))"))
            }
        } catch {
            return .failure(error.mistake(of: path))
        }
    }

    /// The name of the credential with the client secret, if there is one.
    public var clientSecretCredential: String? {
        if case .credential(let name) = clientSecret { name } else { nil }
    }
}

/// Secrets in a directory that the service manager or another starter has created: `$CREDENTIALS_DIRECTORY` of
/// systemd.exec(5), or a read-only mount of a container.
public enum CredentialFile {
    /// True for a credential's name: 1 to 255 letters, digits and `._-`, but not `.` or `..`.
    public static func isName(_ name: String) -> Bool {
        (1...255).contains(name.utf8.count) && name != "." && name != ".."
            && name.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                default: "._-".utf8.contains(byte)
                }
            }
    }

    /// The name in `$CREDENTIALS_DIRECTORY/NAME`; nil for another path. Only the daemon knows the directory, so other
    /// programs cannot read it.
    static func name(in path: String) -> String? {
        for prefix in ["$CREDENTIALS_DIRECTORY/", "${CREDENTIALS_DIRECTORY}/"] where path.hasPrefix(prefix) {
            return String(path.dropFirst(prefix.count))
        }
        return nil
    }

    /// The credential without line ends at its end.
    ///
    /// Throws if it is missing, open to others, or does not belong to the user or root.
    public static func read(_ name: String, in directory: String, user: UInt32) throws(ConfigurationError) -> Secret {
        let path = "\(directory)/\(name)"
        do throws(FileTrust.Failure) {
            return ClientSecretFile.secret(
                in: try FileTrust(user: user).read(path, isSecret: true, maxSize: ClientSecretFile.maxSize))
        } catch {
            let mistake = error.mistake(of: path)
            throw ConfigurationError(file: path, message: mistake.message, cause: mistake.cause)
        }
    }
}

/// The credentials that a daemon would have if it were started like this program.
public struct GivenCredentials: Sendable, Equatable {
    /// `$CREDENTIALS_DIRECTORY`
    public let directory: String
    /// Names of credentials that are passed through descriptors and need no file.
    public let names: Set<String>

    public init(directory: String, names: Set<String>) {
        self.directory = directory
        self.names = names
    }

    /// Why a credential would not be available; nil if it would.
    func mistake(of name: String, user: UInt32) -> Mistake? {
        guard !names.contains(name) else { return nil }
        do throws(ConfigurationError) {
            let isEmpty = try CredentialFile.read(name, in: directory, user: user).isEmpty
            return isEmpty ? Mistake("the credential \(FileTrust.quoted(name)) is empty") : nil
        } catch {
            return Mistake(error.message, error.cause)
        }
    }
}
