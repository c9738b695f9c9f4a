import Glibc
import RingbackBase
import Testing

@Suite struct `ringback setup beside what others wrote` {
    private static func origins(_ tables: (url: String, account: String)...) -> String {
        Stage.twoAccounts
            + tables.map { "[[origin]]\nurl = \"\($0.url)\"\naccount = \"\($0.account)\"\n\n" }.joined()
    }

    private static let git = ["GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"]

    private func setUp(_ stage: Stage, _ arguments: String..., added: [String: String] = [:]) async throws -> Output {
        try await stage.run("ringback", ["setup"] + arguments, environment: Self.git.merging(added) { $1 })
    }

    @Test(.enabled(if: `ringback setup`.hasGit, "git is not installed"))
    func `an origin of another account is an origin`() async throws {
        let origins = Self.origins(("https://git.example.org/*", "work"), ("https://r.example.org/*", "home"))
        try await Stage.play(origins, startsDaemon: false) { stage in
            #expect(try await setUp(stage, "git", "--account", "home", "--yes").status == 0)
            let done = try await setUp(stage, "git", "--account", "work", "--yes").expect(0, says: "Done.")
            #expect(!done.err.contains("r.example.org"), "\(done)")
            try await stage.ringback("origin", "remove", "https://r.example.org", status: 0)
            let list = try await setUp(stage)
            #expect(list.err.contains("https://r.example.org, but no [[origin]] table names that server"), "\(list)")
        }
    }

    @Test(.enabled(if: `ringback setup`.hasGit, "git is not installed"))
    func `git and docker are set up, although an origin for ID tokens is left out`() async throws {
        let cluster = "[[origin]]\nurl = \"https://k8s.example.org/*\"\naccount = \"work\"\nkind = \"id_token\"\n"
        try await Stage.play(Self.origins(("https://git.example.org/*", "work")) + cluster, startsDaemon: false) {
            stage in
            try stage.write("#!/bin/sh\n", to: "\(stage.directory)/bin/docker", mode: 0o700)
            let place = ["PATH": "\(stage.directory)/home/.local/bin:\(stage.directory)/bin:/usr/bin:/bin"]
            for tool in ["git", "docker"] {
                let done = try await setUp(stage, tool, "--yes", added: place).expect(0, says: "Done.")
                #expect(!done.out.contains("k8s.example.org"), "\(done)")
                let list = try await setUp(stage, "--json", added: place)
                let row = try list.json["tools"]?.array?.first { $0["tool"]?.string == tool }
                #expect(row?["state"] == "set up", "\(list)")
            }
        }
    }

    @Test(.enabled(if: `ringback setup`.hasGit, "git is not installed"))
    func `the refusal without a terminal repeats --config`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let path = "\(stage.directory)/other file.toml"
            let text = Self.origins(("https://git.example.org/*", "work"))
            try stage.write(text.replacing("{sandbox}", with: stage.sandbox.origin), to: path)
            try await setUp(stage, "git", "--config", path).expect(
                4, says: "ringback setup git --config '\(path)' --yes")
        }
    }

    @Test(.enabled(if: `ringback setup`.hasGit && geteuid() == 0, "only root can give a home to somebody else"))
    func `changes nothing in a home of somebody else, as sudo would`() async throws {
        try await Stage.play(Self.origins(("https://git.example.org/*", "work")), startsDaemon: false) { stage in
            #expect(unsafe chown("\(stage.directory)/home", 65_534, 65_534) == 0)
            for arguments in [["git", "--yes"], ["git", "--undo", "--yes"]] {
                try await stage.run(
                    "ringback", ["setup"] + arguments, environment: Self.git, status: 1, says: "belongs to uid 65534")
            }
            #expect(FileTree.text(of: "\(stage.directory)/home/.gitconfig") == nil)
        }
    }

    @Test(arguments: [
        ("null", "null", "~/.kube/config", "apiVersion: v1"),
        ("null", #"[{"name":"k","cluster":{}}]"#, "in place of", "users:"),
        (#"[{"name":"ada","user":{}}]"#, "null", "below “users:”", "- name: ringback-work"),
    ])
    func `a kubectl that cannot write the plugin gets the lines to add, which are not wrapped`(
        users: String, clusters: String, place: String, first: String
    ) async throws {
        try await Stage.play(Self.origins(("https://k8s.example.org:6443/*", "work")), startsDaemon: false) { stage in
            try stage.write(
                """
                #!/bin/sh
                case "$*" in
                *--help) echo ' --exec-command' ;;
                *json) echo '{"users":\(users),"contexts":null,"clusters":\(clusters)}' ;;
                esac

                """, to: "\(stage.directory)/bin/kubectl", mode: 0o700)
            let refused = try await setUp(stage, "kubectl", "--account", "work", "--yes")
                .expect(1, says: "Nothing was changed.", place)
            let lines = refused.err.split(separator: "\n").prefix { $0.hasPrefix("  ") }.map { String($0.dropFirst(2)) }
            #expect(lines.first == first, "\(refused)")
            #expect(lines.contains("      args: ['kubectl-credential', '--account=work']"), "\(refused)")
            #expect(lines.last == "      provideClusterInfo: true", "\(refused)")
        }
    }

    @Test func `entries of docker and a link that were made by hand stay`() async throws {
        let origins = Self.origins(
            ("https://registry.hand.org/*", "work"), ("https://r.example.org/*", "work"))
        try await Stage.play(origins, startsDaemon: false) { stage in
            let home = "\(stage.directory)/home"
            try stage.write("#!/bin/sh\n", to: "\(stage.directory)/bin/docker", mode: 0o700)
            for name in [".docker", ".local", ".local/bin"] { FileTree.makeDirectory("\(home)/\(name)") }
            let (file, link) = ("\(home)/.docker/config.json", "\(home)/.local/bin/docker-credential-ringback")
            let former = #"{"credHelpers":{"registry.hand.org":"ringback"}}"#
            try stage.write(former, to: file)
            #expect(unsafe symlink(Programs.path("ringback"), link) == 0)

            try await setUp(stage, "docker", "--undo", "--yes").expect(
                0, out: "", says: "registry.hand.org, which this command did not write")
            #expect(FileTree.text(of: file) == former && FileTree.target(of: link) != nil)

            #expect(try await setUp(stage, "docker", "--yes").status == 0)
            #expect(FileTree.text(of: file)?.contains("r.example.org") == true)
            // What was written is known without the origin.
            try await stage.ringback("origin", "remove", "https://r.example.org", status: 0)
            try await setUp(stage, "docker", "--undo", "--yes").expect(0, prints: "r.example.org")
            #expect(FileTree.text(of: file) == former && FileTree.target(of: link) != nil)
        }
    }

    @Test(.enabled(if: `ringback setup`.hasGit, "git is not installed"))
    func `a broken file of docker hides no other tool`() async throws {
        try await Stage.play(Self.origins(("https://git.example.org/*", "work")), startsDaemon: false) { stage in
            FileTree.makeDirectory("\(stage.directory)/home/.docker")
            try stage.write("{\"a\":1,}", to: "\(stage.directory)/home/.docker/config.json")
            try stage.write("#!/bin/sh\n", to: "\(stage.directory)/bin/docker", mode: 0o700)
            #expect(try await setUp(stage, "git", "--yes").status == 0)
            let list = try await setUp(stage).expect(0, says: "config.json is not a JSON object")
            #expect(list.lines.contains { $0.hasPrefix("git ") && $0.contains("set up") }, "\(list)")
            #expect(list.lines.contains { $0.hasPrefix("docker ") && $0.contains("cannot be read") }, "\(list)")
        }
    }

    private func kubeconfig(_ stage: Stage, users: String, uses: String) throws -> String {
        let file = "\(stage.directory)/kubeconfig"
        try stage.write(
            """
            {"apiVersion": "v1", "kind": "Config", "users": [\(users)],
             "contexts": [{"name": "c", "context": {"cluster": "k", "user": "\(uses)"}}],
             "clusters": [{"name": "k", "cluster": {"server": "https://k8s.example.org:6443"}}]}
            """, to: file)
        return file
    }

    private func plugin(_ name: String, _ program: String, _ arguments: String) -> String {
        #"{"name": "\#(name)", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "#
            + #""\#(program)", "args": [\#(arguments)], "interactiveMode": "IfAvailable"}}}"#
    }

    @Test func `an old kubectl, which cannot write the plugin, gets the line to add by hand`() async throws {
        try await Stage.play(Self.origins(("https://k8s.example.org:6443/*", "work")), startsDaemon: false) { stage in
            let programs = "\(stage.directory)/home"
            try stage.write(
                "#!/bin/sh\ncase \"$*\" in *--help*) echo '  --exec-command=';; *) echo '{}';; esac\n",
                to: "\(programs)/kubectl", mode: 0o755)
            let done = try await setUp(stage, "kubectl", "--yes", added: ["PATH": "\(programs):/usr/bin:/bin"]).expect(
                1, out: "")
            // A block that can be pasted.
            #expect(done.err.contains("\n  - name: ringback\n    user:\n      exec:\n"), "\(done)")
            #expect(done.err.contains("\n        args: ['kubectl-credential']\n        provideClusterInfo: true\n"))
        }
    }

    @Test(.enabled(if: `ringback setup`.hasKubectl, "kubectl or openssl is not installed"))
    func `a user whose program has moved is changed in its place`() async throws {
        try await Stage.play(Self.origins(("https://k8s.example.org:6443/*", "work")), startsDaemon: false) { stage in
            let old = plugin("ringback", "/opt/old/ringback", #""kubectl-credential""#)
            let file = try kubeconfig(stage, users: old, uses: "ringback")
            let done = try await setUp(stage, "kubectl", "--yes", added: ["KUBECONFIG": file]).expect(0)
            #expect(!done.out.contains("delete-user"), "\(done)")
            #expect(!done.err.contains("set-context"), "\(done)")
            let text = FileTree.text(of: file) ?? ""
            #expect(!text.contains("/opt/old") && text.contains("/ringback\n"), "\(text)")
            #expect(text.ranges(of: "kubectl-credential").count == 1, "\(text)")
        }
    }

    @Test(.enabled(if: `ringback setup`.hasKubectl, "kubectl or openssl is not installed"))
    func `the command for a context is named whenever none uses the user`() async throws {
        try await Stage.play(Self.origins(("https://k8s.example.org:6443/*", "work")), startsDaemon: false) { stage in
            let other = plugin("ringback", "/usr/bin/ringback", #""kubectl-credential""#)
            let file = try kubeconfig(stage, users: other, uses: "ringback")
            let place = ["KUBECONFIG": file]
            // No origin of this account names a cluster.
            let general = try await setUp(stage, "kubectl", "--account", "home", "--yes", added: place)
            #expect(general.err.contains("kubectl config set-context CONTEXT --user=ringback-home"), "\(general)")
            // The context asks Ringback already, by another user.
            let own = try await setUp(stage, "kubectl", "--account", "work", "--yes", added: place)
            #expect(own.err.contains("kubectl config set-context c --user=ringback-work"), "\(own)")
        }
    }
}
