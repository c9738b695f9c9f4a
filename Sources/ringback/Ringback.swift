import ArgumentParser

/// The table of verbs. A verb is one file that asks the daemon and presents the response. Decisions are made in the
/// daemon.
struct Ringback: ParsableCommand {
    static let version = "0.1.0"

    static let configuration = CommandConfiguration(
        commandName: "ringback",
        abstract: "Signs in once for every app of yours, and issues short-lived access tokens.",
        discussion: """
            Results go to standard output, everything else to standard error.

            Exit status: 0 done; 1 failed; 2 no daemon answers; 3 a sign-in is needed; 4 denied or cancelled; \
            5 the provider cannot be reached or answers badly; 6 timed out; 64 usage; 78 bad configuration.
            """,
        version: "ringback \(version)",
        subcommands: [
            AccountVerbs.self, Login.self, Verify.self, Resend.self, Cancel.self, Token.self, Exec.self,
            ShowSession.self, ShowAccounts.self, ShowStatus.self,
            Events.self, Links.self, Refresh.self, Logout.self, Complete.self, Open.self, SchemeVerbs.self, Doctor.self,
            MigrateUser.self,
            Audit.self,
            ShowMetrics.self, ExposeVerbs.self, OriginVerbs.self, GitCredentialVerb.self,
            KubectlCredentialVerb.self, DockerCredentialVerb.self, Lock.self, Unlock.self, VaultVerbs.self,
            ConfigVerbs.self, SupabaseVerbs.self, Reload.self,
            Env.self, Agent.self, Install.self, Demo.self,
        ])
}
