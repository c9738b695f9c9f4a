internal import Glibc
public import OAuth
public import Secrets

/// How an account gets tokens without a person, as configured.
public struct ServiceConfiguration: Sendable, Equatable {
    /// The words of `grant`.
    public enum Grant: String, Sendable, Equatable, CaseIterable {
        /// RFC 6749 section 4.4.
        case clientCredentials = "client_credentials"
        /// RFC 7523 section 2.1.
        case jwtBearer = "jwt_bearer"
        /// RFC 8693.
        case tokenExchange = "token_exchange"
    }

    public let grant: Grant
    /// A path, to be read with ``AccountConfiguration/readAssertion(user:)`` at every use; nil for client credentials.
    public let assertionFile: String?
    /// What the file's token is, for an exchange.
    public let subjectTokenType: ExchangedTokenType
    public let audience: String?
    /// RFC 8707.
    public let resource: String?
}

extension AccountConfiguration {
    /// Bytes: a token of 64 KiB and the white space around it.
    private static let maxAssertion = 66_000

    /// What the assertion file holds now; nil for an account that has none. The file is checked as it was when the
    /// configuration was read: a platform replaces it when it likes. Blocks for a moment.
    ///
    /// `user` is the uid that the file must belong to, if not to root.
    public func readAssertion(user: UInt32) throws(ConfigurationError) -> Assertion? {
        guard let path = service?.assertionFile else { return nil }
        switch AccountConfiguration.assertion(at: path, user: user) {
        case .success(let assertion): return assertion
        case .failure(let failure): throw mistake(at: "assertion_file", failure.message)
        }
    }

    /// Why a file is none to take an assertion from.
    struct AssertionFailure: Error {
        let message: String
    }

    /// True if there is nothing yet, or an empty file.
    static func awaitsAssertion(at path: String) -> Bool {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return errno == ENOENT }
        return status.st_mode & S_IFMT == S_IFREG && status.st_size == 0
    }

    static func assertion(at path: String, user: UInt32) -> Result<Assertion, AssertionFailure> {
        do throws(FileTrust.Failure) {
            let content = try FileTrust(user: user).read(path, isSecret: true, maxSize: maxAssertion)
            do throws(OAuthError) {
                return .success(try Assertion(parsing: Secret(bytes: content.bytes)))
            } catch {
                return .failure(
                    AssertionFailure(message: "the file \(FileTrust.quoted(path)) \(AccountReader.reason(error))"))
            }
        } catch {
            return .failure(AssertionFailure(message: AccountReader.sentence(error, path)))
        }
    }

    /// The name of the credential that is the client's secret, if that is where it comes from.
    public var clientSecretCredential: String? {
        if case .credential(let name) = clientSecret { name } else { nil }
    }
}

/// Secrets that the service manager, or whoever started the daemon, put into a directory: `$CREDENTIALS_DIRECTORY` of
/// systemd.exec(5), or a read-only mount of a container.
public enum CredentialFile {
    /// A credential's name: 1 to 255 of letters, digits and `._-`, and no `.` or `..`.
    public static func isName(_ name: String) -> Bool {
        (1...255).contains(name.utf8.count) && name != "." && name != ".."
            && name.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                default: "._-".utf8.contains(byte)
                }
            }
    }

    /// The name in `$CREDENTIALS_DIRECTORY/NAME`: which directory that is only the daemon is told, so that nobody else can
    /// look into it. Nil for another path.
    static func name(in path: String) -> String? {
        for prefix in ["$CREDENTIALS_DIRECTORY/", "${CREDENTIALS_DIRECTORY}/"] where path.hasPrefix(prefix) {
            return String(path.dropFirst(prefix.count))
        }
        return nil
    }

    /// The credential, without one newline at its end.
    ///
    /// Throws with a sentence if it is missing, open to others, or not given by the user or root.
    public static func read(_ name: String, in directory: String, user: UInt32) throws(ConfigurationError) -> Secret {
        let path = "\(directory)/\(name)"
        do throws(FileTrust.Failure) {
            return ClientSecretFile.secret(
                in: try FileTrust(user: user).read(path, isSecret: true, maxSize: ClientSecretFile.maxSize))
        } catch {
            throw ConfigurationError(
                file: path, line: nil, key: nil, message: AccountReader.sentence(error, path))
        }
    }
}

/// What a daemon started as this program was would be given.
public struct GivenCredentials: Sendable, Equatable {
    /// `$CREDENTIALS_DIRECTORY`
    public let directory: String
    /// What comes by a descriptor, and needs no file.
    public let names: Set<String>

    public init(directory: String, names: Set<String>) {
        self.directory = directory
        self.names = names
    }

    /// Why a credential would not be had; nil if it would.
    func mistake(of name: String, user: UInt32) -> String? {
        guard !names.contains(name) else { return nil }
        do throws(ConfigurationError) {
            let isEmpty = try CredentialFile.read(name, in: directory, user: user).isEmpty
            return isEmpty ? "the credential \(FileTrust.quoted(name)) is empty" : nil
        } catch {
            return error.message
        }
    }
}
