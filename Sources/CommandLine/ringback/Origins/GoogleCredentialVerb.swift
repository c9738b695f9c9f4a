import Adapters
import ArgumentParser
import RingbackAPI
import RingbackClient

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

    func run() throws {
        let status = AdapterCalls.print(answer())
        if status != 0 { throw ExitCode(status) }
    }

    private func answer() -> [UInt8] {
        do throws(AdapterFailure) {
            let asked = try GoogleCredential(type: SocketPlace.variable(GoogleCredential.typeVariable))
            let found: AdapterCredential
            do throws(RingbackError) {
                found = try find()
            } catch {
                let lines =
                    error.kind == .notFound && account == nil
                    ? [GoogleCredentialVerb.noOrigin] : AdapterCalls.failure(error).lines
                return GoogleCredential.failure(code: error.kind.rawValue, message: lines.joined(separator: " "))
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
