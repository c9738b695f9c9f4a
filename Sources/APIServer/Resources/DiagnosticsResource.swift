internal import BrokerCore
internal import DeepLinks
internal import Glibc
internal import HTTPMessages
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import SessionVault
internal import StrictJSON

/// What `ringback doctor` asks of the daemon: what it sees of itself and of the accounts' providers, and links whose
/// way through the desktop is to be seen.
extension SocketAPI {
    func diagnostics(_ call: Call) async throws(Problem) -> ServerResponse {
        var names = await broker.accounts().map(\.name)
        if let text = call.query("account") {
            guard let name = AccountName(text), names.contains(name) else {
                throw Problem(.accountNotFound, "There is no such account. See `ringback accounts`.")
            }
            names = [name]
        }
        var checks = vaultFindings().map { SocketAPI.check($0, of: nil) }
        if call.query("account") == nil {
            checks += networkFindings().map { SocketAPI.check($0, of: nil) }
            checks += await exposureTroubles().map { SocketAPI.check(SocketAPI.finding($0), of: nil) }
        }
        for (name, findings) in await findings(of: names) { checks += findings.map { SocketAPI.check($0, of: name) } }
        var object = JSONObject([
            .init("version", .string(daemon.version)), .init("pid", .integer(Int(getpid()))),
            .init("accounts", .array(names.map { .string($0.rawValue) })), .init("checks", .array(checks)),
        ])
        object["configuration_read_at"] = daemon.configurationReadAt().map { .integer($0) }
        if let places = daemon.places {
            object["places"] = .object(JSONObject(places.map { .init($0.name, .string($0.path)) }))
        }
        return ServerResponse(json: .object(object))
    }

    /// All at once: a provider that hangs costs the others nothing.
    private func findings(of names: [AccountName]) async -> [(AccountName, [Finding])] {
        var found: [AccountName: [Finding]] = [:]
        await withTaskGroup(of: (AccountName, [Finding]).self) { group in
            for name in names {
                group.addTask {
                    let provider = (try? await broker.diagnose(name)) ?? []
                    return (name, provider + [await sessionFinding(name)].compactMap { $0 })
                }
            }
            for await (name, findings) in group { found[name] = findings }
        }
        return names.map { ($0, found[$0] ?? []) }
    }

    /// Not being signed in is no illness.
    private func sessionFinding(_ name: AccountName) async -> Finding? {
        guard let view = try? await broker.account(name) else { return nil }
        guard let error = view.error else {
            guard view.isStale else { return Finding("session", .ok, "The account is \(view.state.rawValue).") }
            return Finding(
                "session", .warning, "The access token has expired, and the provider is away.",
                command: "ringback refresh \(name)")
        }
        let problem = Problem(error, language: .english)
        let command = problem.recovery == Recovery.signIn.rawValue ? "ringback login \(name)" : nil
        return Finding("session", .warning, problem.detail ?? problem.title, command: command)
    }

    private static func finding(_ closed: ClosedSocket) -> Finding {
        Finding(
            "expose", .warning, "\(closed.name) is not exposed. \(closed.detail)", command: "ringback expose list")
    }

    private func vaultFindings() -> [Finding] {
        let status = broker.vault.status
        if status.isLocked {
            return [
                Finding(
                    "vault", .warning,
                    "The vault is locked: no session is served. \(status.reason ?? "")"
                        .trimmedEnd, command: "ringback unlock")
            ]
        }
        guard status.kind != "memory" else {
            return [
                Finding(
                    "vault", .warning,
                    "Sessions are in memory alone, and gone when the daemon ends. "
                        + (status.reason ?? "Set key_source = \"key-file\" below [vault], and start the daemon anew."),
                    command: "systemctl --user restart ringback.service")
            ]
        }
        return [Finding("vault", .ok, "The key comes from \(status.keySource): \(status.protects).")]
    }

    private static func check(_ finding: Finding, of account: AccountName?) -> JSON {
        var object = JSONObject([.init("check", .string(finding.check))])
        object["account"] = account.map { .string($0.rawValue) }
        object["level"] = .string(finding.level.rawValue)
        object["message"] = .string(finding.message)
        object["command"] = finding.command.map { .string($0) }
        return .object(object)
    }

    // MARK: Links

    func makeDiagnosticLink(_ call: Call) async throws(Problem) -> ServerResponse {
        guard let text = try call.text("scheme"), let scheme = try? URLScheme(parsing: text) else {
            throw call.invalid("scheme", "an app's scheme is required, such as org.example.app")
        }
        // A link that went round would promise what the daemon does not keep.
        if let why = await deepLinks?.whyForeign("\(scheme):x") { throw Problem(.stateConflict, why) }
        guard let link = diagnosticLinks.make(scheme) else {
            throw Problem(.stateConflict, "Too many links are under way. Try again in two minutes.")
        }
        return ServerResponse(status: 201, json: SocketAPI.show(link))
    }

    func getDiagnosticLink(_ call: Call) async throws(Problem) -> ServerResponse {
        let wait = try call.seconds("wait") ?? 0
        guard let link = diagnosticLinks[call.parameters["link"] ?? ""] else {
            throw Problem(.notFound, "There is no such link. One is waited for two minutes.")
        }
        _ = await link.arrival.wait(atMost: .seconds(wait))
        return ServerResponse(json: SocketAPI.show(link))
    }

    /// The answer to a link of ours that came back; nil if the URL is something else.
    func diagnosticLink(_ url: String, _ call: Call) throws(Problem) -> ServerResponse? {
        var executable: String?
        if case .local(_, let pid) = call.request.peer { executable = ProcessFacts.executable(of: pid) }
        switch diagnosticLinks.receive(url, from: executable) {
        case .other: return nil
        case .unknown:
            throw Problem(.invalidCallback, "It is a link of ringback doctor, which does not wait for it any more.")
        case .arrived(let link): return ServerResponse(json: ["diagnostic_link": SocketAPI.show(link)])
        }
    }

    private static func show(_ link: DiagnosticLinks.Link) -> JSON {
        var object = JSONObject([
            .init("id", .string(link.id)), .init("scheme", .string(link.scheme.name)), .init("url", .string(link.url)),
            .init("arrived", .bool(link.arrival.value != nil)),
        ])
        object["executable"] = (link.arrival.value?.executable).map { .string($0) }
        return .object(object)
    }
}

extension String {
    /// Without spaces at the end.
    fileprivate var trimmedEnd: String { String(reversed().drop { $0 == " " }.reversed()) }
}

extension SocketAPI.Daemon {
    /// Where a file or a directory of the daemon's is.
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
