public import FilePaths

/// An error in the configuration: where it is, what is wrong and what is allowed.
///
/// Messages never repeat a value, because a secret may be under the wrong key.
public struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The file's path.
    public let file: String
    /// From 1; nil if it concerns the whole file.
    public let line: Int?
    /// In TOML's dotted form (`accounts.mail.issuer`); nil for syntax errors and for whole files.
    public let key: String?
    public let message: String
    /// The kind of error, from which a program can derive advice for the user; nil if the message is sufficient.
    public let cause: Cause?

    /// Kinds of errors for which programs have advice.
    public enum Cause: Sendable, Equatable {
        case unsafe(UnsafePath)
        /// An exposed socket with the table's name exists already; an API request created it.
        case nameTaken(socket: String)
    }

    public init(file: String, line: Int? = nil, key: String? = nil, message: String, cause: Cause? = nil) {
        self.file = file
        self.line = line
        self.key = key
        self.message = message
        self.cause = cause
    }

    /// `FILE:LINE: KEY: MESSAGE`, the format of compilers, which editors understand.
    public var description: String {
        var text = file
        if let line { text += ":\(line)" }
        if let key { text += ": \(key)" }
        return "\(text): \(message)"
    }
}

/// A file or directory of the configuration that belongs to another user, or to which other users have too much access.
public struct UnsafePath: Sendable, Equatable {
    public let path: String
    public let trouble: PathTrouble

    public init(_ path: String, _ trouble: PathTrouble) {
        self.path = path
        self.trouble = trouble
    }
}

/// Why the value of a key cannot be used: the message and cause of a ``ConfigurationError``, without file and line.
struct Mistake: Error, Equatable {
    let message: String
    let cause: ConfigurationError.Cause?

    init(_ message: String, _ cause: ConfigurationError.Cause? = nil) {
        self.message = message
        self.cause = cause
    }
}

/// All errors of all files, so that the user can fix them together. At start the daemon exits with status 78; at a
/// reload it keeps the old configuration.
public struct ConfigurationErrors: Error, Sendable, Equatable, CustomStringConvertible {
    /// Ordered by file and line. Never empty.
    public let errors: [ConfigurationError]

    public init(_ errors: [ConfigurationError]) {
        self.errors = errors
    }

    /// One line for each error.
    public var description: String { errors.map(\.description).joined(separator: "\n") }
}
