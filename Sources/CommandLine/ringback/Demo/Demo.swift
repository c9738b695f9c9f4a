import ArgumentParser
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show a whole sign-in, with a private daemon and provider.",
        discussion: """
            Everything is in a private temporary directory and on loopback: no configuration of yours is read, no \
            browser is opened, nothing is left. Exit status 0 only if every step succeeded.
            """)

    @Flag(help: "Leave both running at the end, and print what to try.") var keep = false

    func run() throws {
        var setup: DemoSetup?
        do throws(RingbackError) {
            let made = try DemoSetup()
            setup = made
            try DemoWalk(setup: made).run(keep: keep)
            if keep {
                showWhatToTry(made)
            } else {
                try made.end()
                Output.line("\nEvery step succeeded, and everything was removed again.")
            }
        } catch {
            Failure(error: error, account: nil).show()
            for line in setup?.lastLogLines ?? [] { Output.note("  " + Sanitizer.line(line, limit: 400)) }
            try? setup?.end()
            throw ExitCode(ExitStatus.of(error))
        }
    }

    private func showWhatToTry(_ setup: DemoSetup) {
        // As the user called it: it may not be in PATH.
        let ringback = ShownCommand(words: [CommandLine.arguments.first ?? "ringback"])
        Output.line(
            """

            Both are still running, and alice is signed in. To try them:
              \(shown: "export RINGBACK_SOCK=\(setup.socket)")
              \(shown: "\(ringback) token demo")
              \(shown: "\(ringback) session demo --json")
              \(shown: "\(ringback) events")
              \(shown: "\(ringback) logout demo && \(ringback) login demo")
              curl --unix-socket "$RINGBACK_SOCK" http://ringback/v1/accounts
            To end it:
              \(shown: "kill \(ShownCommand(words: setup.pids.map(String.init))) && rm -r \(setup.directory)")
            """)
    }
}

/// What a browser does in a sign-in: it loads pages on loopback and follows redirects one by one.
enum DemoBrowser {
    struct Page {
        let url: LoopbackURL
        let head: HTTPExchange.Head
        let text: String

        var status: Int { head.status }
        var destination: LoopbackURL? { head.field("location").flatMap { url.following($0) } }
    }

    static func load(_ url: LoopbackURL, token: String? = nil) throws(RingbackError) -> Page {
        let connection = try SocketConnection(
            loopbackPort: url.port, isIPv6: url.isIPv6, deadline: .now + .seconds(30),
            interruption: try Signals.interruption())
        let exchange = HTTPExchange(connection)
        var fields = [
            HTTPFields.Field("Host", url.authority), HTTPFields.Field("User-Agent", "ringback-demo"),
            HTTPFields.Field("Accept", "text/html, application/json"), HTTPFields.Field("Connection", "close"),
        ]
        if let token {
            fields.append(HTTPFields.Field("Authorization", "Bearer \(token)"))
        } else {
            // The headers that every browser sends when a user navigates to a page.
            fields += [
                HTTPFields.Field("Sec-Fetch-Mode", "navigate"), HTTPFields.Field("Sec-Fetch-Dest", "document"),
                HTTPFields.Field("Sec-Fetch-Site", "cross-site"),
            ]
        }
        try exchange.send("GET", url.target, fields: fields, body: nil)
        let head = try exchange.readHead()
        return Page(url: url, head: head, text: String(decoding: try exchange.readBody(limit: 1 << 20), as: UTF8.self))
    }
}

final class DemoWalk {
    private static let account = "demo"
    private static let user = "alice"

    private let setup: DemoSetup
    private var calls: BrokerCalls { setup.calls }
    private var steps = 0

    init(setup: DemoSetup) { self.setup = setup }

    func run(keep: Bool) throws(RingbackError) {
        let issuer = try startBoth()
        let flow = try beginSignIn(issuer)
        let callback = try signInAtProvider(flow)
        try deliver(callback, flow)
        let session = try showSession()
        try useToken(session, issuer)
        try refresh(session)
        if !keep { try signOut() }
    }

    private func startBoth() throws(RingbackError) -> String {
        step("An identity provider to play with")
        let issuer = try setup.startSandbox(user: DemoWalk.user)
        tell("ringback-sandbox answers at \(issuer) and knows \(DemoWalk.user)")
        step("A daemon of its own")
        let status = try setup.startDaemon(
            """
            [accounts.\(DemoWalk.account)]
            issuer = "\(issuer)"
            client_id = "ringback-demo"
            scopes = ["openid", "email", "offline_access"]

            """)
        tell("the daemon (version \(Sanitizer.line(status.version))) answers at \(setup.socket)")
        tell("the kernel reports your uid (\(getuid())) for it; otherwise nothing would be sent")
        return issuer
    }

    private func beginSignIn(_ issuer: String) throws(RingbackError) -> Flow {
        step("A sign-in begins")
        guard case .flow(let flow, _) = try calls.signIn(DemoWalk.account, ["method": "browser"]) else {
            throw DemoSetup.failure("The daemon began no flow.")
        }
        let url = try require(flow.authorizationURL.flatMap { LoopbackURL($0) }, "the flow has a page to open")
        try check("http://\(url.authority)" == issuer, "its page is at the provider that is configured")
        try check(DemoWalk.parameter("code_challenge_method", of: url) == "S256", "it is protected by PKCE (S256)")
        try check((DemoWalk.parameter("state", of: url) ?? "").utf8.count >= 43, "its state has 256 bits")
        let redirect = try require(flow.redirectURI.flatMap { LoopbackURL($0) }, "the flow has a redirect URI")
        try check(redirect.host == "127.0.0.1", "the callback goes to 127.0.0.1, port \(redirect.port)")
        return flow
    }

    private func signInAtProvider(_ flow: Flow) throws(RingbackError) -> LoopbackURL {
        step("The browser signs in as \(DemoWalk.user)")
        let url = try require(flow.authorizationURL.flatMap { LoopbackURL($0) }, "the flow has a page to open")
        // The sandbox signs its one user in without a page.
        let answer = try DemoBrowser.load(url)
        try check([302, 303].contains(answer.status), "the provider sends the browser back")
        let callback = try require(answer.destination, "to an address on loopback")
        try check(
            flow.redirectURI.map { "http://\(callback.authority)\(callback.target)".hasPrefix($0 + "?") } == true,
            "to the redirect URI, and nowhere else")
        try check(
            DemoWalk.parameter("state", of: callback) == DemoWalk.parameter("state", of: url),
            "with the state that was sent")
        try check(DemoWalk.parameter("iss", of: callback) != nil, "with the name of the issuer (RFC 9207)")
        return callback
    }

    private func deliver(_ callback: LoopbackURL, _ flow: Flow) throws(RingbackError) {
        step("The callback comes back")
        let answer = try DemoBrowser.load(callback)
        try check(answer.status == 303, "the daemon accepts it, exchanges the code and responds with 303")
        let done = try require(answer.destination, "to a page of its own")
        try check(done.target.hasPrefix("/done/"), "which is below /done: its URL has no code")
        let page = try DemoBrowser.load(done)
        let policy = page.head.field("content-security-policy") ?? ""
        try check(page.status == 200 && policy.contains("default-src 'none'"), "the page may load and run nothing")
        let (ended, _) = try calls.wait(forFlow: flow.id)
        if let failure = ended.failure { throw failure }
        let account = try Account(reading: try calls.account(DemoWalk.account))
        try check(account.state == .authenticated, "the account is signed in")
        let who = account.user?.email ?? account.subject ?? "nobody"
        tell("Signed in to \(DemoWalk.account) as \(Sanitizer.line(who))")
    }

    private func showSession() throws(RingbackError) -> Session {
        step("Your apps get a session")
        let answer = try calls.session(SessionRequest(account: DemoWalk.account))
        let session = try Session(reading: answer)
        try check(answer["refresh_token"] == nil, "there is no refresh token in it: that stays in the daemon")
        tell("access token  \(DemoWalk.shortened(session.accessToken))")
        tell("subject       \(Sanitizer.line(session.subject))")
        tell("scope         \(Sanitizer.line(session.scope))")
        tell("valid         \(TimeText.validity(until: session.expiresAt?.secondsSince1970, now: TimeText.now()))")
        return session
    }

    private func useToken(_ session: Session, _ issuer: String) throws(RingbackError) {
        step("The token works")
        let metadata = try fetchJSON(issuer + "/.well-known/openid-configuration", token: nil)
        let place = try require(metadata["userinfo_endpoint"]?.string, "the provider names its userinfo endpoint")
        let userinfo = try fetchJSON(place, token: session.accessToken)
        try check(userinfo["sub"]?.string == session.subject, "the provider accepts it and returns the same subject")
    }

    private func refresh(_ session: Session) throws(RingbackError) {
        step("The session is refreshed")
        _ = try calls.call(.refresh, [DemoWalk.account], body: ["force": true])
        let renewed = try Session(reading: try calls.session(SessionRequest(account: DemoWalk.account)))
        try check(renewed.accessToken != session.accessToken, "the access token is a new one")
        try check(renewed.subject == session.subject, "the subject is the same")
    }

    private func signOut() throws(RingbackError) {
        step("The sign-out")
        _ = try calls.call(.signOut, [DemoWalk.account])
        do throws(RingbackError) {
            _ = try calls.session(SessionRequest(account: DemoWalk.account))
        } catch {
            return try check(error.kind == .signInRequired, "no token is issued any more")
        }
        throw DemoSetup.failure("The session is still served after the sign-out.")
    }

    private func step(_ title: String) {
        steps += 1
        Output.line((steps == 1 ? "" : "\n") + Style.bold.apply("\(steps). \(title)", on: .output))
    }

    private func tell(_ text: String) { Output.sentence(text, margin: 3) }

    private func check(_ condition: Bool, _ what: String) throws(RingbackError) {
        guard condition else { throw DemoSetup.failure("Step \(steps) failed. Expected: \(what).") }
        Output.line("   \(Style.green.apply("✓", on: .output)) \(what)")
    }

    private func require<Value>(_ value: Value?, _ what: String) throws(RingbackError) -> Value {
        guard let value else { throw DemoSetup.failure("Step \(steps) failed. Expected: \(what).") }
        return value
    }

    private func fetchJSON(_ url: String, token: String?) throws(RingbackError) -> JSON {
        let place = try require(LoopbackURL(url), "an address on loopback")
        let page = try DemoBrowser.load(place, token: token)
        return try require(page.status == 200 ? try? JSON(parsing: page.text.utf8) : nil, "JSON at \(place.target)")
    }

    /// A query parameter as it is written: what is compared here needs no unescaping.
    private static func parameter(_ name: String, of url: LoopbackURL) -> String? {
        guard let mark = url.target.firstIndex(of: "?") else { return nil }
        let pairs = url.target[url.target.index(after: mark)...].split(separator: "&")
        return pairs.first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
    }

    /// The first characters: enough to recognise the token, too few to use it.
    private static func shortened(_ token: String) -> String {
        "\(Sanitizer.line(String(token.prefix(10))))… (\(token.utf8.count) characters)"
    }
}

final class DemoSetup {
    let directory: String
    var socket: String { calls.socket }
    var pids: [Int32] { children.map(\.pid) }

    let calls: BrokerCalls
    private var children: [(name: String, pid: Int32)] = []
    private var sandboxOutput: Pipe?

    init() throws(RingbackError) {
        // Short, since a socket's path has 107 bytes at most.
        let variable = SocketPlace.variable("TMPDIR") ?? ""
        let parent = variable.hasPrefix("/") && variable.utf8.count < 64 ? variable : "/tmp"
        guard let made = Files.makePrivateDirectory(in: parent, named: "ringback-demo") else {
            throw DemoSetup.failure("No temporary directory can be made in \(parent).")
        }
        directory = made
        calls = BrokerCalls(
            socket: made + "/ringback.sock", application: "ringback demo", interruption: try Signals.interruption())
    }

    func startSandbox(user: String) throws(RingbackError) -> String {
        let pipe = try Pipe()
        sandboxOutput = pipe
        _ = try start(
            "ringback-sandbox", ["--port", "0", "--user", user, "--auto-approve"], output: .descriptor(pipe.writeEnd))
        pipe.closeWriteEnd()
        let end = ContinuousClock.now + .seconds(20)
        var text = ""
        while !text.contains("\n") {
            guard let piece = pipe.read(until: end, calls.interruption), !piece.isEmpty, text.utf8.count < 4_096 else {
                throw DemoSetup.failure("ringback-sandbox did not say where it listens.")
            }
            text += String(decoding: piece, as: UTF8.self)
        }
        let words = text.prefix { $0 != "\n" }.split(separator: " ")
        guard words.dropLast() == ["listening", "on"], let url = words.last.map(String.init),
            let place = LoopbackURL(url), place.target == "/"
        else { throw DemoSetup.failure("ringback-sandbox's first line is not “listening on http://127.0.0.1:PORT”.") }
        return "http://\(place.authority)"
    }

    func startDaemon(_ configuration: String) throws(RingbackError) -> DaemonStatus {
        let file = directory + "/config.toml"
        // The vault's key is in the demo's directory too, so that nothing is left in the user's own directories.
        let vault = "[vault]\nkey_source = \"key-file\"\nkey_directory = \"\(directory)/keys\"\n"
        try Files.put(Array((configuration + vault).utf8), at: file, mode: 0o600)
        let pid = try start(
            "ringbackd", ["--config", file, "--socket", socket, "--state", directory + "/state"], output: nil)
        let interruption = try Signals.interruption()
        let (answer, status) = try calls.start(of: pid) { interruption.wait(atMost: .milliseconds(20)) }
        if let answer { return try DaemonStatus(reading: answer) }
        children.removeLast()
        throw DemoSetup.failure("ringbackd ended with status \(status) before it responded.")
    }

    func end() throws(RingbackError) {
        var problem: RingbackError?
        // The daemon first: it may have revocations to send to the provider.
        while let child = children.popLast() {
            let status = Programs.end(child.pid)
            if status == 0 { continue }
            let end = status.map { "ended with status \($0)." }
            problem = DemoSetup.failure(
                "\(child.name) \(end ?? "had to be killed: it did not end within 6 s of SIGTERM.")")
        }
        Files.removeTree(directory)
        if let problem { throw problem }
    }

    var lastLogLines: [String] {
        ["ringback-sandbox", "ringbackd"].flatMap { name in
            let lines = Files.lastLines(of: "\(directory)/\(name).log", 5)
            return lines.isEmpty ? [] : ["\(name) said last:"] + lines.map { "  " + $0 }
        }
    }

    private func start(_ name: String, _ arguments: [String], output: Subprocess.Output?) throws(RingbackError) -> Int32
    {
        let log = unsafe open("\(directory)/\(name).log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard log >= 0 else { throw DemoSetup.failure("No log can be written in \(directory).") }
        defer { close(log) }
        let pid = Subprocess.start(
            [Programs.path(name)] + arguments, output: output ?? .descriptor(log), errors: .descriptor(log))
        guard let pid else {
            throw DemoSetup.failure("\(name) cannot be started: it should be beside ringback, or in PATH.")
        }
        children.append((name, pid))
        return pid
    }

    static func failure(_ text: String) -> RingbackError { RingbackError("demo_failed", text) }
}
