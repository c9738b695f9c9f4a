internal import HTTPMessages
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
        /// What to register at the provider; empty for a service, which nobody signs in to.
        public let redirectURI: String
        /// What a person should know: one sentence each.
        public let notes: [String]
    }

    /// Sorted by name; empty if there are errors.
    public let accounts: [Account]
    /// Likewise.
    public let schemes: [SchemeConfiguration]
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
            self.init(accounts: [], schemes: [], errors: error.errors, files: [])
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
        self.init(accounts: accounts, schemes: configuration.schemes, errors: [], files: configuration.files)
    }

    private init(
        accounts: [Account], schemes: [SchemeConfiguration], errors: [ConfigurationError], files: [String]
    ) {
        self.accounts = accounts
        self.schemes = schemes
        self.errors = errors
        self.files = files
    }

    /// For people: a line per error, or a line per account with its notes below.
    public var text: String {
        guard isValid else {
            let count = errors.count == 1 ? "1 mistake" : "\(errors.count) mistakes"
            return (errors.map(\.description) + ["The configuration has \(count)."]).joined(separator: "\n") + "\n"
        }
        let schemes = schemes.map { "scheme \($0.name):\n" + $0.notes.map { "    \($0)\n" }.joined() }.joined()
        guard !accounts.isEmpty else {
            return schemes + "No accounts. Add one: ringback account add NAME --issuer URL --client-id ID\n"
        }
        return accounts.map { account in
            let register =
                account.redirectURI.isEmpty ? "no sign-in" : "redirect URI to register: \(account.redirectURI)"
            let line = "\(account.name): \(account.provider), \(register)\n"
            return line + account.notes.map { "    \($0)\n" }.joined()
        }.joined() + schemes
    }

    /// For programs: `{"valid","accounts":[{"name","provider","source","redirect_uri","notes"}],"errors":[…]}`, and the
    /// tables of schemes as `"schemes":[{"name","source","command"?}]`.
    public var json: String {
        let accounts = accounts.map { account -> JSON in
            [
                "name": .string(account.name), "provider": .string(account.provider),
                "source": .string(account.source.description), "redirect_uri": .string(account.redirectURI),
                "notes": .array(account.notes.map { .string($0) }),
            ]
        }
        let schemes = schemes.map { scheme -> JSON in
            var object = JSONObject([
                .init("name", .string(scheme.name)), .init("source", .string(scheme.source.description)),
            ])
            object["command"] = scheme.command.map { .array($0.map { .string($0) }) }
            return .object(object)
        }
        let document: JSON = [
            "valid": .bool(isValid), "accounts": .array(accounts), "schemes": .array(schemes),
            "errors": .array(errors.map(\.json)),
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
        if let service { notes.append("A service: its tokens come by grant = \"\(service.grant.rawValue)\".") }
        if let path = service?.assertionFile, AccountConfiguration.awaitsAssertion(at: path) {
            notes.append("The token to trade is not in \(path) yet; until it is, there are no tokens.")
        }
        switch redirect {
        case _ where service != nil: break
        case .loopback("localhost", _, _):
            notes.append("localhost is bound as 127.0.0.1 and as [::1]; if one of them is taken, the sign-in fails.")
        case .loopback(_, let port?, _):
            notes.append("The port \(port) must be free whenever somebody signs in.")
        case .loopback: break
        case .customScheme(let uri):
            let scheme = uri.prefix { $0 != ":" }.lowercased()
            notes.append(
                "The desktop must hand \(scheme): links to ringback open. Run: ringback scheme register \(scheme)")
            // RFC 8252 sections 7.1 and 8.6.
            if (try? URLScheme(parsing: scheme))?.isReverseDNS == false {
                notes.append(
                    "Any other app may claim the scheme \(scheme): one after a domain of yours, as org.example.\(scheme), "
                        + "is nobody else's.")
            }
        case .https:
            notes.append("The answer does not come back by itself: paste its address into ringback complete.")
        }
        if clientSecret == .none, let clientAuthentication, ![.none, .privateKeyJWT].contains(clientAuthentication) {
            notes.append("\(clientAuthentication.rawValue) needs client_secret_file or client_secret_command: set one.")
        }
        if let name = clientSecretCredential {
            notes.append("The client's secret is the credential \(name), which the daemon is given at its start.")
        }
        if clientSecret == .registered { notes.append("The client's secret is in the vault, which was not opened.") }
        if case .command = clientSecret { notes.append("The client's secret comes from a command, which was not run.") }
        return notes
    }
}
