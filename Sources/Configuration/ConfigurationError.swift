/// A mistake in the configuration: where it is, what is wrong and what is allowed.
///
/// No message repeats a value: what stands under the wrong key may be a secret.
public struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The file's path.
    public let file: String
    /// From 1; nil if the file as a whole is meant.
    public let line: Int?
    /// Dotted as in TOML (`accounts.mail.issuer`); nil for syntax errors and files as a whole.
    public let key: String?
    public let message: String

    public init(file: String, line: Int? = nil, key: String? = nil, message: String) {
        self.file = file
        self.line = line
        self.key = key
        self.message = message
    }

    /// `FILE:LINE: KEY: MESSAGE`, as editors and compilers have it.
    public var description: String {
        var text = file
        if let line { text += ":\(line)" }
        if let key { text += ": \(key)" }
        return "\(text): \(message)"
    }
}

/// Every mistake of every file: a person mends them in one go. The daemon ends with status 78, or keeps what it had.
public struct ConfigurationErrors: Error, Sendable, Equatable, CustomStringConvertible {
    /// In the order of the files, then of the lines. Never empty.
    public let errors: [ConfigurationError]

    public init(_ errors: [ConfigurationError]) {
        self.errors = errors
    }

    /// One error a line.
    public var description: String { errors.map(\.description).joined(separator: "\n") }
}
