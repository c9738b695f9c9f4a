import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct VaultVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "vault", abstract: "Look after the vault.", subcommands: [VaultRekey.self])
}

struct VaultRekey: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rekey", abstract: "Move the vault's key to another source.",
        discussion: "A new passphrase is asked for twice on the terminal, or is the first line of standard input.")

    /// Where the key can rest; the daemon says what each protects against.
    enum Source: String, ExpressibleByArgument, CaseIterable {
        case auto
        case secretService = "secret-service"
        case systemdCredential = "systemd-credential"
        case passphrase
        case keyFile = "key-file"
        case memory
    }

    @Option(help: "The new place of the key.")
    var keySource: Source

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let calls = try daemon.calls()
            var body = JSONObject([.init("key_source", .string(keySource.rawValue))])
            if keySource == .passphrase { body["passphrase"] = .string(try Passphrase.readNew()) }
            let answer = try calls.call("POST", "/v1/vault/rekey", body: .object(body), timeout: .seconds(90))
            guard !json.isWanted else { return Output.json(answer) }
            Output.line("The vault's key: \(Sanitizer.line(answer["key_source"]?.string ?? keySource.rawValue))")
            if let protects = answer["protects"]?.string { Output.note(Sanitizer.line(protects)) }
        }
    }
}
