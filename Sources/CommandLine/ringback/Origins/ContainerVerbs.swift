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

    @Argument(help: "get, store, erase, list or version.")
    var action: String

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
            let credential = try DockerCredential(
                reading: AdapterCalls.readInput(atMost: DockerCredential.maxInput))
            let found: AdapterCredential
            do throws(RingbackError) {
                // docker shows a helper's output only after it ends, so the user would not see a pending sign-in.
                found = try AdapterCalls(socket: daemon.socket, tool: "docker").lookup(credential.request) { false }
            } catch {
                guard error.kind != .notFound else { return fail(DockerCredential.notFound) }
                return fail(AdapterCalls.failure(error).lines.joined(separator: " "))
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
            return fail(AdapterCalls.failure(error).lines.joined(separator: " "))
        }
    }

    /// The protocol's errors are on standard output.
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

    @Option(help: "The account, instead of the origin of the cluster's server.")
    var account: String?

    @Option(help: "id_token (the default) or access_token; of the account that is named.")
    var kind: TokenKind?

    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        try require(
            kind == nil || account != nil,
            "--kind needs --account. Without an account the origin says which token it is (kind).")
    }

    func run() throws {
        try ExitStatus.end(with: answer())
    }

    private func answer() -> Int32 {
        let input = KubectlCredentialVerb.input
        guard input != nil || account != nil else {
            AdapterCalls.note(
                "\(KubectlCredential.variable) is not set. kubectl sets it when it runs this as a credential plugin.")
            return ExitStatus.usage
        }
        do throws(RingbackError) {
            let credential =
                if let input { try AdapterCalls.translated(try KubectlCredential(reading: input)) } else {
                    KubectlCredential()
                }
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

    /// The lookup of the cluster; nil if kubectl does not name it.
    private static func request(of credential: KubectlCredential) throws(RingbackError) -> AdapterRequest? {
        guard let path = credential.authorityFile else { return credential.request }
        // A relative path begins in the kubeconfig's directory, which the plugin is not told.
        guard path.hasPrefix("/"), let bytes = try Files.contents(of: path) else {
            throw RingbackError(
                .policyDenied, "The cluster's certificate-authority is no absolute path of a file that can be read.")
        }
        return credential.request(trusting: bytes)
    }

    /// The bytes of kubectl's variable; nil if it is not set or empty.
    private static var input: [UInt8]? {
        guard let text = unsafe getenv(KubectlCredential.variable), unsafe text.pointee != 0 else { return nil }
        return unsafe Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
    }
}
