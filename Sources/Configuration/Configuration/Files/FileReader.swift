public import RingbackBase

struct FileReader {
    let table: SettingTable

    /// The longest path that Linux opens, with its final NUL.
    private static let maxPath = 4_096
    private static let longestName = 256
    private static let longestLifetime = 31_622_400

    /// Nil without a path.
    func read() -> FileConfiguration? {
        let (path, account) = (readPath(), table.account)
        let format: TokenFileFormat = table.word("format") ?? .token
        let (scopes, audience) = (table.scopes(), table.audience)
        let lifetime = table.lifetime(atMost: FileReader.longestLifetime)
        let (host, username) = (readWord("host", of: .netrc, format), readWord("username", of: .netrc, format))
        let variable = readWord("variable", of: .env, format)
        if format == .netrc {
            table.refuseMissing("host", "needs host: the server that a program reads the netrc file for")
        }
        if let variable, !variable.isVariableName {
            table.refuse(
                "variable", "begins with a letter or an underscore and goes on with letters, digits and underscores")
        }
        if format == .idToken { table.refuseDownscoping(ofIDTokenBy: "format", ["scope", "audience"]) }
        guard let path else { return nil }
        return FileConfiguration(
            path: path, account: account, format: format, scopes: scopes, audience: audience, lifetime: lifetime,
            isDiskAllowed: table.boolean("on_disk") ?? false, host: host, username: username, variable: variable,
            source: table.source)
    }

    private func readPath() -> String? {
        guard let written = table.string("path") else {
            table.refuseMissing("path", "needs path: the file in which the token is kept")
            return nil
        }
        guard let path = table.place.keptPath(written) else {
            table.refuse("path", "must be an absolute path, or begin with ~/ or $XDG_RUNTIME_DIR/, which must be known")
            return nil
        }
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        let isPlain = path.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        if segments.contains(where: { $0.isEmpty || $0 == "." || $0 == ".." }) || !isPlain
            || path.utf8.count >= FileReader.maxPath
        {
            table.refuse("path", "must name a file, without empty or dot segments and without control characters")
        }
        return path
    }

    /// Reads a key that only one format has. Its value is printable ASCII without spaces, quotes and backslashes, so
    /// that all programs parse it in the same way.
    private func readWord(_ key: String, of owner: TokenFileFormat, _ format: TokenFileFormat) -> String? {
        guard let word = table.string(key) else { return nil }
        if format != owner {
            table.refuse(key, "is only for format = \"\(owner.rawValue)\"")
        } else if word.isEmpty || word.utf8.count > FileReader.longestName || word.hasPrefix("#")
            || !word.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"\"'\\".utf8.contains($0) })
        {
            table.refuse(key, "is printable ASCII without spaces, quotes, backslashes and a number sign at the start")
        }
        return word
    }
}

extension ConfigurationPlace {
    /// The path of a kept file, with `~/` and `$XDG_RUNTIME_DIR/` expanded; nil if the result is not absolute.
    func keptPath(_ written: String) -> String? {
        let runtime = "$XDG_RUNTIME_DIR/"
        guard written.hasPrefix(runtime) else { return path(written) }
        return runtimeDirectory.map { "\($0)/\(written.dropFirst(runtime.count))" }
    }
}

/// `[[file]]`: a file in which the daemon keeps an account's current token, for programs that can only read a file.
public struct FileConfiguration: Sendable, Equatable {
    /// Absolute.
    public let path: String
    public let account: String
    public let format: TokenFileFormat
    /// The scopes of a downscoped token; nil for the session's own.
    public let scopes: [String]?
    public let audience: String?
    /// How many seconds after the sign-in the file is removed; nil if it is kept as long as the session.
    public let lifetime: Int?
    /// True if the file may be stored on a disk; otherwise only on a file system in memory (tmpfs).
    public let isDiskAllowed: Bool
    /// Of a netrc line.
    public let host: String?
    public let username: String?
    /// Of an `env` file.
    public let variable: String?
    public let source: ConfigurationSource

    /// The maximum number of tables in all configuration files together.
    static let most = 64
}

extension FileConfiguration {
    /// The errors that can be found only after all files were read.
    static func mistakes(
        in files: [FileConfiguration], knowing accounts: Dictionary<String, AccountConfiguration>.Keys
    ) -> [ConfigurationError] {
        var errors: [ConfigurationError] = []
        var seen: [String: FileConfiguration] = [:]
        for file in files {
            if !accounts.contains(file.account) {
                errors.append(file.source.noAccount(file.account, at: "file", among: accounts))
            }
            if let former = seen.updateValue(file, forKey: file.path) {
                errors.append(
                    file.source.mistake(
                        "file", "has the same path as the table in line \(former.source.line) of \(former.source.file)"
                    ))
            }
        }
        if files.count > most, let file = files.last {
            errors.append(file.source.mistake("file", "there are more than \(most) of them"))
        }
        return errors
    }

    var json: JSONObject { ["path": path, "account": account, "format": format.rawValue, "source": source.json] }
}
