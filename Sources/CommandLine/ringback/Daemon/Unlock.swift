import ArgumentParser
import RingbackAPI
import RingbackClient
import Secrets
import StrictJSON
import Terminal

struct Unlock: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Unlock the vault: its sessions can be used again.",
        discussion: """
            If the key needs a passphrase, it is asked for on the terminal, without echo; if standard input is not a \
            terminal, it is its first line. It is never an argument. A new passphrase is asked for twice.
            """)

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let calls = try daemon.calls()
            let vault = try calls.call(.getStatus)["vault"]
            var body = JSONObject()
            let source = vault?["key_source"]?.string.flatMap(KeySourceChoice.init)
            if source == .passphrase, vault?["locked"]?.bool == true {
                let isNew = vault?["needs_new_passphrase"]?.bool == true
                body["passphrase"] = .string(
                    isNew ? try Passphrase.readNew() : try Passphrase.read("Passphrase (it is not shown): "))
            }
            let answer = try calls.call(.unlockVault, body: .object(body), timeout: .seconds(150))
            if json.isWanted { Output.json(answer) } else { Output.line("The vault is open.") }
        }
    }
}
