import ArgumentParser
import RingbackAPI
import RingbackClient
import Terminal

struct Lock: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lock the vault: no token is issued until it is unlocked.",
        discussion: "Sessions stay, sealed; nobody is signed out.")

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let answer = try daemon.calls().call(.lockVault)
            if json.isWanted { Output.json(answer) } else { Output.line("The vault is locked.") }
        }
    }
}
