import ArgumentParser
import RingbackClient
import StrictJSON
import Terminal

struct AccountVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account", abstract: "Add accounts.", subcommands: [AccountAdd.self])
}

struct AccountAdd: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Write a checked account beside the configuration.",
        discussion: """
            Prints what to register at the provider, and lets a running daemon read the account. Nothing is written \
            if the daemon's own check finds a mistake.
            """)

    @Argument(help: "The account's name.")
    var name: String

    @OptionGroup var description: AccountDescription

    @Option(help: ArgumentHelp("The configuration file, if not the usual one.", valueName: "path"))
    var config: String?

    @Flag(help: ArgumentHelp("Register the client at the provider (not in this version).", visibility: .hidden))
    var register = false

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard RequestTarget.isAccountName(name) else {
            throw ValidationError(
                "A name has small letters, digits, “.”, “_” and “-”, at most 64, a letter or digit first.")
        }
        if register {
            throw ValidationError(
                "--register is not in this version: register the client by hand, and state its --client-id.")
        }
        try description.check()
    }

    func run() throws {
        var checked: JSON = [:]
        let file: AccountFile
        do throws(RingbackError) {
            file = try AccountFile(name: name, configuration: config)
            try refuseExisting(file)
            try file.writeCandidate(description.text(for: name))
            do throws(RingbackError) {
                checked = try ConfigurationCheck.run(config: config, candidate: file)
                try file.keep()
            } catch {
                file.discard()
                throw error
            }
        } catch {
            Failure(error, account: name).show()
            throw ExitCode(ExitStatus.of(error))
        }
        show(checked, file)
        try present(account: name) { () throws(RingbackError) in try reload() }
    }

    private func refuseExisting(_ file: AccountFile) throws(RingbackError) {
        let known = try ConfigurationCheck.run(config: config, candidate: nil)
        guard let existing = ConfigurationCheck.account(name, in: known) else { return }
        let source = existing["source"]?.string.map { " in \($0)" } ?? ""
        throw RingbackError("account_exists", "The account \(name) is defined already\(source).")
    }

    private func show(_ checked: JSON, _ file: AccountFile) {
        let account = ConfigurationCheck.account(name, in: checked)
        let listed = account?["redirect_uris"]?.array?.compactMap(\.string)
        let uris = listed ?? [account?["redirect_uri"]?.string].compactMap { $0 }
        let notes = account?["notes"]?.array?.compactMap(\.string) ?? []
        guard !json.isWanted else {
            return Output.json([
                "account": .string(name), "file": .string(file.path),
                "redirect_uris": .array(uris.map { .string($0) }), "notes": .array(notes.map { .string($0) }),
            ])
        }
        Output.line("Added the account \(name): \(file.path)")
        if !uris.isEmpty { Output.line("Register at the provider, as redirect URI:") }
        for uri in uris { Output.line("  " + Sanitizer.line(uri, limit: 2_000)) }
        if uris.contains(where: { $0.contains("{port}") }) {
            Output.note("({port} stands for any port. If the provider wants one, choose it with --redirect-uri.)")
        }
        for note in notes { Output.note(Sanitizer.line(note, limit: 600)) }
        Output.note("Then run: ringback login \(name)")
    }

    /// A running daemon reads the account; without one there is nothing to do.
    private func reload() throws(RingbackError) {
        do throws(RingbackError) {
            _ = try daemon.calls().call("POST", "/v1/reload")
        } catch {
            if error.kind != .noDaemon { throw error }
        }
    }
}
