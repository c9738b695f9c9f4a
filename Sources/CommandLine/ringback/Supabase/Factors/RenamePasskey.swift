import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct SupabaseRenamePasskey: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "rename-passkey", abstract: "Rename a passkey.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Argument(help: ArgumentHelp("The passkey, as “supabase passkeys” shows it.", valueName: "id"))
    var passkey: String

    @Argument(help: "Its name, 1 to 120 bytes.")
    var name: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard (1...120).contains(name.utf8.count) else { throw ValidationError("A name has 1 to 120 bytes.") }
    }

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer: JSON
            do throws(RingbackError) {
                answer = try daemon.calls().renamePasskey(account, passkey, to: name)
            } catch {
                throw IdentifierHint.explained(error, see: ShownCommand("ringback supabase passkeys \(account)"))
            }
            guard !json.isWanted else { return Output.json(answer) }
            let known = try Passkey(reading: answer)
            Output.line("\(Sanitizer.line(known.id)) is \(Sanitizer.line(known.name ?? name)) now.")
        }
    }
}
