public import ArgumentParser
import RingbackAPI
public import RingbackBase
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

/// A passphrase comes from a terminal, where it is not shown, or as the first line of standard input: never from an
/// argument or the environment, which other programs can read.
enum Passphrase {
    private static let maxLength = 1_024

    static func read(_ question: String) throws(RingbackError) -> String {
        guard Console.Stream.input.isTerminal else {
            return try checked(readLine(strippingNewline: true))
        }
        return try checked(
            Prompt.readHidden(
                question, limit: maxLength, interruption: try Signals.interruption().descriptor))
    }

    /// Asks twice on a terminal, since what is typed is not shown.
    static func readNew() throws(RingbackError) -> String {
        let first = try read("New passphrase (it is not shown): ")
        guard Console.Stream.input.isTerminal else { return first }
        guard try read("The same again: ") == first else {
            throw RingbackError(.cancelled, "The two are not the same. Nothing was changed.")
        }
        return first
    }

    private static func checked(_ line: String?) throws(RingbackError) -> String {
        guard let line, !line.isEmpty else {
            let way = " It is asked for on a terminal; else it is the first line of standard input."
            throw RingbackError(
                .cancelled, "No passphrase was read." + (Console.Stream.input.isTerminal ? "" : way))
        }
        guard line.utf8.count <= maxLength else {
            throw RingbackError(.cancelled, "The passphrase is longer than \(maxLength) bytes.")
        }
        return line
    }
}

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
