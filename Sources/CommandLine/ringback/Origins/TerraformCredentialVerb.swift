import Adapters
import ArgumentParser

struct TerraformCredentialVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "terraform-credential", abstract: "Give Terraform and OpenTofu the token for a host.",
        discussion: """
            A credentials helper: the tool runs it with an action and a host. The configuration's [[origin]] tables say \
            which account's token goes to which host. It stores nothing. Also run as terraform-credentials-ringback.
            """)

    @Argument(help: "get, store or forget.")
    var action: String

    @Argument(help: "The host, with a port where it is not 443.")
    var host: String

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        guard let action = TerraformCredential.Action(rawValue: action) else {
            throw ValidationError("The action is get, store or forget.")
        }
        let calls = AdapterCalls(socket: daemon.socket, tool: "terraform")
        try AdapterCalls.verb { () throws(AdapterFailure) in
            let asked = try TerraformCredential(host: host)
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
                    asked.request, otherwise: { AdapterCalls.print(TerraformCredential.none) }
                ) { found throws(AdapterFailure) in try asked.answer(found) }
            }
        }
    }
}
