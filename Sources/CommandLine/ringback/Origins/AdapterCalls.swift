import Adapters
import ArgumentParser
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

extension ConnectionSettings {
    fileprivate var members: JSONObject {
        [
            "without_scheme": withoutScheme ? true : nil, "ca_sha256": authorities.first,
            "tls_server_name": serverNames.first, "insecure_skip_tls_verify": skipsVerification ? true : nil,
            "proxy_url": proxies.first,
        ]
    }
}

struct AdapterCalls {
    let socket: String?
    let tool: String

    /// - Parameter mayWait: says whether a user can be expected to sign in now. Then the call waits for that, two
    ///   minutes at most.
    func lookup(_ request: AdapterRequest, mayWait: () -> Bool) throws(RingbackError) -> AdapterCredential {
        var lookup = OriginRequest(url: request.url)
        lookup.username = request.username
        lookup.settings = request.settings.members
        return try waiting(mayWait) { calls, onTick throws(RingbackError) in
            lookup.isInteractive = onTick != nil
            let found = try calls.lookup(lookup, onTick: onTick)
            if let warning = found.warning { AdapterCalls.note(warning) }
            guard let secret = found.secret else {
                throw RingbackError(.badResponse, "The daemon's response has no “secret”.")
            }
            return AdapterCredential(
                headers: found.headers, username: found.username, secret: secret,
                expiresAt: found.expiresAt?.secondsSince1970)
        }
    }

    func session(_ request: SessionRequest, mayWait: () -> Bool) throws(RingbackError) -> AdapterCredential {
        try waiting(mayWait) { calls, onTick throws(RingbackError) in
            var request = request
            if onTick != nil { (request.waitsForSignIn, request.timeout) = (true, 120) }
            let answer = try calls.session(request, onTick: onTick)
            try BoundToken.refuse(answer)
            let member = (request.kind ?? .accessToken).rawValue
            guard let token = answer[member]?.string, !token.isEmpty else {
                throw RingbackError(.badResponse, "The daemon's response has no “\(member)”.")
            }
            return AdapterCredential(
                headers: ["Authorization: Bearer \(token)"], username: nil, secret: token,
                expiresAt: answer["expires_at"]?.integer)
        }
    }

    /// `call` gets what is to be called during the wait; nil if it may not wait.
    private func waiting(
        _ mayWait: () -> Bool, _ call: (BrokerCalls, (() -> Void)?) throws(RingbackError) -> AdapterCredential
    ) throws(RingbackError) -> AdapterCredential {
        var calls = try self.calls()
        let prompt: SignInPrompt
        do throws(RingbackError) {
            return try call(calls, nil)
        } catch {
            // A stronger sign-in is never waited for: its parameters are in the command that the error names.
            guard ExitStatus.of(error) == 3, error["params"] == nil, mayWait() else { throw error }
            AdapterCalls.show(error)
            prompt = SignInPrompt(tool: tool, account: error["account"]?.string, calls)
        }
        calls.interruption = try Signals.interruption()
        Output.note(prompt.line)
        do throws(RingbackError) {
            do throws(RingbackError) {
                return try call(calls, prompt.tick)
            } catch {
                // The user has refused a sign-in a moment ago, so the daemon begins none by itself.
                guard ExitStatus.of(error) == 3 else { throw error }
                try prompt.beginAtEnter(error)
                return try call(calls, prompt.tick)
            }
        } catch {
            if error.kind == .cancelled { prompt.leave() }
            throw error
        }
    }

    /// Tells the daemon which token the server refused. The tool cannot do anything about a failure.
    func reject(_ request: AdapterRequest) -> Int32 {
        var rejection = OriginRequest(url: request.url)
        rejection.username = request.username
        rejection.rejected = request.rejected
        rejection.isGuess = request.isGuess
        do throws(RingbackError) {
            if let warning = try calls().lookup(rejection).warning { AdapterCalls.note(warning) }
            return 0
        } catch {
            return error.kind == .notFound ? 0 : ExitStatus.of(error)
        }
    }

    func calls() throws(RingbackError) -> BrokerCalls {
        var calls = try Daemon.calls(socket: socket)
        calls.application = tool
        return calls
    }

    static func show(_ error: RingbackError) { failure(error).show() }

    static func text(_ error: RingbackError) -> String { failure(error).lines.joined(separator: " ") }

    private static func failure(_ error: RingbackError) -> Failure {
        Failure(error: error, account: error["account"]?.string)
    }

    static func note(_ text: String) { Output.note("ringback: " + Sanitizer.line(text, limit: 1_000)) }

    static func print(_ bytes: [UInt8]) -> Int32 {
        Console.write(String(decoding: bytes, as: UTF8.self), to: .output) ? 0 : ExitStatus.failed
    }

    /// Everything on standard input, at least one byte more than is allowed if there is more.
    static func readInput(atMost limit: Int) -> [UInt8] {
        var input: [UInt8] = []
        // A tool writes less than this. A larger buffer would cost a page fault for each of its pages.
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while input.count <= limit {
            let count = unsafe read(STDIN_FILENO, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            input += buffer[..<count]
        }
        return input
    }

    /// The credential for a place; nil if no origin is configured for it. Waits for a sign-in only on a terminal.
    func credential(
        _ request: AdapterRequest, mayWait: () -> Bool = { Console.Stream.errors.isTerminal }
    ) throws(RingbackError) -> AdapterCredential? {
        try ignoring(.notFound, call: lookup(request, mayWait: mayWait))
    }

    /// True if an origin is configured for a place. The lookup names a refused token that the daemon never issued, so
    /// no token is issued or refreshed.
    func hasOrigin(_ request: AdapterRequest) throws(RingbackError) -> Bool {
        var lookup = OriginRequest(url: request.url)
        lookup.username = request.username
        lookup.rejected = String(repeating: "0", count: 64)
        return try ignoring(.notFound, call: calls().lookup(lookup)) != nil
    }

    func answer(
        _ request: AdapterRequest, mayWait: () -> Bool = { Console.Stream.errors.isTerminal },
        otherwise: () -> Int32 = { 0 }, _ answer: (AdapterCredential) throws(AdapterFailure) -> [UInt8]
    ) throws(RingbackError) -> Int32 {
        guard let found = try credential(request, mayWait: mayWait) else { return otherwise() }
        return AdapterCalls.print(try AdapterCalls.translated(try answer(found)))
    }

    /// A step of a tool's protocol, whose failure becomes one of this program.
    static func translated<Value>(_ step: @autoclosure () throws(AdapterFailure) -> Value) throws(RingbackError)
        -> Value
    {
        do throws(AdapterFailure) {
            return try step()
        } catch {
            throw RingbackError(.badResponse, error.reason)
        }
    }

    static func noOrigin() -> Int32 {
        note("There is no origin for this URL. Run: ringback origin add URL --account ACCOUNT")
        return ExitStatus.failed
    }

    static func status(_ run: () throws(RingbackError) -> Int32) -> Int32 {
        do throws(RingbackError) {
            return try run()
        } catch {
            show(error)
            return ExitStatus.of(error)
        }
    }

    static func verb(_ run: () throws(RingbackError) -> Int32) throws { try ExitStatus.end(with: status(run)) }

    /// A line of standard input, at least one byte more than is allowed if there is more; nil at the end.
    static func readLine(atMost limit: Int) -> [UInt8]? {
        var line: [UInt8] = []
        while line.count <= limit {
            let byte = getchar()
            guard byte != EOF else { return line.isEmpty ? nil : line }
            guard byte != 0x0A else { break }
            line.append(UInt8(truncatingIfNeeded: byte))
        }
        return line
    }
}

/// The tools' own protocols, by the first argument or by the program's name: `ringback git-credential get` and
/// `git-credential-ringback get` are the same.
enum AdapterProgram {
    private static let verbs = [
        "kubectl-ringback": "kubectl-credential", "docker-credential-ringback": "docker-credential",
        "cargo-credential-ringback": "cargo-credential", "bazel-credential-ringback": "bazel-credential",
        "terraform-credentials-ringback": "terraform-credential", "ringback-askpass": "askpass",
    ]

    /// Runs git's helper, pnpm's, `keyring` or `oidc-token`, if that is meant; nil for anything else. git runs its
    /// helper for every connection, so it is recognized before the general parser; the others have arguments of their
    /// own.
    static func run(_ arguments: [String]) -> Int32? {
        let rest = Array(arguments.dropFirst())
        let name = Self.name(arguments) ?? ""
        if name == "git-credential-ringback" { return GitCredentialVerb.run(rest.last ?? "", socket: nil) }
        if name == "oidc-token" { return OIDCTokenVerb.run(rest) }
        if rest.first == "oidc-token" { return OIDCTokenVerb.run(Array(rest.dropFirst())) }
        if name == "keyring" { return KeyringVerb.run(rest, socket: nil) }
        if name.hasPrefix(PnpmToken.prefix) { return runPnpm(name) }
        guard rest.first == "git-credential", rest.count == 2, !rest[1].hasPrefix("-") else { return nil }
        return GitCredentialVerb.run(rest[1], socket: nil)
    }

    /// The arguments without the program's name. If the name stands for a verb, they begin with that.
    static func arguments(_ arguments: [String]) -> [String] {
        var verb = name(arguments).flatMap { verbs[$0] }
        // If a provider is configured with several words, cargo runs only the first one. Its requests have the others.
        if verb == nil, arguments.dropFirst().first == "--cargo-plugin" { verb = "cargo-credential" }
        return (verb.map { [$0] } ?? []) + arguments.dropFirst()
    }

    private static func name(_ arguments: [String]) -> String? {
        arguments.first.map { path in path.split(separator: "/").last.map(String.init) ?? path }
    }

    private static func runPnpm(_ name: String) -> Int32 {
        AdapterCalls.status { () throws(RingbackError) in
            let asked = try AdapterCalls.translated(try PnpmToken(program: name))
            return try AdapterCalls(socket: nil, tool: "pnpm")
                .answer(asked.request, otherwise: AdapterCalls.noOrigin, asked.answer)
        }
    }
}

struct GitCredentialVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "git-credential", abstract: "Give git the token of the account that is configured for its server.",
        discussion: """
            A credential helper: git runs it and writes to its standard input. The configuration's [[origin]] tables say \
            which account's token goes to which server. Also run as git-credential-ringback.
            """)

    @Argument(help: "get, store, erase or capability. Anything else is ignored, as git's protocol says.")
    var action: String

    @OptionGroup var daemon: DaemonOptions

    func run() throws { try ExitStatus.end(with: GitCredentialVerb.run(action, socket: daemon.socket)) }

    /// The exit status. git takes what was printed whatever it is.
    static func run(_ word: String, socket: String?) -> Int32 {
        guard let action = GitCredential.Action(rawValue: word) else { return 0 }
        guard action != .capability else { return AdapterCalls.print(GitCredential.capabilities) }
        let calls = AdapterCalls(socket: socket, tool: "git")
        return AdapterCalls.status { () throws(RingbackError) in
            let input = AdapterCalls.readInput(atMost: GitCredential.maxInput)
            guard input.count <= GitCredential.maxInput else {
                throw RingbackError(.badResponse, "git's input is too long.")
            }
            let credential = try AdapterCalls.translated(try GitCredential(action, reading: input))
            guard let request = credential.request else { return 0 }
            return try action == .erase ? calls.reject(request) : give(credential, request, calls)
        }
    }

    private static func give(
        _ credential: GitCredential, _ request: AdapterRequest, _ calls: AdapterCalls
    ) throws(RingbackError) -> Int32 {
        let found: AdapterCredential
        do throws(RingbackError) {
            found = try calls.lookup(request) { isInteractive }
        } catch {
            // A server that is not ours: git asks its other helpers, or the user.
            guard error.kind != .notFound else { return 0 }
            AdapterCalls.show(error)
            // Without the daemon it is unknown whether the server is a configured origin.
            if error.kind == .noDaemon || error.kind == .policyDenied { return ExitStatus.of(error) }
            return max(AdapterCalls.print(GitCredential.quit), ExitStatus.of(error))
        }
        return AdapterCalls.print(try AdapterCalls.translated(try credential.answer(found)))
    }

    /// True if a user can be expected to sign in now: there is a terminal, and git was not told to ask for nothing.
    static var isInteractive: Bool {
        guard Console.Stream.errors.isTerminal, SocketPlace.variable("GIT_TERMINAL_PROMPT") != "0" else { return false }
        let setting = Tool.run(["git", "config", "--get", "credential.interactive"])?.line?.lowercased()
        return !["false", "no", "off", "0", "never"].contains(setting ?? "true")
    }
}
