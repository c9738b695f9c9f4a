import DeepLinks
import Glibc
import LocalHTTP
import OAuth
import OAuthSignIn
import Records
import RingbackAPI
import RingbackBase
import SessionVault
import Synchronization
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

/// The socket API with everything behind it. Every answer is held against the OpenAPI document, and searched for what
/// must never leave the daemon.
struct APIHouse: Sendable {
    let clock = TestClock()
    let provider: CanaryProvider
    let broker: Broker
    let api: SocketAPI
    let mistakes = Mistakes()
    let records: RecordKeeper
    let folder: AuditFolder
    let links: DeepLinkRegistry
    let started = Started()
    let told = Told()
    let exposedSockets: ExposedSocketRegistry
    /// Empty until a test configures some.
    let origins: OriginRegistry
    /// Every program may use every account until a test configures something else.
    let consents: ConsentDesk
    /// For which programs processes connect, by their pids.
    let programs = CallingPrograms()

    static let version = "1.2.3"

    /// - Parameters:
    ///   - http: who is asked in the provider's place.
    ///   - openPage: opens pages in place of the helper process; without it flows have no `open_url`.
    init(
        vault: any Vault = MemoryVault(), http: (any HTTPClient)? = nil, hosts: (any VaultHosts)? = nil,
        openPage: (@Sendable (_ url: String, AccountName, _ token: String?) async -> String?)? = nil
    ) async throws {
        provider = try CanaryProvider(clock: clock)
        let callbackReceiver = CallbackReceiver(
            open: { template, account throws(BrokerError) in
                if template == "http://127.0.0.1:1/" {
                    throw .portInUse(
                        ListenerFailure(
                            .portTaken(by: 1_001), host: "127.0.0.1", port: 1, setting: "redirect_uri"))
                }
                return template ?? "http://127.0.0.1:4711/callback/\(account)"
            }, openEntrance: { key, _, _ in openPage.map { _ in "http://127.0.0.1:4711/start/\(key)" } },
            close: { _, _ in }, listeners: { ["127.0.0.1:4711"] })
        folder = try AuditFolder()
        let now = clock.clockWithoutWaking.now
        records = RecordKeeper(
            audit: AuditLog(path: folder.file, options: AuditLog.Options(now: now, report: { _ in })))
        broker = Broker(
            vault: vault, http: http ?? provider, callbackReceiver: callbackReceiver, clock: clock.clockWithoutWaking,
            record: records.note)
        var account = try APIHouse.account("work")
        account.oauth.clientSecret = Account.SecretSource { () throws(BrokerError) in Secret("canary-client-secret") }
        account.oauth.clientAuthentication = .clientSecretPost
        let mistakes = mistakes
        let started = started
        links = DeepLinkRegistry(
            broker: broker, clock: clock.clockWithoutWaking, record: records.note,
            startApplication: { scheme, url in
                started.add("\(scheme) \(url.revealed())")
                return nil
            })
        var daemon = SocketAPI.Daemon(
            version: APIHouse.version, build: "commit 1a2b3c4d5", clock: clock.clockWithoutWaking,
            certificates: { path throws(UntrustedFile) in
                guard path == "/ca.pem" else { throw UntrustedFile(reason: "the file \(path) does not exist") }
                return ServerTrust(certificateAuthorities: Array("CA".utf8))
            }, reload: { mistakes.outcome })
        exposedSockets = ExposedSocketRegistry(
            listening: ExposedSocketRegistry.Listening(open: { _ in }, close: { _ in }), file: nil,
            clock: clock.clockWithoutWaking,
            binding: { [broker] in await broker.binding(of: $0) }, record: records.note)
        daemon.exposedSockets = exposedSockets
        daemon.vaultHosts = hosts
        origins = OriginRegistry(broker)
        daemon.origins = origins
        consents = ConsentDesk(file: nil, clock: clock.clockWithoutWaking, tell: broker.tell)
        daemon.consents = consents
        daemon.callingProgram = programs.find
        daemon.tellOfCallback = told.tell
        if let openPage { daemon.openPage = openPage }
        daemon.exposedAt = {
            ExposedPlace(socket: "/x/\($0.name).sock", directory: "/x/\($0.name)", flatpakSocket: nil)
        }
        api = SocketAPI(
            broker: broker, policy: Policy(owner: 1_000), daemon: daemon, records: records, owner: 1_000,
            deepLinks: links)
        try await configure([account])
    }

    static func signedIn() async throws -> APIHouse {
        let house = try await APIHouse()
        try await house.signIn()
        return house
    }

    func configure(_ accounts: [Account]) async throws {
        await broker.configure(accounts)
        broker.stopListening(try await broker.events(of: nil, after: nil).live)
    }

    static func account(_ name: String) throws -> Account {
        Account(
            name: try #require(AccountName(name)), provider: "oidc", source: "test",
            kind: OAuthAccount(endpoints: .issuer(CanaryProvider.origin)), clientID: "ringback",
            scopes: ["openid", "email"])
    }

    /// An account at an MCP server.
    static func linear() throws -> Account {
        let server = try MCPServer(parsing: "https://mcp.example.org/mcp")
        let rules = OAuthAccount(endpoints: .issuer("https://mcp.example.org"))
        return Account(
            name: try #require(AccountName("linear")), provider: "mcp", source: "test",
            kind: MCPAccount(server: server, rules: rules), clientID: "")
    }

    struct Answer: Sendable {
        let response: ServerResponse
        let text: String
        let json: JSON
        var status: Int { response.status }
        var code: String? { json["code"]?.string }
        subscript(name: String) -> JSON? { json[name] }
    }

    /// Asks, and examines the answer. `immediate`: the hot path may answer, as it does behind a real socket.
    @discardableResult
    func ask(
        _ method: String, _ target: String, _ body: String? = nil, fields: [(String, String)] = [],
        peer: Peer = .local(uid: 1_000, pid: 4_711), immediate: Bool = true,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async -> Answer {
        var fields = HTTPFields(fields)
        if body != nil, !fields.contains("Content-Type") { fields.append("Content-Type", "application/json") }
        let request = ServerRequest(
            method: method, target: target, fields: fields, body: Array((body ?? "").utf8), peer: peer)
        var response = immediate ? api.immediate(request) : nil
        if response == nil { response = await api.respond(request) }
        guard let response else { return Answer(response: ServerResponse(status: 0), text: "", json: .null) }
        var text = ""
        if case .bytes(let bytes) = response.body { text = String(decoding: bytes, as: UTF8.self) }
        let examiner = SchemaExaminer(document: OpenAPIDocument.document(version: APIHouse.version))
        for mistake in examiner.mistakes(of: response, to: method, request.path) {
            Issue.record("\(method) \(target): \(mistake) in \(text)", sourceLocation: sourceLocation)
        }
        for secret in provider.secrets where text.contains(secret) {
            Issue.record("\(method) \(target) shows \(secret)", sourceLocation: sourceLocation)
        }
        return Answer(response: response, text: text, json: (try? JSON(parsing: Array(text.utf8))) ?? .null)
    }

    @discardableResult
    func deliver(_ url: String) async -> Answer {
        await ask("POST", "/v1/callbacks", (["url": .string(url)] as JSON).text)
    }

    @discardableResult
    func signIn(_ account: String = "work", as subject: String = "alice", _ body: String = "{}") async throws -> JSON {
        let flow = await ask("POST", "/v1/accounts/\(account)/sign-in", body)
        #expect(flow.status == 201)
        let callback = try provider.consent(try #require(flow["authorization_url"]?.string), as: subject)
        let delivery = await deliver(callback)
        #expect(delivery.status == 200)
        return try #require(delivery["flow"])
    }
}

final class CallingPrograms: Sendable {
    private let known = Mutex<[Int32: CallingProgram]>([:])

    @Sendable func find(_ pid: Int32) -> CallingProgram? { known.withLock { $0[pid] } }

    func set(_ pid: Int32, _ executable: String, session: String, isRootOwned: Bool = true) {
        let program = CallingProgram(
            identity: ProgramIdentity(executable: executable, isVerified: true, isRootOwned: isRootOwned),
            origin: ProgramOrigin(session: session))
        known.withLock { $0[pid] = program }
    }
}

final class Started: Sendable {
    private let state = Mutex<[String]>([])
    var all: [String] { state.withLock { $0 } }
    func add(_ text: String) { state.withLock { $0.append(text) } }
}

/// What the next reload finds wrong, or cannot take over.
final class Mistakes: Sendable {
    private let state = Mutex(SocketAPI.Reloaded())
    var outcome: SocketAPI.Reloaded { state.withLock { $0 } }
    func plant(_ mistakes: [JSON]) { state.withLock { $0.errors = mistakes } }
    func ignore(_ tables: [String]) { state.withLock { $0.restartNeeded = tables } }
}

/// A restricted socket in a house where alice is signed in to two accounts and shows one.
struct ExposedHouse {
    let house: APIHouse
    var api: ExposedAPI
    let exposedSocket: ExposedSocket

    init(_ ceiling: [String]? = nil, lifetime: Int? = nil, signsIn: Bool = true) async throws {
        house = try await APIHouse()
        let hidden = try APIHouse.account("hidden")
        try await house.configure([try APIHouse.account("work"), hidden])
        if signsIn { try await house.signIn() }
        // A token with fewer scopes costs the owner's session nothing at this provider, and that is known.
        try await house.broker.vault.store(
            Secret(#"{"downscoping":"keeps"}"#),
            in: VaultSlot(account: "providers", binding: "https://id.example/token", kind: .provider))
        exposedSocket = try await house.exposedSockets.add(
            ExposedSocket.Order(
                name: "ci", accounts: [try #require(AccountName("work"))], ceiling: ceiling,
                allowedUIDs: [100_999], lifetime: lifetime.map { .seconds($0) }))
        api = ExposedAPI(house.api, showing: exposedSocket)
    }

    func ask(
        _ method: String, _ target: String, _ body: String? = nil, fields: [(String, String)] = [],
        uid: UInt32 = 1_000, memory: ConnectionMemory = ConnectionMemory()
    ) async -> APIHouse.Answer {
        var fields = HTTPFields(fields)
        if body != nil { fields.append("Content-Type", "application/json") }
        let response = await api.respond(
            ServerRequest(
                method: method, target: target, fields: fields, body: Array((body ?? "").utf8),
                peer: .local(uid: uid, pid: 4_712), memory: memory))
        var text = ""
        if case .bytes(let bytes) = response.body { text = String(decoding: bytes, as: UTF8.self) }
        for secret in house.provider.secrets where text.contains(secret) { Issue.record("\(target) shows \(secret)") }
        return APIHouse.Answer(response: response, text: text, json: (try? JSON(parsing: Array(text.utf8))) ?? .null)
    }
}

final class AuditFolder: Sendable {
    private let path: String
    var file: String { "\(path)/audit.jsonl" }

    init() throws {
        var template = Array("/tmp/api-audit.XXXXXX".utf8CString)
        try #require(unsafe mkdtemp(&template) != nil)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        unsafe unlink(file)
        unsafe rmdir(path)
    }

    var text: String {
        let descriptor = unsafe open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        let count = unsafe read(descriptor, &buffer, buffer.count)
        return String(decoding: buffer[..<max(count, 0)], as: UTF8.self)
    }
}

/// What people were told, as `VERDICT ACCOUNT MESSAGE`.
final class Told: Sendable {
    private let lines = Mutex<[String]>([])
    let isShown = Mutex(true)
    var all: [String] { lines.withLock { $0 } }

    @Sendable func tell(_ verdict: CallbackVerdict, _ account: AccountName?, _ message: String?) async -> Bool {
        let word = String("\(verdict)".prefix { $0 != "(" })
        lines.withLock { $0.append("\(word) \(account?.rawValue ?? "nil") \(message ?? "nil")") }
        return isShown.withLock { $0 }
    }
}
