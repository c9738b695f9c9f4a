public import MCPBridge
internal import OAuth
public import RingbackBase

/// The result of `ringbackd --check-config`.
public struct ConfigurationReport: Sendable, Equatable {
    /// An account without errors in the configuration.
    public struct Account: Sendable, Equatable {
        public let name: String
        /// The provider's name in the socket API.
        public let provider: String
        public let source: ConfigurationSource
        /// The redirect URIs to register at the provider; empty if there are none.
        public let redirectURI: String
        /// The display name beside the provider's host; nil without a display name.
        public let label: String?
        /// What to register at the provider before the first sign-in, as the end of a sentence.
        public let registration: String
        /// Hints for the user, one sentence each.
        public let notes: [String]
    }

    /// A restricted socket.
    public struct Expose: Sendable, Equatable {
        public let name: String
        public let accounts: [String]
        /// What may be asked of the account's MCP server; nil for a socket that serves tokens.
        public let mcp: MessageRule?
        public let source: ConfigurationSource
        /// Hints for the user, one sentence each.
        public let notes: [String]

        fileprivate var json: JSON {
            let rule: JSONObject? = mcp.map { ["methods": $0.methods, "tools": $0.tools] }
            return .object(["name": name, "accounts": accounts, "mcp": rule, "source": source.json, "notes": notes])
        }
    }

    /// Sorted by name; empty if there are errors.
    public private(set) var accounts: [Account] = []
    /// Sorted by name; empty if there are errors.
    public private(set) var schemes: [SchemeConfiguration] = []
    /// In the order of the file; empty if there are errors.
    public private(set) var exposes: [Expose] = []
    /// In the order of the file; empty if there are errors.
    public private(set) var origins: [OriginConfiguration] = []
    /// In the order of the file; empty if there are errors.
    public private(set) var keptFiles: [FileConfiguration] = []
    /// The account for commands that name none; nil without one, and if there are errors.
    public private(set) var defaultAccount: DefaultAccount?
    public private(set) var errors: [ConfigurationError] = []
    /// The files that were read.
    public private(set) var files: [String] = []

    /// True if the daemon would start with this configuration.
    public var isValid: Bool { errors.isEmpty }

    /// Reads the configuration and checks it.
    ///
    /// - Parameter names: the names of the exposed sockets that API requests created, if they are known.
    public init(of place: ConfigurationPlace, exposedByHand names: Set<String> = []) {
        do throws(ConfigurationErrors) {
            let configuration = try DaemonConfiguration.load(place)
            let clashes = configuration.clashes(with: names)
            guard clashes.isEmpty else { throw ConfigurationErrors(clashes) }
            self.init(of: configuration)
        } catch {
            self.init(errors: error.errors)
        }
    }

    private init(errors: [ConfigurationError]) {
        self.errors = errors
    }

    /// The report of a configuration without errors.
    public init(of configuration: DaemonConfiguration) {
        accounts = configuration.accounts.map { account in
            Account(
                name: account.name, provider: account.provider.word, source: account.source,
                redirectURI: account.redirectURIsToRegister.joined(separator: " "),
                label: account.label == account.name ? nil : account.label, registration: account.registration,
                notes: account.notes
            )
        }
        exposes = configuration.exposes.map { expose in
            Expose(
                name: expose.name, accounts: expose.accounts, mcp: expose.mcp, source: expose.source,
                notes: expose.notes(configuration.accounts))
        }
        schemes = configuration.schemes
        origins = configuration.origins
        keptFiles = configuration.keptFiles
        defaultAccount = configuration.defaultAccount
        files = configuration.files
    }

    /// `{"valid","accounts":[{"name","provider","source","redirect_uri","label"?,"registration","notes"}],
    /// "errors":[…]}`, with the tables of schemes as `"schemes":[{"name","source","command"?,"notes"}]`, those of restricted sockets as
    /// `"exposes":[{"name","accounts","mcp"?,"source","notes"}]`, the table of origins as `"origins":[{"url","account",
    /// "kind","headers","source"…}]`, and the kept files as `"kept_files":[{"path","account","format","source"}]`. Each
    /// `source` is `{"file","line"}`.
    public var json: String {
        let accounts: [JSONObject] = accounts.map { account in
            [
                "name": account.name, "provider": account.provider, "source": account.source.json,
                "redirect_uri": account.redirectURI, "label": account.label, "registration": account.registration,
                "notes": account.notes,
            ]
        }
        let schemes: [JSONObject] = schemes.map { scheme in
            [
                "name": scheme.name, "source": scheme.source.json, "command": scheme.command, "notes": scheme.notes,
            ]
        }
        return JSON.object([
            "valid": isValid, "accounts": accounts, "schemes": schemes, "exposes": exposes.map(\.json),
            "origins": origins.map(\.json), "kept_files": keptFiles.map(\.json), "default": defaultAccount?.json,
            "errors": errors.map(\.json),
        ]).text
    }
}

extension ConfigurationError {
    /// `{"file","line","key","message","cause","path","socket"}`, without the members that are not known: an element of
    /// `errors` in the socket API.
    public var json: JSON {
        var object: JSONObject = ["file": file, "line": line, "key": key, "message": message]
        switch cause {
        case .unsafe(let unsafe):
            object["cause"] = .string(unsafe.trouble.rawValue)
            object["path"] = .string(unsafe.path)
        case .nameTaken(let socket):
            object["cause"] = "name_taken"
            object["socket"] = .string(socket)
        case nil: break
        }
        return .object(object)
    }
}

extension AccountConfiguration {
    /// A short text about what to register at the provider before the first sign-in.
    fileprivate var registration: String {
        let uris = redirectURIsToRegister.joined(separator: " ")
        guard service == nil else { return "no sign-in" }
        if case .mcp = provider, clientID.isEmpty { return "nothing to register: the client is found at the sign-in" }
        guard case .supabase = provider else { return "redirect URI to register: \(uris)" }
        return uris.isEmpty ? "no redirect URL to add" : "redirect URL to add to the project: \(uris)"
    }

    /// Hints for the user before the first sign-in.
    var notes: [String] {
        var notes: [String] = []
        if let service {
            notes.append("A service account: its tokens come from grant = \"\(service.grant.rawValue)\".")
        }
        if case .mcp(let mcp) = provider {
            notes.append("The authorization server is found by asking \(mcp.server.url.place) at each sign-in.")
        }
        if let path = service?.assertionFile, AccountConfiguration.awaitsAssertion(at: path) {
            notes.append("The file \(path) holds no token yet. Until it does, no token can be requested.")
        }
        switch redirect {
        case _ where service != nil: break
        case .loopback("localhost", _, _):
            notes.append("localhost is bound as 127.0.0.1 and as [::1]; if one of them is taken, the sign-in fails.")
        case .loopback(_, let port?, _):
            notes.append("The port \(port) must be free at each sign-in.")
        case .loopback: break
        case .customScheme(let uri):
            let scheme = uri.prefix { $0 != ":" }.lowercased()
            notes.append("The desktop must open \(scheme): links with Ringback.")
            if let note = SchemeConfiguration.note(onClaimsOf: scheme) { notes.append(note) }
        case .https:
            notes.append("The browser does not return by itself: its address has to be pasted.")
        }
        if clientSecret == .none, let clientAuthentication, ![.none, .privateKeyJWT].contains(clientAuthentication) {
            notes.append("\(clientAuthentication.rawValue) needs client_secret_file or client_secret_command: set one.")
        }
        if let name = clientSecretCredential {
            notes.append("The client's secret is the credential \(name), which the daemon is given at its start.")
        }
        if let name = clientKeyCredential {
            notes.append("The client's key is the credential \(name), which the daemon is given at its start.")
        }
        if clientSecret == .registered { notes.append("The client's secret is in the vault, which was not opened.") }
        if case .command = clientSecret { notes.append("The client's secret comes from a command, which was not run.") }
        return notes
    }
}
