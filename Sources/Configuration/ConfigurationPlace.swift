internal import Glibc

/// Where the configuration is looked for, and whose it must be.
public struct ConfigurationPlace: Sendable, Equatable {
    /// A changed copy of a configuration file. It is read in the file's place, and mistakes are reported under the file's
    /// path.
    public struct Draft: Sendable, Equatable {
        public let original: String
        public let path: String

        public init(of original: String, at path: String) {
            self.original = original
            self.path = path
        }
    }

    /// An absolute path; nil if there is neither a name for it nor a home directory.
    public var userFile: String?
    /// Somebody named the file: then it must exist.
    public var isExplicit: Bool
    /// In the order of reading: the later wins.
    public var dropInDirectories: [String]
    /// A drop-in that is to be judged before it is put beside the configuration; read after those that are.
    public var candidate: String?
    /// A file that is to be judged before it replaces another one.
    public var draft: Draft?
    /// What `~/` means; nil if there is no home directory.
    public var home: String?
    /// The uid that files must belong to, if not to root.
    public var user: UInt32
    /// What the daemon would be given at its start, where it is known: for a check alone, since a daemon that runs is to
    /// go on without.
    public var credentials: GivenCredentials?
    /// What holds without `[vault]`.
    public var usualVault = VaultConfiguration.standard
    /// What holds whatever `[vault]` says; nil if it has its say.
    public var onlyVault: VaultConfiguration?

    /// A place of one's own choice, for tests and private daemons.
    public init(userFile: String?, isExplicit: Bool, dropInDirectories: [String], home: String?, user: UInt32) {
        self.userFile = userFile
        self.isExplicit = isExplicit
        self.dropInDirectories = dropInDirectories
        self.home = home
        self.user = user
    }

    /// The usual places: `--config` before `RINGBACK_CONFIG` before `$XDG_CONFIG_HOME/ringback/config.toml` before
    /// `~/.config`; drop-ins in `/usr/share/ringback/accounts.d`, `/etc/ringback/accounts.d` and beside the file.
    ///
    /// `option` is the value of `--config`; a relative path is taken from the working directory of this moment.
    public static func standard(option: String?, environment: [String: String]) -> ConfigurationPlace {
        let home = environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        // The XDG specification: a relative path is to be ignored.
        let base =
            environment["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? home.map { "\($0)/.config" }
        let named = option ?? environment["RINGBACK_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        let file = named.map(absolute) ?? base.map { "\($0)/ringback/config.toml" }
        let beside = file.flatMap { file in file.lastIndex(of: "/").map { "\(file[..<$0])/accounts.d" } }
        return ConfigurationPlace(
            userFile: file, isExplicit: named != nil,
            dropInDirectories: ["/usr/share/ringback/accounts.d", "/etc/ringback/accounts.d"]
                + (beside.map { [$0] } ?? []),
            home: home, user: geteuid()
        )
    }

    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let directory = unsafe getcwd(nil, 0) else { return path }
        defer { unsafe free(directory) }
        return unsafe "\(String(cString: directory))/\(path)"
    }

    /// A path of the configuration with `~/` expanded; nil if it is not absolute then.
    func path(_ written: String) -> String? {
        if written.hasPrefix("~/") { return home.map { "\($0)/\(written.dropFirst(2))" } }
        return written.hasPrefix("/") ? written : nil
    }
}
