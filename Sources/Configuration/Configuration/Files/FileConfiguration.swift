internal import StrictJSON

/// `[[file]]`: a file in which the daemon keeps an account's current token, for programs that can only read a file.
public struct FileConfiguration: Sendable, Equatable {
    /// What the file contains.
    public enum Format: String, Sendable, CaseIterable {
        /// The access token alone, without a line break.
        case token
        /// The ID token alone, without a line break.
        case idToken = "id_token"
        /// A line `Authorization: Bearer TOKEN`.
        case header
        /// A line of a netrc file.
        case netrc
        /// An assignment to a variable, for a POSIX shell.
        case env
        /// A JSON object with the token, its type, its scope and when it expires.
        case json
    }

    /// Absolute.
    public let path: String
    /// The account's name.
    public let account: String
    public let format: Format
    /// The scopes of a downscoped token; nil for the session's own.
    public let scopes: [String]?
    public let audience: String?
    /// How many seconds after the sign-in the file is removed; nil if it is kept as long as the session.
    public let lifetime: Int?
    /// True if the file may be stored on a disk; otherwise only on a file system in memory (tmpfs).
    public let isDiskAllowed: Bool
    /// The host of a netrc line.
    public let host: String?
    /// The user name of a netrc line.
    public let username: String?
    /// The variable of an `env` file.
    public let variable: String?
    public let source: ConfigurationSource

    /// The maximum number of tables in all configuration files together.
    static let most = 64
}

extension FileConfiguration {
    /// Reports the errors that can be found only after all files were read: accounts that are not configured, and two
    /// tables with the same path.
    static func mistakes(
        in files: [FileConfiguration], knowing accounts: Dictionary<String, AccountConfiguration>.Keys
    ) -> [ConfigurationError] {
        var errors: [ConfigurationError] = []
        var seen: [String: FileConfiguration] = [:]
        for file in files {
            if !accounts.contains(file.account) {
                let nearest = NearestWord.find(for: file.account, among: accounts).map { "; did you mean \($0)?" } ?? ""
                errors.append(file.mistake("it names an account that does not exist\(nearest)"))
            }
            if let former = seen.updateValue(file, forKey: file.path) {
                errors.append(
                    file.mistake(
                        "has the same path as the table in line \(former.source.line) of \(former.source.file)"))
            }
        }
        if files.count > most, let file = files.last {
            errors.append(file.mistake("there are more than \(most) of them"))
        }
        return errors
    }

    private func mistake(_ message: String) -> ConfigurationError {
        ConfigurationError(file: source.file, line: source.line, key: "file", message: message)
    }

    /// The members of the report's JSON.
    var json: JSON {
        [
            "path": .string(path), "account": .string(account), "format": .string(format.rawValue),
            "source": source.json,
        ]
    }
}
