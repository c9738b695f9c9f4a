import Glibc
import Testing

@Suite struct `Completion` {
    private static let accounts = """
        [accounts.winter]
        issuer = "https://id.example.org"
        client_id = "ringback"
        redirect_uri = "org.example.winter:/callback"

        """

    /// What is typed before TAB, and the last word of what the shell makes of it.
    private static let cases = [
        ("login win", "winter"), ("supabase user win", "winter"), ("scheme register org.ex", "org.example.winter"),
        ("account add x --provider micro", "microsoft"), ("exec winter -- nohu", "nohup"), ("agent -- nohu", "nohup"),
        ("verif", "verify"), ("login winter --no-bro", "--no-browser"),
    ]

    /// How a shell is started without the user's own files, and how it reads the completions.
    struct Shell: Sendable, CustomTestStringConvertible {
        let path: String
        let options: [String]
        let loading: String
        /// It runs only where the terminal is its session's own.
        var needsSession = false
        var testDescription: String { path }
        var name: String { String(path.split(separator: "/").last ?? "") }
    }

    private static let shells = [
        Shell(path: "/bin/bash", options: ["--norc", "--noprofile", "-i"], loading: "source {}"),
        Shell(
            path: "/usr/bin/zsh", options: ["-f", "-i"],
            loading: "autoload -U compinit; compinit -u -D; source {}; compdef _ringback ringback"),
        Shell(path: "/usr/bin/fish", options: ["--no-config", "-i"], loading: "source {}", needsSession: true),
    ].filter { shell in
        let isHere = unsafe access(shell.path, X_OK) == 0
        if !isHere { print("\(shell.name) is not here: completions were not tried in it") }
        return isHere
    }

    @Test(arguments: shells)
    func `of accounts, providers, schemes and commands works at a prompt`(shell: Shell) async throws {
        try await Stage.play(Self.accounts, startsDaemon: false) { stage in
            let path = "\(stage.directory)/_ringback"
            try await stage.write(stage.ringback("--generate-completion-script", shell.name).out, to: path)
            // The directory of the programs comes first in PATH, as after an installation.
            let prompt = try TerminalProgram(
                (shell.needsSession ? ["--wait", "--ctty", shell.path] : []) + shell.options,
                of: shell.needsSession ? "/usr/bin/setsid" : shell.path,
                environment: stage.environment.merging(["PATH": "\(Programs.directory):/usr/bin:/bin"]) { $1 })
            prompt.type(shell.loading.replacing("{}", with: path))
            prompt.type("echo rea''dy")
            try await prompt.shows("ready")
            for (typed, word) in Self.cases {
                prompt.press(Array("ringback \(typed)\t".utf8))
                try await prompt.shows(word)
                // Ctrl-U erases the line; it is not run.
                prompt.press([0x15])
            }
            prompt.type("exit")
            _ = try await prompt.end()
            // Nothing was started.
            let names = FileTree.names(in: "\(stage.directory)/run").filter { !$0.hasPrefix("fish_") }
            #expect(names == [])
        }
    }
}
