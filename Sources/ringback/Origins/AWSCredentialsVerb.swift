import Adapters
import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON

struct AWSCredentialsVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "aws-credentials", abstract: "Give AWS's tools the credentials of a role.",
        discussion: """
            For the setting credential_process of ~/.aws/config. The configuration of Ringback names the role, in \
            [accounts.ACCOUNT.aws]. The daemon exchanges a token of the account for the credentials, and holds them until \
            they are about to expire.
            """)

    /// The daemon may refresh the token before it asks the token service.
    private static let timeout: Duration = .seconds(60)

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let status = status()
        if status != 0 { throw ExitCode(status) }
    }

    private func status() -> Int32 {
        do throws(RingbackError) {
            let answer = try AdapterCalls(socket: daemon.socket, tool: "aws").calls()
                .call(.getAWSCredentials, [account], timeout: AWSCredentialsVerb.timeout)
            let credentials = RoleCredentials(
                accessKeyID: answer["access_key_id"]?.string, secretAccessKey: answer["secret_access_key"]?.string,
                sessionToken: answer["session_token"]?.string, expiresAt: answer["expires_at"]?.integer)
            guard let credentials else {
                throw RingbackError(.badResponse, "The daemon's response has no credentials.")
            }
            return AdapterCalls.print(credentials.processAnswer)
        } catch {
            AdapterCalls.show(error)
            return ExitStatus.of(error)
        }
    }
}
