import Adapters
import ArgumentParser
import Glibc
import RingbackAPI
import RingbackClient
import Terminal

struct KubectlCredentialVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kubectl-credential", abstract: "Give kubectl the token for a cluster.",
        discussion: """
            A credential plugin: kubectl runs it, describes the cluster in KUBERNETES_EXEC_INFO and reads the token from \
            standard output. Without --account the configuration's [[origin]] table for the cluster's server says which \
            token; the kubeconfig then needs provideClusterInfo: true. Also run as kubectl-ringback.
            """)

    @Option(help: "The account, instead of the origin of the cluster's server.")
    var account: String?

    @Option(help: "id_token (the default) or access_token; of the account that is named.")
    var kind: TokenKind?

    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard kind == nil || account != nil else {
            throw ValidationError(
                "--kind needs --account. Without an account the origin says which token it is (kind).")
        }
    }

    func run() throws {
        let status = answer()
        if status != 0 { throw ExitCode(status) }
    }

    /// The exit status.
    private func answer() -> Int32 {
        guard let input = KubectlCredentialVerb.input else {
            AdapterCalls.note(
                "\(KubectlCredential.variable) is not set. kubectl sets it when it runs this as a credential plugin.")
            return ExitStatus.usage
        }
        do throws(AdapterFailure) {
            let credential = try KubectlCredential(reading: input)
            let found: AdapterCredential
            do throws(RingbackError) {
                found = try find(credential)
            } catch {
                AdapterCalls.show(error)
                if account == nil, error.kind == .notFound {
                    Output.note(
                        "Add one for the cluster's server: ringback origin add URL --account ACCOUNT --kind id_token")
                }
                return ExitStatus.of(error)
            }
            return AdapterCalls.print(try credential.answer(found))
        } catch {
            AdapterCalls.note(error.reason)
            return ExitStatus.failed
        }
    }

    private func find(_ credential: KubectlCredential) throws(RingbackError) -> AdapterCredential {
        let calls = AdapterCalls(socket: daemon.socket, tool: "kubectl")
        let mayWait = { credential.isInteractive && Console.Stream.errors.isTerminal }
        if let account {
            var request = SessionRequest(account: account)
            request.kind = kind == .accessToken ? nil : .idToken
            return try calls.session(request, mayWait: mayWait)
        }
        guard let request = credential.request else {
            throw RingbackError(
                ExitStatus.usageKind,
                "kubectl does not say which cluster it connects to. Set provideClusterInfo: true in the kubeconfig, or name "
                    + "an account with --account.")
        }
        return try calls.lookup(request, mayWait: mayWait)
    }

    /// The bytes of kubectl's variable; nil if it is not set.
    private static var input: [UInt8]? {
        guard let text = unsafe getenv(KubectlCredential.variable) else { return nil }
        return unsafe Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
    }
}
