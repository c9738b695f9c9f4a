import ArgumentParser
import RingbackClient
import StrictJSON

struct Logout: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sign out: end the session here and at the provider.")

    /// Whose sessions end at the provider.
    enum Scope: String, ExpressibleByArgument, CaseIterable { case local, global, others }

    @Argument(help: "The account (or --all).")
    var account: String?

    @Flag(help: "Every account that holds a session.")
    var all = false

    @Option(help: "Which of the person's sessions: local (this one), global (all), others (all but this one).")
    var scope: Scope = .local

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard (account == nil) == all else { throw ValidationError("Name an account, or say --all.") }
    }

    func run() throws {
        var worst: Int32 = 0
        var documents: [JSON] = []
        var names: [String] = []
        try present { () throws(RingbackError) in names = try self.names() }
        for name in names {
            do throws(RingbackError) {
                let path = try RequestTarget.account(name, "/session")
                let answer = try daemon.calls().call("DELETE", "\(path)?scope=\(scope.rawValue)")
                documents.append(answer)
                if !json.isWanted { Output.line("Signed out of \(name)") }
            } catch {
                // One account's failure keeps no other signed in.
                Failure(error, account: name).show()
                worst = ExitStatus.worse(worst, ExitStatus.of(error))
            }
        }
        if json.isWanted {
            if all {
                Output.json(["accounts": .array(documents)])
            } else if let document = documents.first {
                Output.json(document)
            }
        } else if names.isEmpty {
            Output.note("No account is signed in.")
        }
        if worst != 0 { throw ExitCode(worst) }
    }

    private func names() throws(RingbackError) -> [String] {
        if let account { return [account] }
        var names: [String] = []
        for document in try daemon.calls().call("GET", "/v1/accounts")["accounts"]?.array ?? [] {
            let account = try Account(reading: document)
            // One that is not loaded may hold a session: the daemon says whether it is out of reach.
            if account.state.hasSession || account.state == .loading { names.append(account.name) }
        }
        return names
    }
}
