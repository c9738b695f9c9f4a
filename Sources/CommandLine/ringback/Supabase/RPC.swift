import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON

struct SupabaseRPC: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rpc", abstract: "Call a function of the project's database as the signed-in user.",
        discussion: "The functions that may be called are those that the account's configuration lists (rpc).")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Argument(help: "The function's name.")
    var function: String

    @Argument(help: ArgumentHelp("Its arguments, a JSON object; “-” reads it from standard input.", valueName: "json"))
    var arguments = "{}"

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard arguments == "-" || JSONInput.object(arguments) != nil else {
            throw ValidationError("The arguments must be a JSON object.")
        }
    }

    func run() throws {
        var text = arguments
        if arguments == "-" {
            text = ""
            while let line = readLine(strippingNewline: false) { text += line }
        }
        guard let body = JSONInput.object(text) else {
            Output.note("ringback: The arguments must be a JSON object.")
            throw ExitCode(ExitStatus.usage)
        }
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().project(.callFunction, account, function, body: body)
            Output.json(json.isWanted ? answer : answer["result"] ?? .null)
        }
    }
}
