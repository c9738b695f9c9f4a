public import ArgumentParser
import RingbackAPI
import RingbackClient
public import Secrets
import StrictJSON
import Terminal

struct VaultVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "vault", abstract: "Change where the vault's key is stored; share the vault with other hosts.",
        subcommands: [
            VaultRekey.self, VaultInit.self, VaultMigrate.self, VaultMove.self, VaultFacts.self, VaultInvite.self,
            VaultJoin.self, VaultShare.self, VaultHosts.self, VaultRemoveHost.self,
        ])
}

extension KeySourceChoice: ExpressibleByArgument {}

struct VaultRekey: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rekey", abstract: "Move the vault's key to another source.",
        discussion: "A new passphrase is asked for twice on the terminal, or is the first line of standard input.")

    @Argument(help: "The new place of the key.")
    var place: KeySourceChoice?

    @Option(help: "The new place of the key, as an option.")
    var keySource: KeySourceChoice?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard (place == nil) != (keySource == nil) else {
            throw ValidationError("Name the new place of the key, once.")
        }
    }

    func run() throws {
        guard let keySource = keySource ?? place else { return }
        try present { () throws(RingbackError) in
            let calls = try daemon.calls()
            var body = JSONObject([.init("key_source", .string(keySource.rawValue))])
            if keySource == .passphrase { body["passphrase"] = .string(try Passphrase.readNew()) }
            let answer = try calls.call(.rekeyVault, body: .object(body), timeout: .seconds(150))
            guard !json.isWanted else { return Output.json(answer) }
            Output.line("The vault's key: \(Sanitizer.line(answer["key_source"]?.string ?? keySource.rawValue))")
            if let protects = answer["protects"]?.string { Output.note(Sanitizer.line(protects)) }
            if let named = answer["other_key_source"]?.string, let source = answer["key_source"]?.string {
                Output.note(
                    Sanitizer.line(
                        "Set key_source = \"\(source)\" in the configuration too: it says \"\(named)\", and the daemon "
                            + "would be locked at its next start.", limit: 400))
            }
        }
    }
}
