import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct MigrateUser: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate-user", abstract: "Store an app's former identifier of the signed-in user.",
        discussion: """
            The app finds it with the session (migration), moves the user's data, and reports that with --done. Storing \
            the same identifier again changes nothing.
            """)

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Option(help: ArgumentHelp("The user's former identifier.", valueName: "id"))
    var from: String?

    @Flag(help: "The data has been moved.")
    var done = false

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard (from != nil) != done else { throw ValidationError("Name either --from ID or --done.") }
    }

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().call(
                done ? .acknowledgeMigration : .migrate, [account], body: from.map { ["from": .string($0)] })
            guard !json.isWanted else { return Output.json(answer) }
            guard let migration = answer["migration"] else {
                return Output.line("\(Sanitizer.line(account)) has nothing to migrate.")
            }
            let (former, present) = (migration["from"]?.string ?? "", migration["to"]?.string ?? "")
            Output.line("\(Sanitizer.line(account)): \(Sanitizer.line(former)) is \(Sanitizer.line(present)) now.")
        }
    }
}
