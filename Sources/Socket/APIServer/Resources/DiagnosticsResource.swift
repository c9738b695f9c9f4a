internal import BrokerCore
internal import DeepLinks
internal import Glibc
internal import LocalHTTP
internal import Records
internal import RingbackAPI
public import RingbackBase
internal import SessionVault
internal import Synchronization

/// What `ringback doctor` asks of the daemon: its findings, and test links for the desktop.
struct DiagnosticsResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .getDiagnostics, "What the daemon sees of itself and of the accounts' providers",
            query: .optional("account", text: "Only this account"),
            .json(
                "Diagnostics", .required("version"), .required("pid", as: .integer),
                .required("accounts", as: .array(.string)), .optional("places", as: .map(.string)),
                .optional("configuration_read_at", as: .integer), .required("checks", as: .array(.component(.check)))),
            errors: [.accountNotFound], DiagnosticsResource.diagnostics),
        Route(
            .diagnoseAccount, "Look at the provider of an account that is not configured yet",
            body: .members(
                .required("account"),
                .required("configuration", text: "TOML with the account's table, as a configuration file has it"),
                .optional(
                    "client_only", as: .boolean,
                    text: "The provider was looked at a moment ago: its metadata are not requested again")),
            .json("AccountDiagnostics", .required("account"), .required("checks", as: .array(.component(.check)))),
            errors: [.invalidConfiguration, .validationFailed],
            DiagnosticsResource.diagnoseAccount),
        Route(
            .makeDiagnosticLink, "Make a link that the desktop is to open; it arrives as a callback would",
            body: .members(.required("scheme", text: "A configured one, or http: a page for a browser")),
            statuses: [201], .json(.diagnosticLink), errors: [.validationFailed, .stateConflict, .portInUse],
            DiagnosticsResource.makeDiagnosticLink),
        Route(
            .getDiagnosticLink, "Whether a link has arrived, once it has or the wait is over",
            query: .optional("wait", as: .integer, text: "Seconds to wait, at most 600"), .json(.diagnosticLink),
            errors: [.notFound, .validationFailed], DiagnosticsResource.getDiagnosticLink),
    ]

    func diagnostics(_ call: Call) async throws(Problem) -> ServerResponse {
        var names = await broker.accounts().map(\.name)
        if let text = call.query("account") {
            guard let name = AccountName(text), names.contains(name) else {
                throw Problem(.accountNotFound, "There is no such account.")
            }
            names = [name]
        }
        var checks = vaultFindings().map { check($0, of: nil) }
        if call.query("account") == nil {
            checks.append(check(DiagnosticsResource.peers, of: nil))
            checks += api.networkFindings().map { check($0, of: nil) }
            checks += await api.closedSockets().map { check(DiagnosticsResource.finding($0), of: nil) }
            checks += api.fileTroubles().map { check(Finding(.file, .warning, .stated($0), .fileNotKept), of: nil) }
        }
        for (name, findings) in await findings(of: names) { checks += findings.map { check($0, of: name) } }
        return ServerResponse([
            "version": daemon.version, "pid": Int(getpid()), "accounts": names.map(\.rawValue), "checks": checks,
            "configuration_read_at": daemon.configurationReadAt()?.seconds,
            "places": daemon.places.map { JSONObject($0.map { .init($0.name, .string($0.path)) }) },
        ])
    }

    func diagnoseAccount(_ call: Call) async throws(Problem) -> ServerResponse {
        guard let text = try call.text("account"), let name = AccountName(text) else {
            throw call.invalid("account", "must be a name: small letters, digits, “.”, “_” and “-”, at most 64")
        }
        let configuration = try call.required("configuration")
        let isClientOnly = try call.truth("client_only")
        let account: Account
        do throws(UnusableAccount) { account = try daemon.readAccount(name, configuration) } catch {
            throw Problem(.invalidConfiguration, "The account has mistakes.", extensions: ["errors": error.errors])
        }
        let findings = await Diagnostics(of: broker).findings(ofCandidate: account, isClientOnly: isClientOnly)
        return ServerResponse(["account": name.rawValue, "checks": findings.map { check($0, of: name) }])
    }

    /// All providers are checked at the same time, so that one that hangs does not delay the others.
    private func findings(of names: [AccountName]) async -> [(AccountName, [Finding])] {
        var found: [AccountName: [Finding]] = [:]
        await withTaskGroup(of: (AccountName, [Finding]).self) { group in
            for name in names {
                group.addTask {
                    let provider = (try? await Diagnostics(of: broker).findings(of: name)) ?? []
                    let session = [await sessionFinding(name), await revocationFinding(name)].compactMap { $0 }
                    return (name, provider + session)
                }
            }
            for await (name, findings) in group { found[name] = findings }
        }
        return names.map { ($0, found[$0] ?? []) }
    }

    /// It is no problem if an account is not signed in. That the vault is locked is said once, of the vault.
    private func sessionFinding(_ name: AccountName) async -> Finding? {
        guard let view = try? await broker.account(name) else { return nil }
        let isSignedIn = [.authenticated, .refreshing].contains(view.state)
        let problem = view.error.map { Problem($0, language: .english) }
        // A sign-in that failed leaves the session as it is.
        guard let problem, !(isSignedIn && !view.isStale && ErrorCode.ofSignIns.contains(problem.code)) else {
            if !view.lostScopes.isEmpty, let notice = view.notice {
                return Finding(.session, .warning, notice, .signInNeeded)
            }
            guard view.isStale else {
                return Finding(.session, .ok, .stated("The account is \(isSignedIn ? "" : "not ")signed in."))
            }
            return Finding(
                .session, .warning,
                .stated("The access token has expired, and the provider cannot be reached."), .sessionStale)
        }
        guard problem.code != .vaultLocked else { return nil }
        return Finding(
            .session, .warning, .stated(problem.detail ?? problem.title),
            problem.recovery == Recovery.signIn.rawValue ? .signInNeeded : nil)
    }

    private func revocationFinding(_ name: AccountName) async -> Finding? {
        switch (try? await broker.account(name))?.revocation {
        case .pending:
            let text = "The provider has not revoked a session that was signed out. Ringback will ask it again."
            return Finding(.session, .warning, .stated(text))
        case .refused(let error):
            let problem = Problem(error, language: .english)
            return Finding(
                .session, .warning,
                .stated(
                    "The provider refused to revoke a session that was signed out; its tokens may be valid until they "
                        + "expire. " + (problem.detail ?? problem.title)))
        case .revoked, .notOffered, nil: return nil
        }
    }

    private static func finding(_ closed: ClosedSocket) -> Finding {
        Finding(.expose, .warning, .stated("\(closed.name) is not exposed. \(closed.detail.sentence)"), .notExposed)
    }

    /// An older kernel is not a mistake of the user, so this is no error.
    private static var peers: Finding {
        guard PeerProcess.isSupported else {
            return Finding(
                .peers, .ok,
                .stated(
                    "This kernel does not prove which process is at the other end of a socket (SO_PEERPIDFD, Linux "
                        + "6.5). The executables in the audit log come from /proc by process number, and are not "
                        + "verified."),
                .peersUnproved)
        }
        return Finding(.peers, .ok, .stated("The kernel proves which process is at the other end of a socket."))
    }

    private func vaultFindings() -> [Finding] {
        let status = broker.vault.status
        if status.isLocked {
            let obstacle = status.obstacle?.members
            let cause = obstacle?["cause"]?.string.flatMap(Finding.Cause.init(rawValue:)) ?? .vaultLocked
            var finding = Finding(
                .vault, .wrong,
                .stated("The vault is locked: no session is served. \(status.reason?.sentence ?? "")".trimmedEnd), cause
            )
            finding.path = obstacle?["path"]?.string
            return [finding]
        }
        guard status.kind != .memory else {
            return [
                Finding(
                    .vault, .warning,
                    .stated(
                        "Sessions are in memory only, and lost when the daemon ends. "
                            + (status.reason?.sentence
                                ?? "Set key_source = \"key-file\" below [vault], and restart the daemon.")),
                    .vaultInMemory, setting: "vault.key_source")
            ]
        }
        return [
            Finding(.vault, .ok, .stated("The key comes from \(status.keySource.word): \(status.protection.sentence)."))
        ]
    }

    private func check(_ finding: Finding, of account: AccountName?) -> JSONObject {
        [
            "check": finding.check.rawValue, "account": account?.rawValue, "level": finding.level.rawValue,
            "message": finding.message.sentence, "cause": finding.cause?.rawValue, "setting": finding.setting,
            "url": finding.url, "host": finding.host, "port": finding.port, "path": finding.path,
            "proxy": api.proxy(of: finding), "ca_file": finding.way?.certificateFile, "stated": finding.stated,
            "scope": finding.scope, "registration": finding.terms?.json,
        ]
    }

    func makeDiagnosticLink(_ call: Call) async throws(Problem) -> ServerResponse {
        let text = try call.text("scheme")
        if text == "http" { return try await makeDiagnosticPage(call) }
        guard let text, let scheme = try? URLScheme(parsing: text) else {
            throw call.invalid("scheme", "an app's scheme is required, such as org.example.app")
        }
        // If the daemon does not accept the scheme's links, a test link that comes back would mislead.
        if let why = await api.deepLinks?.whyForeign("\(scheme):x") { throw Problem(.stateConflict, why) }
        let id = DiagnosticLinks.randomName()
        return try keep(.init(id, scheme: scheme.name, url: "\(scheme)://\(DiagnosticLinks.host)/\(id)"))
    }

    private func keep(_ link: DiagnosticLinks.Link) throws(Problem) -> ServerResponse {
        guard api.diagnosticLinks.keep(link) else {
            throw Problem(.stateConflict, "Too many links are being tested. Try again in two minutes.")
        }
        return ServerResponse(status: 201, link.json)
    }

    /// A page on loopback. It has arrived when a browser of this user has fetched it.
    private func makeDiagnosticPage(_ call: Call) async throws(Problem) -> ServerResponse {
        let (id, receiver) = (DiagnosticLinks.randomName(), broker.callbackReceiver)
        let arrival = Promise<DiagnosticLinks.Arrival>()
        let opened = try await call.ask { () throws(BrokerError) -> (url: String, owner: AccountName)? in
            guard let owner = DiagnosticLinks.owner else { return nil }
            let url = try await receiver.openSite("rb-\(id)", owner) { _ in
                arrival.fulfil(DiagnosticLinks.Arrival(executable: nil))
                return DiagnosticLinks.page
            }
            return url.map { ($0, owner) }
        }
        guard let (url, owner) = opened else { throw Problem(.stateConflict, "This daemon serves no pages.") }
        broker.waitInBackground {
            _ = await arrival.wait(atMost: DiagnosticLinks.lifetime)
            await receiver.close(url, owner)
        }
        return try keep(.init(id, scheme: "http", url: url, arrival))
    }

    func getDiagnosticLink(_ call: Call) async throws(Problem) -> ServerResponse {
        let wait = try call.duration("wait") ?? .zero
        guard let link = api.diagnosticLinks[call["link"]] else {
            throw Problem(.notFound, "There is no such link. A test link is valid for two minutes.")
        }
        _ = await link.arrival.wait(atMost: wait)
        return ServerResponse(link.json)
    }
}

extension String {
    fileprivate var trimmedEnd: String { String(reversed().drop { $0 == " " }.reversed()) }
}

extension SocketAPI.Daemon {
    public struct Place: Sendable {
        /// `socket`, `state`, `configuration`.
        public let name: String
        public let path: String

        public init(name: String, path: String) {
            self.name = name
            self.path = path
        }
    }
}

/// An account that is not configured yet and has mistakes, as problem members (`file`, `line`, `key`, `message`).
public struct UnusableAccount: Error, Sendable {
    public let errors: [JSON]
    public init(errors: [JSON]) { self.errors = errors }
}

extension Component {
    fileprivate static let check = Component(
        "Check", .required("check", "message"),
        .optional("account", "setting", "url", "host", "path", "proxy", "ca_file", "stated", "scope"),
        .optional("cause", as: .oneOf(Finding.Cause.self)), .optional("port", as: .integer),
        .optional("registration", as: .anyObject), .required("level", as: .oneOf(Finding.Level.self)))
}

/// Test links and pages that the desktop opens. Each has a name that cannot be guessed, and is accepted once.
final class DiagnosticLinks: Sendable {
    struct Link: Sendable {
        let id: String
        let scheme: String
        let url: String
        let arrival: Promise<Arrival>
        fileprivate(set) var endsAt = BootInstant.never

        init(_ id: String, scheme: String, url: String, _ arrival: Promise<Arrival> = Promise()) {
            (self.id, self.scheme, self.url, self.arrival) = (id, scheme, url, arrival)
        }
    }

    struct Arrival: Sendable { let executable: String? }

    enum Outcome {
        case arrived(Link)
        /// It has the form of a test link, but none of this name is awaited.
        case unknown
        case other
    }

    static let host = "ringback-doctor"
    static let lifetime: Duration = .seconds(120)
    /// Stands for an account. None has it: the rules are those of an account without settings.
    static let owner = AccountName(host)
    static let page = HTTPResponse(
        status: 200, fields: HTTPFields([("Content-Type", "text/plain; charset=utf-8")]),
        body: Secret("The browser works. You can close this page.\n"))
    private static let maxCount = 64
    private let links = Mutex<[String: Link]>([:])
    private let clock: BrokerClock
    init(clock: BrokerClock) { self.clock = clock }

    /// False if there are too many.
    func keep(_ link: Link) -> Bool {
        let now = clock.bootInstant
        var link = link
        link.endsAt = now + DiagnosticLinks.lifetime
        return links.withLock { [link] links in
            links = links.filter { $0.value.endsAt > now }
            guard links.count < DiagnosticLinks.maxCount else { return false }
            links[link.id] = link
            return true
        }
    }

    subscript(id: String) -> Link? {
        let now = clock.bootInstant
        return links.withLock { $0[id] }.flatMap { $0.endsAt > now ? $0 : nil }
    }

    func receive(_ text: String, from executable: @autoclosure () -> String?) -> Outcome {
        guard let url = try? WebURL(parsing: text), url.scheme != "http", url.scheme != "https",
            url.host == DiagnosticLinks.host
        else { return .other }
        let id = url.path.split(separator: "/").first.map(String.init) ?? ""
        guard let link = self[id], let own = try? WebURL(parsing: link.url), url.isPlace(of: own) else {
            return .unknown
        }
        link.arrival.fulfil(Arrival(executable: executable()))
        return .arrived(link)
    }

    /// 128 bits, in lower-case letters and digits, which no program on the way changes.
    static func randomName() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let text = String(generator.next(), radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
    }
}

extension DiagnosticLinks.Link {
    var json: JSONObject {
        [
            "id": id, "scheme": scheme, "url": url, "arrived": arrival.value != nil,
            "executable": arrival.value?.executable,
        ]
    }
}

extension Component {
    static let diagnosticLink = Component(
        "DiagnosticLink", .required("id", "scheme", "url"), .required("arrived", as: .boolean),
        .optional("executable"))
}

extension SocketAPI {
    public struct Network: Sendable {
        /// From the configuration, for accounts without a setting of their own.
        public var proxy: HTTPProxy?
        /// Variables that name proxies for other programs, and are ignored. Values may hold passwords and are not kept.
        public var ignoredVariables: [String]

        public init(proxy: HTTPProxy? = nil, ignoredVariables: [String] = []) {
            self.proxy = proxy
            self.ignoredVariables = ignoredVariables
        }
    }

    func networkFindings() -> [Finding] {
        let network = daemon.network()
        var findings: [Finding] = []
        if let proxy = network.proxy { findings.append(.proxied(by: proxy, isOfAll: true)) }
        if !network.ignoredVariables.isEmpty {
            let names = network.ignoredVariables.joined(separator: ", ")
            let remedy =
                network.proxy == nil
                ? " If providers are reached through a proxy, write below [network]: proxy = "
                    + "\"http://HOST:PORT\"" : ""
            findings.append(
                Finding(
                    .network, network.proxy == nil ? .warning : .ok,
                    .stated("The daemon was started with \(names), and does not use what that says.\(remedy)"),
                    network.proxy == nil ? .configuration : nil, setting: "network.proxy"))
        }
        return findings
    }

    /// The proxy of a finding's URL, as in a configuration: `none` if the account excludes the daemon's.
    func proxy(of finding: Finding) -> String? {
        guard let way = finding.way, let url = finding.url.flatMap({ try? WebURL(parsing: $0) }) else { return nil }
        let proxy: HTTPProxy?
        switch way.route {
        case .standard: proxy = daemon.network().proxy
        case .direct: return "none"
        case .proxy(let own): proxy = own
        }
        return proxy.flatMap { $0.covers(url) ? $0.url.text : nil }
    }
}
