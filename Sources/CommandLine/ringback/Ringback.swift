import ArgumentParser
import CLinux
import Terminal

/// The table of verbs. A verb asks the daemon and presents the response; decisions are made in the daemon.
struct Ringback: ParsableCommand {
    static let version = "0.1.0"
    static var build: String { unsafe String(cString: clinux_commit()) }

    static let configuration = CommandConfiguration(
        commandName: "ringback",
        abstract: "Signs in once for every app of yours, and issues short-lived access tokens.",
        discussion: """
            Without a subcommand, on a terminal: how things stand, and the next command. `ringback --help` names what \
            people type most, `ringback --help-all` prints this.

            Results go to standard output, everything else to standard error.

            Exit status: 0 done; 1 failed; 2 no daemon answers; 3 a sign-in is needed; 4 denied or cancelled; \
            5 the provider cannot be reached or answers badly; 6 timed out; 64 usage; 78 bad configuration.
            """,
        version: "ringback \(version) (\(build))",
        groupedSubcommands: [
            CommandGroup(
                name: "Begin",
                subcommands: [Demo.self, AccountVerbs.self, Use.self, ConfigVerbs.self, ClientMetadata.self]),
            CommandGroup(
                name: "Sign in and out",
                subcommands: [
                    Login.self, Verify.self, Resend.self, Cancel.self, Complete.self, Logout.self, MigrateUser.self,
                    SupabaseVerbs.self,
                ]),
            CommandGroup(
                name: "Use tokens",
                subcommands: [
                    Token.self, Exec.self, Alias.self, Run.self, ShowSession.self, Claims.self, Refresh.self,
                    OriginVerbs.self, Setup.self, ShowFiles.self, ConsentVerbs.self, ExposeVerbs.self, Agent.self,
                    Env.self,
                ]),
            CommandGroup(
                name: "See how things stand",
                subcommands: [
                    ShowAccounts.self, ShowStatus.self, Doctor.self, Events.self, Audit.self, ShowMetrics.self,
                ]),
            CommandGroup(
                name: "Called by tools",
                subcommands: [
                    MCPVerb.self, GitCredentialVerb.self, AskPassVerb.self, KubectlCredentialVerb.self,
                    DockerCredentialVerb.self, CargoCredentialVerb.self, GoAuthVerb.self, BazelCredentialVerb.self,
                    TerraformCredentialVerb.self, KeyringVerb.self, GoogleCredentialVerb.self, OIDCTokenVerb.self,
                ]),
            CommandGroup(name: "Links of apps", subcommands: [SchemeVerbs.self, Links.self, Open.self]),
            CommandGroup(
                name: "Lock and set up the daemon",
                subcommands: [Lock.self, Unlock.self, VaultVerbs.self, Reload.self]),
        ])

    func run() {
        guard Console.Stream.output.isTerminal else { return Output.line(ShortHelp.text) }
        Overview().show()
    }
}

/// What `ringback --help` prints: one screen of what people type. `--help-all` lists every verb.
enum ShortHelp {
    private static let explained: [any ParsableCommand.Type] = [
        Demo.self, AccountVerbs.self, Login.self, Logout.self, ShowAccounts.self, Token.self, Exec.self, Run.self,
        Setup.self,
        OriginVerbs.self, Doctor.self,
    ]
    private static let named: [any ParsableCommand.Type] = [
        Use.self, Verify.self, Complete.self, Cancel.self, ShowSession.self, Refresh.self, Alias.self,
        ConsentVerbs.self, ExposeVerbs.self, Env.self, Agent.self, ShowStatus.self, Events.self, Audit.self,
        SchemeVerbs.self, SupabaseVerbs.self, Lock.self,
        Unlock.self, VaultVerbs.self, ConfigVerbs.self, Reload.self,
    ]

    static func page(for arguments: [String]) -> String? {
        switch arguments {
        case ["--help"], ["-h"], ["help"]: text
        case ["--help-all"]: Ringback.helpMessage()
        default: nil
        }
    }

    static var text: String {
        let width = explained.map { $0._commandName.utf8.count }.max() ?? 0
        let rows = explained.map { "  \($0._commandName.padded(to: width))  \($0.configuration.abstract)" }
        let others = named.map { $0._commandName }
        let lines = stride(from: 0, to: others.count, by: 8).map { start in
            others.dropFirst(start).prefix(8).joined(separator: ", ")
        }
        return """
            \(Ringback.configuration.abstract)

            Usage: ringback [VERB]   (without a verb: how things stand, what to do next)

            \(rows.joined(separator: "\n"))

            Also: \(lines.joined(separator: ",\n")).

            ringback VERB --help explains a verb; ringback --help-all lists all verbs.
            """
    }
}
