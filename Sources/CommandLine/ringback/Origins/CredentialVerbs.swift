import Adapters
import ArgumentParser
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct DockerCredentialVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "docker-credential", abstract: "Give docker, podman and skopeo the token for a registry.",
        discussion: """
            A credential helper: the tool runs it and writes the registry's name to its standard input. The \
            configuration's [[origin]] tables say which account's token goes to which registry. Errors are on standard \
            output, as the protocol says. Also run as docker-credential-ringback.
            """)

    @Argument(help: "get, store, erase, list or version.") var action: String
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        guard let action = DockerCredential.Action(rawValue: action) else {
            throw ValidationError("The action is get, store, erase, list or version.")
        }
        try ExitStatus.end(with: answer(action))
    }

    private func answer(_ action: DockerCredential.Action) -> Int32 {
        switch action {
        case .version: return AdapterCalls.print(DockerCredential.version(Ringback.version))
        case .list: return list()
        case .get: return get()
        case .erase, .store:
            // If the input were left unread, a tool could fail before it reads the response.
            _ = AdapterCalls.readInput(atMost: DockerCredential.maxInput)
            return action == .erase ? 0 : fail(DockerCredential.storesNothing)
        }
    }

    private func get() -> Int32 {
        do throws(AdapterFailure) {
            let credential = try DockerCredential(reading: AdapterCalls.readInput(atMost: DockerCredential.maxInput))
            let found: AdapterCredential
            do throws(RingbackError) {
                // docker shows a helper's output only after it ends, so the user would not see a pending sign-in.
                found = try AdapterCalls(socket: daemon.socket, tool: "docker").lookup(credential.request) { false }
            } catch {
                return fail(error.kind == .notFound ? DockerCredential.notFound : AdapterCalls.text(error))
            }
            return AdapterCalls.print(try credential.answer(found))
        } catch {
            return fail(error.reason)
        }
    }

    /// The origins of the configuration that are found without a user name, since `get` names none.
    private func list() -> Int32 {
        do throws(RingbackError) {
            let entries = OriginEntry.all(in: try ConfigurationFile(stated: nil).report())
                .filter { $0.rule.username == nil }
            return AdapterCalls.print(
                DockerCredential.list(entries.map { ($0.rule.pattern, $0.json["username"]?.string) }))
        } catch {
            return fail(AdapterCalls.text(error))
        }
    }

    private func fail(_ text: String) -> Int32 {
        Output.line(text)
        return ExitStatus.failed
    }
}

struct KubectlCredentialVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kubectl-credential", abstract: "Give kubectl the token for a cluster.",
        discussion: """
            A credential plugin: kubectl runs it, describes the cluster in KUBERNETES_EXEC_INFO and reads the token from \
            standard output. Without --account the configuration's [[origin]] table for the cluster's server says which \
            token; the kubeconfig then needs provideClusterInfo: true. The table has to allow a certificate authority of \
            the cluster's own (ca_sha256) and other settings that change who can read the token. Also run as \
            kubectl-ringback.
            """)

    @Option(help: "The account, instead of the origin of the cluster's server.") var account: String?
    @Option(help: "id_token (the default) or access_token; of the account that is named.") var kind: TokenKind?
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        try require(
            kind == nil || account != nil,
            "--kind needs --account. Without an account the origin says which token it is (kind).")
    }

    func run() throws { try ExitStatus.end(with: answer()) }

    private func answer() -> Int32 {
        let input = KubectlCredentialVerb.input
        guard input != nil || account != nil else {
            AdapterCalls.note(
                "\(KubectlCredential.variable) is not set. kubectl sets it when it runs this as a credential plugin.")
            return ExitStatus.usage
        }
        do throws(RingbackError) {
            let given = try input.map { input throws(RingbackError) in
                try AdapterCalls.translated(try KubectlCredential(reading: input))
            }
            let credential = given ?? KubectlCredential()
            let found = try find(credential)
            return AdapterCalls.print(try AdapterCalls.translated(try credential.answer(found)))
        } catch {
            AdapterCalls.show(error)
            if account == nil, error.kind == .notFound {
                Output.note(
                    "Add one for the cluster's server: ringback origin add URL --account ACCOUNT --kind id_token")
            }
            return ExitStatus.of(error)
        }
    }

    private func find(_ credential: KubectlCredential) throws(RingbackError) -> AdapterCredential {
        let calls = AdapterCalls(socket: daemon.socket, tool: "kubectl")
        let mayWait = { credential.isInteractive && Console.Stream.errors.isTerminal }
        if let account {
            // Without an origin nothing can allow it.
            guard credential.request?.settings.skipsVerification != true else {
                throw RingbackError(
                    .policyDenied,
                    "The cluster has insecure-skip-tls-verify, so anybody on the way could read the token. Leave "
                        + "--account out and let an origin of the cluster's server allow it, or remove the setting.")
            }
            var request = SessionRequest(account: account)
            request.kind = kind == .accessToken ? nil : .idToken
            return try calls.session(request, mayWait: mayWait)
        }
        guard let request = try KubectlCredentialVerb.request(of: credential) else {
            throw RingbackError(
                ExitStatus.usageKind,
                "kubectl does not say which cluster it connects to. Set provideClusterInfo: true in the kubeconfig, or name "
                    + "an account with --account.")
        }
        return try calls.lookup(request, mayWait: mayWait)
    }

    private static func request(of credential: KubectlCredential) throws(RingbackError) -> AdapterRequest? {
        guard let path = credential.authorityFile else { return credential.request }
        // A relative path begins in the kubeconfig's directory, which the plugin is not told.
        guard path.hasPrefix("/"), let bytes = try Files.contents(of: path) else {
            throw RingbackError(
                .policyDenied, "The cluster's certificate-authority is no absolute path of a file that can be read.")
        }
        return credential.request(trusting: bytes)
    }

    private static var input: [UInt8]? {
        guard let text = unsafe getenv(KubectlCredential.variable), unsafe text.pointee != 0 else { return nil }
        return unsafe Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
    }
}

struct BazelCredentialVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bazel-credential", abstract: "Give Bazel and similar build tools the token for a server.",
        discussion: """
            A credential helper as Bazel runs it: a URI as JSON on standard input, header fields as JSON on standard \
            output. The configuration's [[origin]] tables say which account's token goes to which server. Also run as \
            bazel-credential-ringback.
            """)

    @Argument(help: "get.") var action: String
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        guard action == "get" else { throw ValidationError("The action is get.") }
        let calls = AdapterCalls(socket: daemon.socket, tool: "bazel")
        try AdapterCalls.verb { () throws(RingbackError) in
            let input = AdapterCalls.readInput(atMost: BazelCredential.maxInput)
            let asked = try AdapterCalls.translated(try BazelCredential(reading: input))
            return try calls.answer(asked.request, otherwise: AdapterCalls.noOrigin, asked.answer)
        }
    }
}

struct CargoCredentialVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cargo-credential", abstract: "Give cargo the token for a registry.",
        discussion: """
            A credential provider: cargo runs it and writes requests to its standard input. The configuration's \
            [[origin]] tables say which account's token goes to which registry, by the URL of its index. Also run as \
            cargo-credential-ringback.
            """)

    @Flag(help: "How cargo runs a provider.") var cargoPlugin = false
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        guard AdapterCalls.print(CargoCredential.hello) == 0 else { throw ExitCode.failure }
        while let line = AdapterCalls.readLine(atMost: CargoCredential.maxLine) {
            guard AdapterCalls.print(answer(line)) == 0 else { throw ExitCode.failure }
            // What follows a line that is too long cannot be told from requests.
            guard line.count <= CargoCredential.maxLine else { throw ExitCode.failure }
        }
    }

    private func answer(_ line: [UInt8]) -> [UInt8] {
        let credential: CargoCredential
        do throws(CargoCredential.Refusal) {
            credential = try CargoCredential(reading: line)
        } catch {
            return CargoCredential.answer(error)
        }
        do throws(RingbackError) {
            let calls = AdapterCalls(socket: daemon.socket, tool: "cargo")
            guard credential.wantsToken else {
                let isOurs = try calls.hasOrigin(credential.request)
                return CargoCredential.answer(isOurs ? .operationNotSupported : .urlNotSupported)
            }
            guard let found = try calls.credential(credential.request) else {
                return CargoCredential.answer(.urlNotSupported)
            }
            do throws(AdapterFailure) {
                return try credential.answer(found)
            } catch {
                return CargoCredential.answer(.other(error.reason))
            }
        } catch {
            return CargoCredential.answer(.other(AdapterCalls.text(error)))
        }
    }
}

struct GoAuthVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "goauth", abstract: "Give the go command the token for a module's server.",
        discussion: """
            For GOAUTH: go runs it with a URL and writes the server's response to its standard input. The \
            configuration's [[origin]] tables say which account's token goes to which server. Without a URL nothing is \
            printed: a token is given only where a server asks for one.
            """)

    @Argument(help: "The URL that the server refused.") var url: String?
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        guard let url else { return }
        let calls = AdapterCalls(socket: daemon.socket, tool: "go")
        try AdapterCalls.verb { () throws(RingbackError) in
            let input = AdapterCalls.readInput(atMost: GoAuth.maxInput)
            let asked = try AdapterCalls.translated(try GoAuth(url: url, response: input))
            return try calls.answer(asked.request) { found throws(AdapterFailure) in
                guard asked.isRefused else { return try asked.answer(found) }
                // It is the one that was given last, unless another process of go has had that one replaced.
                guard calls.reject(asked.rejection(of: found)) == 0 else { return try asked.answer(found) }
                let renewed = try? calls.credential(asked.request)
                return try asked.answer(renewed ?? found)
            }
        }
    }
}

struct TerraformCredentialVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "terraform-credential", abstract: "Give Terraform and OpenTofu the token for a host.",
        discussion: """
            A credentials helper: the tool runs it with an action and a host. The configuration's [[origin]] tables say \
            which account's token goes to which host. It stores nothing. Also run as terraform-credentials-ringback.
            """)

    @Argument(help: "get, store or forget.") var action: String
    @Argument(help: "The host, with a port where it is not 443.") var host: String
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        guard let action = TerraformCredential.Action(rawValue: action) else {
            throw ValidationError("The action is get, store or forget.")
        }
        let calls = AdapterCalls(socket: daemon.socket, tool: "terraform")
        try AdapterCalls.verb { () throws(RingbackError) in
            let asked = try AdapterCalls.translated(try TerraformCredential(host: host))
            switch action {
            case .forget: return 0
            case .store:
                // If the input were left unread, a tool could fail before it reads the status.
                _ = AdapterCalls.readInput(atMost: TerraformCredential.maxInput)
                AdapterCalls.note(
                    "Ringback stores no tokens of hosts. It gives the token of the account that the configuration names."
                )
                return ExitStatus.failed
            case .get:
                return try calls.answer(
                    asked.request, otherwise: { AdapterCalls.print(TerraformCredential.none) }, asked.answer)
            }
        }
    }
}

struct AskPassVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "askpass", abstract: "Give git, wget and others the user name or the token for a server.",
        discussion: """
            An askpass program: the tool runs it with a prompt as the argument. The configuration's [[origin]] tables say \
            which account's token goes to which server. Also run as ringback-askpass.
            """)

    @Argument(help: "The prompt for the user name or the password of a URL, as git writes it.") var prompt: String
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let calls = AdapterCalls(socket: daemon.socket, tool: "askpass")
        try AdapterCalls.verb { () throws(RingbackError) in
            let asked = try AdapterCalls.translated(try AskPass(prompt: prompt))
            return try calls.answer(
                asked.request, mayWait: { GitCredentialVerb.isInteractive }, otherwise: AdapterCalls.noOrigin,
                asked.answer)
        }
    }
}

struct GoogleCredentialVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "google-credential", abstract: "Give Google's client libraries an ID token to exchange.",
        discussion: """
            An executable of an external account: a library runs it and reads JSON. Without --account the [[origin]] table \
            of https://sts.googleapis.com says which account's ID token it is. The status is 0 without a token too, as \
            the libraries expect; the JSON says why.
            """)

    /// Where the libraries exchange the token. They do not tell the executable.
    private static let service = "https://sts.googleapis.com/v1/token"

    private static let noOrigin =
        "There is no origin for Google's token service. Run: "
        + "ringback origin add https://sts.googleapis.com --account ACCOUNT --kind id_token"

    @Option(help: "The account, instead of the origin of https://sts.googleapis.com.", completion: Completions.accounts)
    var account: String?

    @OptionGroup var daemon: DaemonOptions

    func run() throws { try ExitStatus.end(with: AdapterCalls.print(answer())) }

    private func answer() -> [UInt8] {
        do throws(AdapterFailure) {
            let asked = try GoogleCredential(type: SocketPlace.variable(GoogleCredential.typeVariable))
            let found: AdapterCredential
            do throws(RingbackError) {
                found = try find()
            } catch {
                let isMissing = error.kind == .notFound && account == nil
                let text = isMissing ? GoogleCredentialVerb.noOrigin : AdapterCalls.text(error)
                return GoogleCredential.failure(code: error.kind.rawValue, message: text)
            }
            return try asked.answer(found)
        } catch {
            return GoogleCredential.failure(code: "unsupported", message: error.reason)
        }
    }

    private func find() throws(RingbackError) -> AdapterCredential {
        let calls = AdapterCalls(socket: daemon.socket, tool: "google")
        guard let account else {
            return try calls.lookup(AdapterRequest(url: GoogleCredentialVerb.service, username: nil)) { false }
        }
        var request = SessionRequest(account: account)
        request.kind = .idToken
        return try calls.session(request) { false }
    }
}

struct KeyringVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keyring", abstract: "Give pip and uv the token for a package index.",
        discussion: """
            Takes the place of the program keyring, which pip and uv run: get SERVICE USERNAME. The configuration's \
            [[origin]] tables say which account's token goes to which index. Everything else is passed to the next keyring \
            in PATH. Also run as keyring, by the link in the directory lib/ringback.
            """)

    @Argument(parsing: .allUnrecognized, help: "The arguments of keyring.") var arguments: [String] = []
    @OptionGroup var daemon: DaemonOptions

    func run() throws { try ExitStatus.end(with: KeyringVerb.run(arguments, socket: daemon.socket)) }

    static func run(_ arguments: [String], socket: String?) -> Int32 {
        guard let asked = KeyringCommand(arguments) else { return passOn(arguments) }
        let calls = AdapterCalls(socket: socket, tool: "keyring")
        return AdapterCalls.status { () throws(RingbackError) in
            do throws(RingbackError) {
                return try calls.answer(asked.request, otherwise: { passOn(arguments) }, asked.answer)
            } catch {
                // pip asks for the host of a plain http index too. Another keyring may have a password for it.
                guard error.kind == .policyDenied, asked.request.settings.withoutScheme else { throw error }
                AdapterCalls.show(error)
                return passOn(arguments)
            }
        }
    }

    /// Becomes the next program of this name in PATH that is not this one.
    ///
    /// - Returns: an exit status, only if there is no such program or it cannot be run. If there is none, it is the
    ///   status with which `keyring` ends if it finds nothing.
    private static func passOn(_ arguments: [String]) -> Int32 {
        let folders = SearchPath.own.folders.filter { $0.hasPrefix("/") }
        let next = folders.map { "\($0)/keyring" }.first { unsafe access($0, X_OK) == 0 && !Programs.isSelf($0) }
        guard let next else {
            // pip and uv ask for many services, and show what is written to standard error.
            if !arguments.contains("get") {
                AdapterCalls.note("There is no other keyring in PATH, and this one has nothing but “get”.")
            }
            return ExitStatus.failed
        }
        let failure = Replacement.run([next] + arguments)
        AdapterCalls.note("\(next) cannot be started.")
        return failure.status
    }
}

struct OIDCTokenVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "oidc-token", abstract: "Print a token as oidc-agent's oidc-token does.",
        discussion: """
            For scripts that run oidc-token: the same options, output and exit statuses. Also run as oidc-token, through \
            a link in a folder of PATH before that of oidc-agent.
            """)

    @Argument(parsing: .captureForPassthrough, help: "As of oidc-token: [OPTION]… ACCOUNT or ISSUER")
    var words: [String] = []

    func run() throws { try ExitStatus.end(with: OIDCTokenVerb.run(words)) }

    /// The exit status: 0, 1, or 64 for a mistake in the arguments, as that program's.
    static func run(_ arguments: [String]) -> Int32 {
        let command: OIDCToken
        do throws(AdapterFailure) {
            command = try OIDCToken(arguments)
        } catch {
            AdapterCalls.note("\(error.reason) To see the options: oidc-token --help")
            return ExitStatus.usage
        }
        switch command.page {
        case .help: return AdapterCalls.print(Array(OIDCToken.help.utf8))
        case .usage: return AdapterCalls.print(Array(OIDCToken.usage.utf8))
        case .version: return AdapterCalls.print(Array("oidc-token of ringback \(Ringback.version)\n".utf8))
        case nil: break
        }
        do throws(RingbackError) {
            let facts = try facts(of: command)
            return AdapterCalls.print(try AdapterCalls.translated(try command.answer(facts)))
        } catch {
            AdapterCalls.show(error)
            return ExitStatus.failed
        }
    }

    private static func facts(of command: OIDCToken) throws(RingbackError) -> OIDCToken.Facts {
        let calls = try AdapterCalls(socket: nil, tool: "oidc-token").calls()
        var request = SessionRequest(account: nil)
        switch command.account {
        case .name(let name):
            guard RequestTarget.isAccountName(name) else {
                throw RingbackError(.accountNotFound, "There is no account of that name.")
            }
            request.account = name
        case .issuer(let issuer): request.issuer = issuer
        }
        request.minValid = command.minValid
        request.scope = command.scope
        request.audience = command.audience
        if command.isIDToken { request.kind = .idToken }
        var answer = try session(request, calls)
        if command.isForced, let account = answer["account"]?.string {
            _ = try calls.call(.refresh, [account], body: ["force": true])
            answer = try session(request, calls)
        }
        try BoundToken.refuse(answer)
        let member = (request.kind ?? .accessToken).rawValue
        guard let token = answer[member]?.string, let issuer = answer["issuer"]?.string else {
            throw RingbackError(.badResponse, "The daemon's response has no “\(member)” or no “issuer”.")
        }
        return (token: token, issuer: issuer, expiresAt: answer["expires_at"]?.integer)
    }

    /// An issuer of oidc-agent ends with a slash, whatever the provider calls itself.
    private static func session(_ request: SessionRequest, _ calls: BrokerCalls) throws(RingbackError) -> JSON {
        do throws(RingbackError) {
            return try calls.session(request)
        } catch {
            guard error.kind == .accountNotFound, let issuer = request.issuer else { throw error }
            var other = request
            other.issuer = issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer + "/"
            return try calls.session(other)
        }
    }
}
