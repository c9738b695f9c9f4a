import Glibc
import RingbackBase
import Testing

private let analyzer = "/usr/bin/systemd-analyze"
private let hasAnalyzer = unsafe access(analyzer, X_OK) == 0

@Suite struct `The units` {
    /// The units with the executables under test, in a directory; gives their paths.
    private func place(_ stage: Stage) throws -> [String] {
        let directory = "\(stage.directory)/units"
        FileTree.makeDirectory(directory)
        return try ["ringback.socket", "ringback.service"].map { name in
            let text = try Document(path: "systemd/\(name)").text
            try stage.write(text.replacing("/usr/bin/", with: "\(Programs.directory)/"), to: "\(directory)/\(name)")
            return "\(directory)/\(name)"
        }
    }

    @Test(.enabled(if: hasAnalyzer, "needs \(analyzer), of the package systemd"))
    func `are such that systemd has no complaint`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let verified = try await stage.run(analyzer, ["verify", "--user"] + (try place(stage)), status: 0)
            #expect(verified.err.isEmpty, "\(verified)")
        }
    }

    @Test(.enabled(if: hasAnalyzer, "needs \(analyzer), of the package systemd"))
    func `leave less exposed than a plain unit`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let unit = try place(stage)[1]
            // Ten times the score of 0 to 10. A unit without directives has 98; ours has only what truly holds.
            let scored = try await stage.run(
                analyzer, ["security", "--offline=true", "--user", "--no-pager", "--threshold=75", unit], status: 0)
            let line = scored.lines.first { $0.contains("Overall exposure level") }
            print(line?.drop { $0 != "O" } ?? "no exposure level")
            #expect(line != nil)
        }
    }

    /// Accepted by a user's manager, and without effect there or in the way: seen by trying.
    @Test func `promise nothing that a user's manager ignores`() throws {
        let text = try Document(path: "systemd/ringback.service").lines.filter { !$0.hasPrefix("#") }
        let names = Set(text.compactMap { $0.split(separator: "=").first.map(String.init) })
        let hollow = [
            "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateMounts", "ReadOnlyPaths", "InaccessiblePaths",
            "ProtectKernelTunables", "ProtectProc", "ProtectControlGroups", "RemoveIPC", "IPAddressAllow",
            "IPAddressDeny", "PrivateNetwork", "PrivateDevices", "ProtectKernelModules", "ProtectKernelLogs",
            "ProtectClock", "CapabilityBoundingSet", "DynamicUser", "PrivateUsers",
        ]
        #expect(names.isDisjoint(with: hollow))
        for name in ["ExecReload", "WatchdogSec", "NoNewPrivileges", "SystemCallFilter", "MemoryDenyWriteExecute"] {
            #expect(names.contains(name), "\(name)")
        }
        // The daemon's own filter and the Landlock domain of its relays are set by these.
        let calls = text.first { $0.hasPrefix("SystemCallFilter=") }?.dropFirst(17).split(separator: " ") ?? []
        let own = ["create_ruleset", "add_rule", "restrict_self"].map { "landlock_" + $0 } + ["seccomp"]
        #expect(own.allSatisfy { calls.contains(Substring($0)) }, "\(calls)")
        #expect(text.contains("Type=notify"))
        let socket = try Document(path: "systemd/ringback.socket").lines
        #expect(socket.contains("SocketMode=0600") && socket.contains("DirectoryMode=0700"))
        #expect(socket.contains("ListenStream=%t/ringback/ringback.sock"))
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func `come with completions that have every verb and option`(shell: String) async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let made = try await stage.ringback("--generate-completion-script", shell, status: 0)
            #expect(made.err.isEmpty)
            let dump = try await stage.ringback("--experimental-dump-help")
            let help = try dump.json
            let (verbs, options) = CommandLineWords.all(in: try #require(help["command"]))
            #expect(verbs.count > 30 && options.count > 40)
            for verb in verbs { #expect(made.out.contains(verb), "\(verb)") }
            for option in options {
                // fish writes the name alone.
                #expect(made.out.contains(shell == "fish" ? option : "--\(option)"), "\(option)")
            }
            let reader =
                ["bash": ["/bin/bash", "-n"], "zsh": ["/usr/bin/zsh", "-n"]][shell] ?? [
                    "/usr/bin/fish", "--no-execute",
                ]
            guard unsafe access(reader[0], X_OK) == 0 else {
                return print("\(shell) is not here: its reading of the completions was not tried")
            }
            try stage.write(made.out, to: "\(stage.directory)/completion")
            let read = try await stage.run(reader[0], [reader[1], "\(stage.directory)/completion"], status: 0)
            #expect(read.err.isEmpty, "\(read)")
        }
    }
}

/// What the command line understands, by its own word.
enum CommandLineWords {
    /// The verbs and the long options of a command and of all below it.
    static func all(in command: JSON) -> (verbs: Set<String>, options: Set<String>) {
        var verbs: Set<String> = []
        var options: Set<String> = []
        for argument in command["arguments"]?.array ?? [] {
            for name in argument["names"]?.array ?? [] where name["kind"]?.string == "long" {
                if let text = name["name"]?.string { options.insert(text) }
            }
        }
        for verb in command["subcommands"]?.array ?? [] {
            guard let name = verb["commandName"]?.string, name != "help" else { continue }
            verbs.insert(name)
            let below = all(in: verb)
            verbs.formUnion(below.verbs)
            options.formUnion(below.options)
        }
        return (verbs, options)
    }
}
