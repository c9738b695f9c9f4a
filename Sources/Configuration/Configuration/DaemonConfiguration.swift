public import RingbackBase

/// The whole configuration. Reading it uses files only, never the network, so that the helper process can read it
/// itself.
public struct DaemonConfiguration: Sendable, Equatable {
    /// Sorted by name.
    public fileprivate(set) var accounts: [AccountConfiguration] = []
    public fileprivate(set) var vault: VaultConfiguration
    /// `[network]`: the proxy of accounts without their own setting. Proxy variables of the environment are ignored.
    public fileprivate(set) var proxy: HTTPProxy?
    /// Sorted by name. An account's redirect URI with a custom scheme does not add an entry here.
    public fileprivate(set) var schemes: [SchemeConfiguration] = []
    /// These three are in the order of the file.
    public fileprivate(set) var exposes: [ExposeConfiguration] = []
    public fileprivate(set) var origins: [OriginConfiguration] = []
    public fileprivate(set) var keptFiles: [FileConfiguration] = []
    /// Sorted by name. `ringback run` reads them from the report; the daemon has no use for them.
    public fileprivate(set) var runs: [RunConfiguration] = []
    public fileprivate(set) var defaultAccount: DefaultAccount?
    public fileprivate(set) var showsNotices = true
    /// `[consent]`: of accounts without their own.
    public fileprivate(set) var defaultConsent = ConsentMode.allow
    /// The files that were read, in order.
    public fileprivate(set) var files: [String] = []

    public func consent(of account: AccountConfiguration) -> ConsentMode { account.consent ?? defaultConsent }
    public subscript(name: String) -> AccountConfiguration? { accounts.first { $0.name == name } }
    public func scheme(_ name: String) -> SchemeConfiguration? { schemes.first { $0.name == name } }

    /// Reads all files: drop-ins first, the user's file last. A later file overrides earlier ones; accounts are
    /// replaced as a whole. Throws all errors of all files. The default file may be missing; an explicitly named file
    /// must exist.
    public static func load(_ place: ConfigurationPlace) throws(ConfigurationErrors) -> DaemonConfiguration {
        var loader = ConfigurationLoader(place: place, read: DaemonConfiguration(vault: place.usualVault))
        for directory in place.dropInDirectories { loader.readDirectory(directory) }
        if let candidate = place.candidate { loader.add(candidate, isDropIn: true) }
        if let file = place.userFile { loader.add(file, isDropIn: false) }
        loader.checkExposes()
        if loader.errors.isEmpty {
            loader.errors =
                OriginConfiguration.mistakes(in: loader.read.origins, accounts: loader.accounts)
                + FileConfiguration.mistakes(in: loader.read.keptFiles, knowing: loader.accounts.keys)
                + loader.read.runs.flatMap { $0.mistakes(knowing: loader.accounts.keys) }
        }
        if loader.errors.isEmpty { loader.errors = IDTokenAccountCheck.mistakes(in: loader.accounts) }
        if loader.errors.isEmpty { loader.errors = RedirectMixUpCheck.mistakes(in: loader.accounts) }
        if loader.errors.isEmpty {
            loader.errors = loader.read.defaultAccount?.mistakes(knowing: loader.accounts.keys) ?? []
        }
        if loader.errors.isEmpty { loader.errors = loader.showingDenied }
        guard loader.errors.isEmpty else { throw ConfigurationErrors(loader.errors) }
        var configuration = loader.read
        configuration.accounts = loader.accounts.values.sorted {
            $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
        }
        configuration.schemes = loader.schemes.values.sorted { $0.name < $1.name }
        configuration.runs.sort { $0.name < $1.name }
        if let vault = place.onlyVault { configuration.vault = vault }
        return configuration
    }

    /// Reports `[[expose]]` tables whose names are already used by exposed sockets that API requests created. A table
    /// must not change what the connected clients of such a socket see. At start this is not an error; the table is
    /// then ignored.
    public func clashes(with names: Set<String>) -> [ConfigurationError] {
        exposes.filter { names.contains($0.name) }.map { expose in
            expose.mistake(
                "an exposed socket that was not made by the configuration has this name: choose another name, "
                    + "or revoke that socket first",
                cause: .nameTaken(socket: expose.name))
        }
    }
}

/// Reads the files one after another; later ones override earlier ones.
private struct ConfigurationLoader {
    let place: ConfigurationPlace
    /// All but the accounts and the schemes.
    var read: DaemonConfiguration
    var accounts: [String: AccountConfiguration] = [:]
    var schemes: [String: SchemeConfiguration] = [:]
    var errors: [ConfigurationError] = []

    /// Tables that give the tokens of an account to programs that its `consent` keeps out.
    var showingDenied: [ConfigurationError] {
        func isDenied(_ name: String) -> Bool { accounts[name].map(read.consent) == .deny }
        func message(_ name: String) -> String { "\(name) has consent = \"deny\": remove this table, or the consent" }
        let exposed = read.exposes.compactMap { expose in
            expose.accounts.first(where: isDenied).map { expose.mistake(message($0)) }
        }
        let kept = read.keptFiles.filter { isDenied($0.account) }.map { file in
            file.source.mistake("file", message(file.account))
        }
        return exposed + kept
    }

    mutating func readDirectory(_ directory: String) {
        do throws(FileTrust.Failure) {
            for file in try FileTrust(user: place.user).files(in: directory, ending: ".toml") {
                add(file, isDropIn: true)
            }
        } catch {
            refuse(directory, error)
        }
    }

    private mutating func refuse(_ file: String, _ failure: FileTrust.Failure) {
        switch failure {
        case .missing: errors.append(ConfigurationError(file: file, message: "does not exist"))
        case .refused(let reason, let unsafe):
            errors.append(ConfigurationError(file: file, message: reason, cause: unsafe.map { .unsafe($0) }))
        }
    }

    /// Checks that each `[[expose]]` has a unique name and existing accounts. If there are other errors, accounts are
    /// not checked, because an account with an error would be reported as missing too.
    mutating func checkExposes() {
        if errors.isEmpty { errors = read.exposes.flatMap { $0.mistakes(accounts) } }
        var names: Set<String> = []
        for (index, expose) in read.exposes.enumerated() {
            let isTaken = !names.insert(expose.name).inserted
            let isTooMany = index >= ExposeConfiguration.most
            let message =
                isTaken ? "another [[expose]] has this name" : "there are more than \(ExposeConfiguration.most)"
            if isTaken || isTooMany { errors.append(expose.mistake(message)) }
            // All following tables would be too many as well.
            if isTooMany { return }
        }
    }

    /// Reads one file. If it is rejected, the others are still checked.
    mutating func add(_ file: String, isDropIn: Bool) {
        let content: FileTrust.Content
        do throws(FileTrust.Failure) {
            let path = place.draft?.original == file ? place.draft?.path : nil
            content = try FileTrust(user: place.user).read(path ?? file, maxSize: TOMLDocument.maxSize)
        } catch {
            if isDropIn || place.isExplicit || error != .missing { refuse(file, error) }
            return
        }
        read.files.append(file)
        let document: TOMLDocument
        do throws(TOMLDocument.SyntaxError) {
            document = try TOMLDocument(parsing: content.bytes)
        } catch {
            errors.append(ConfigurationError(file: file, line: error.line, message: error.message))
            return
        }
        let check = KeyCheck(file: file, isDropIn: isDropIn)
        let root = TOMLMembers(members: check.check(document.root, as: .file, at: []))
        let place = place
        func table(_ path: [String], _ node: TOMLDocument.Node) -> SettingTable {
            SettingTable(path, node, place: place, isPrivateFile: content.isPrivate, check: check)
        }
        /// The tables of a key, by their names or numbers. Those with an error are left out.
        func tables<Value>(_ key: String, _ make: (SettingTable) -> Value?) -> [Value] {
            let nodes: [(String, TOMLDocument.Node)] =
                switch root.node(key)?.value {
                case .table(let members): members.map { ($0.key, $0.node) }
                case .array(let elements): elements.enumerated().map { (String($0 + 1), $1) }
                default: []
                }
            return nodes.compactMap { name, node in
                let before = check.errors.count
                let value = make(table([key, name], node))
                return check.errors.count == before ? value : nil
            }
        }
        if let node = root.node("vault") { read.vault = .read(table(["vault"], node), over: read.vault) }
        if let node = root.node("network") { read.proxy = ProxyReader(table: table(["network"], node)).read() }
        if let name = root.string("default"), let line = root.node("default")?.line {
            read.defaultAccount = DefaultAccount(name: name, source: ConfigurationSource(file: file, line: line))
        }
        if let mode: ConsentMode = root.table("consent")?.word("default") { read.defaultConsent = mode }
        if let isEnabled = root.table("notifications")?.boolean("enabled") { read.showsNotices = isEnabled }
        for account in tables("accounts", { AccountReader(table: $0).read() }) { accounts[account.name] = account }
        for scheme in tables("schemes", { SchemeConfiguration.read($0) }) { schemes[scheme.name] = scheme }
        read.exposes += tables("expose") { ExposeReader(table: $0).read() }
        read.origins += tables("origin") { OriginReader(table: $0).read() }
        read.keptFiles += tables("file") { FileReader(table: $0).read() }
        read.runs += tables("run") { RunReader(table: $0).read() }
        errors += check.report
    }
}
