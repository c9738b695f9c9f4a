internal import Glibc
public import RingbackBase

/// An error in the configuration: where it is, what is wrong and what is allowed. Messages never repeat a value, since
/// a secret may be under the wrong key.
public struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    public let file: String
    /// From 1; nil if it concerns the whole file.
    public var line: Int?
    /// In TOML's dotted form (`accounts.mail.issuer`); nil for syntax errors and for whole files.
    public var key: String?
    public let message: String
    /// The kind of error, from which a program can derive advice for the user; nil if the message is sufficient.
    public var cause: Cause?

    public enum Cause: Sendable, Equatable {
        case unsafe(UnsafePath)
        /// An API request has created an exposed socket with the table's name.
        case nameTaken(socket: String)
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
struct Mistake: SettingFailure, Equatable {
    let message: String
    let cause: ConfigurationError.Cause?

    init(_ message: String, _ cause: ConfigurationError.Cause? = nil) {
        self.message = message
        self.cause = cause
    }
}

protocol SettingFailure: Error {
    var message: String { get }
    var cause: ConfigurationError.Cause? { get }
}

extension SettingFailure {
    var cause: ConfigurationError.Cause? { nil }
}

extension ConfigurationSource {
    func mistake(_ key: String, _ message: String, cause: ConfigurationError.Cause? = nil) -> ConfigurationError {
        ConfigurationError(file: file, line: line, key: key, message: message, cause: cause)
    }

    /// The error for an account that is named there and does not exist.
    func noAccount(_ name: String, at key: String, among known: some Sequence<String>) -> ConfigurationError {
        mistake(key, "it names an account that does not exist\(NearestWord.hint(for: name, among: known))")
    }
}

extension NearestWord {
    /// A question for the end of a message; empty if no known word is similar.
    static func hint(
        for word: String, among known: some Sequence<String>, shown: (String) -> String = { $0 }
    ) -> String {
        find(for: word, among: known).map { "; did you mean \(shown($0))?" } ?? ""
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

    public var description: String { errors.map(\.description).joined(separator: "\n") }
}

/// The files of the configuration and their required owner.
public struct ConfigurationPlace: Sendable, Equatable {
    /// A changed copy of a configuration file. It is read in place of the original, whose path errors have.
    public struct Draft: Sendable, Equatable {
        public let original: String
        public let path: String

        public init(of original: String, at path: String) {
            self.original = original
            self.path = path
        }
    }

    /// An absolute path; nil if no file was named and there is no home directory.
    public var userFile: String?
    /// True if the file was named explicitly. It must then exist.
    public var isExplicit: Bool
    /// In the order of reading; later files override earlier ones.
    public var dropInDirectories: [String]
    /// A drop-in to check before it is added; read after the existing ones.
    public var candidate: String?
    public var draft: Draft?
    /// For `~/`.
    public var home: String?
    /// `$XDG_RUNTIME_DIR` without a slash at its end, for the paths of kept files; nil if there is none.
    public var runtimeDirectory: String?
    /// The uid that files must belong to, unless they are root's.
    public var user: UInt32
    /// The credentials that the daemon would get at its start, if they are known. Only `config check` sets this: a
    /// missing credential must not stop a running daemon.
    public var credentials: GivenCredentials?
    /// The default for `[vault]`.
    public var usualVault = VaultConfiguration.standard
    /// Overrides `[vault]`; nil if the file decides.
    public var onlyVault: VaultConfiguration?

    public init(userFile: String?, isExplicit: Bool, dropInDirectories: [String], home: String?, user: UInt32) {
        self.userFile = userFile
        self.isExplicit = isExplicit
        self.dropInDirectories = dropInDirectories
        self.home = home
        self.user = user
    }

    /// The standard files. The user's file is `--config`, else `RINGBACK_CONFIG`, else
    /// `$XDG_CONFIG_HOME/ringback/config.toml`, else `~/.config/ringback/config.toml`. Drop-ins are in
    /// `/usr/share/ringback/accounts.d`, `/etc/ringback/accounts.d` and `accounts.d` beside the user's file.
    ///
    /// - Parameter option: the value of `--config`; a relative path is resolved against the working directory.
    public static func standard(option: String?, environment: [String: String]) -> ConfigurationPlace {
        let home = environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        // The XDG specification says that a relative path is ignored.
        let base =
            environment["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? home.map { "\($0)/.config" }
        let named = option ?? environment["RINGBACK_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        let file = named.map { Path.absolute($0) ?? $0 } ?? base.map { "\($0)/ringback/config.toml" }
        let beside = file.flatMap { file in file.lastIndex(of: "/").map { "\(file[..<$0])/accounts.d" } }
        let directories = ["/usr/share/ringback/accounts.d", "/etc/ringback/accounts.d", beside]
        var place = ConfigurationPlace(
            userFile: file, isExplicit: named != nil, dropInDirectories: directories.compactMap(\.self), home: home,
            user: geteuid())
        if var runtime = environment["XDG_RUNTIME_DIR"], runtime.hasPrefix("/") {
            while runtime.hasSuffix("/") { runtime.removeLast() }
            place.runtimeDirectory = runtime
        }
        return place
    }

    /// A path of the configuration with `~/` expanded; nil if the result is not absolute.
    func path(_ written: String) -> String? {
        if written.hasPrefix("~/") { return home.map { "\($0)/\(written.dropFirst(2))" } }
        return written.hasPrefix("/") ? written : nil
    }
}
