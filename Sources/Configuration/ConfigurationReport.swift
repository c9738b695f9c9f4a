internal import OAuth
public import StrictJSON

/// What `--check-config` and `ringback config check` say about the configuration.
public struct ConfigurationReport: Sendable, Equatable {
    /// An account that will work as far as its file can tell.
    public struct Account: Sendable, Equatable {
        public let name: String
        /// The word of the socket API.
        public let provider: String
        public let source: ConfigurationSource
        /// What to register at the provider.
        public let redirectURI: String
        /// What a person should know: one sentence each.
        public let notes: [String]
    }

    /// Sorted by name; empty if there are errors.
    public let accounts: [Account]
    public let errors: [ConfigurationError]
    /// The files that were read.
    public let files: [String]

    /// True if the daemon would start with it.
    public var isValid: Bool { errors.isEmpty }

    /// Reads the places and reports.
    public init(of place: ConfigurationPlace) {
        do throws(ConfigurationErrors) {
            self.init(of: try DaemonConfiguration.load(place))
        } catch {
            self.init(accounts: [], errors: error.errors, files: [])
        }
    }

    /// Reports a configuration that was read.
    public init(of configuration: DaemonConfiguration) {
        let accounts = configuration.accounts.map { account in
            Account(
                name: account.name, provider: account.provider.word, source: account.source,
                redirectURI: account.redirectURIsToRegister.joined(separator: " "), notes: account.notes
            )
        }
        self.init(accounts: accounts, errors: [], files: configuration.files)
    }

    private init(accounts: [Account], errors: [ConfigurationError], files: [String]) {
        self.accounts = accounts
        self.errors = errors
        self.files = files
    }

    /// For people: a line per error, or a line per account with its notes below.
    public var text: String {
        guard isValid else {
            let count = errors.count == 1 ? "1 mistake" : "\(errors.count) mistakes"
            return (errors.map(\.description) + ["The configuration has \(count)."]).joined(separator: "\n") + "\n"
        }
        guard !accounts.isEmpty else {
            return "No accounts. Add one: ringback account add NAME --issuer URL --client-id ID\n"
        }
        return accounts.map { account in
            let line = "\(account.name): \(account.provider), redirect URI to register: \(account.redirectURI)\n"
            return line + account.notes.map { "    \($0)\n" }.joined()
        }.joined()
    }

    /// For programs: `{"valid","accounts":[{"name","provider","source","redirect_uri","notes"}],"errors":[…]}`.
    public var json: String {
        let accounts = accounts.map { account -> JSON in
            [
                "name": .string(account.name), "provider": .string(account.provider),
                "source": .string(account.source.description), "redirect_uri": .string(account.redirectURI),
                "notes": .array(account.notes.map { .string($0) }),
            ]
        }
        let document: JSON = [
            "valid": .bool(isValid), "accounts": .array(accounts), "errors": .array(errors.map(\.json)),
        ]
        return document.text
    }
}

extension ConfigurationError {
    /// `{"file","line","key","message"}`, without what is not known: a member of `errors` in the socket API.
    public var json: JSON {
        var object = JSONObject([.init("file", .string(file))])
        if let line { object["line"] = .integer(line) }
        if let key { object["key"] = .string(key) }
        object["message"] = .string(message)
        return .object(object)
    }
}

extension AccountConfiguration {
    /// What a person should know before the first sign-in.
    var notes: [String] {
        var notes: [String] = []
        switch redirect {
        case .loopback("localhost", _, _):
            notes.append("localhost is bound as 127.0.0.1 and as [::1]; if one of them is taken, the sign-in fails.")
        case .loopback(_, let port?, _):
            notes.append("The port \(port) must be free whenever somebody signs in.")
        case .loopback: break
        case .customScheme(let uri):
            let scheme = uri.prefix { $0 != ":" }
            notes.append("The desktop must hand \(scheme): links to ringback open.")
        case .https:
            notes.append("The answer does not come back by itself: paste its address into ringback complete.")
        }
        if clientSecret == .none, let clientAuthentication, ![.none, .privateKeyJWT].contains(clientAuthentication) {
            notes.append("\(clientAuthentication.rawValue) needs client_secret_file or client_secret_command: set one.")
        }
        if clientSecret == .registered { notes.append("The client's secret is in the vault, which was not opened.") }
        if case .command = clientSecret { notes.append("The client's secret comes from a command, which was not run.") }
        return notes
    }
}
