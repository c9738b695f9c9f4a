import Glibc
import RingbackBase
import Testing

@Suite struct `ringback setup` {
    static let hasGit = areInstalled("git")
    static let hasKubectl = areInstalled("kubectl", "openssl")

    private static let origins = """
        [[origin]]
        url = "https://git.example.org/*"
        account = "work"

        [[origin]]
        url = "https://code.example.org/team/*"
        account = "home"

        """
    private static let git = ["GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"]
    private static let dotfiles = "# mine\n[user]\n\tname = Ada ; a comment\n[credential]\n\thelper = store\n"

    private func setUp(_ stage: Stage, _ arguments: String..., added: [String: String] = [:]) async throws -> Output {
        try await stage.run("ringback", ["setup"] + arguments, environment: Self.git.merging(added) { $1 })
    }

    private func runGit(_ stage: Stage, _ arguments: String..., stdin: String? = nil) async throws -> Output {
        try await stage.run("/usr/bin/git", arguments, stdin: stdin, environment: Self.git)
    }

    /// A file in a home that links lead to, as from a directory of dotfiles.
    private func linkedFile(_ stage: Stage, _ name: String, _ text: String) throws -> String {
        let path = "\(stage.directory)/dotfile"
        try stage.write(text, to: path, mode: 0o640)
        #expect(unsafe symlink(path, "\(stage.directory)/home/\(name)") == 0)
        return path
    }

    private func isLink(_ path: String) -> Bool { FileTree.target(of: path) != nil }
    private func isThere(_ path: String) -> Bool { FileTree.mode(of: path) != nil }

    @Test(.enabled(if: hasGit, "git is not installed"))
    func `setup git makes git ask Ringback only, and --undo restores the file`() async throws {
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origins) { stage in
            let file = try linkedFile(stage, ".gitconfig", Self.dotfiles)
            let server = "protocol=https\nhost=git.example.org\n"

            let shown = try await setUp(stage, "git", "--print").expect(0, prints: "git config --global --add")
            try await setUp(stage, "git", "--account", "work").expect(4, says: "setup git --account work --yes")
            #expect(FileTree.text(of: file) == Self.dotfiles)

            try await setUp(stage, "git", "--yes").expect(0, out: shown.out)
            let text = FileTree.text(of: file) ?? ""
            #expect(text.hasPrefix(Self.dotfiles) && isLink("\(stage.directory)/home/.gitconfig"), "\(text)")
            #expect(text.contains("\thelper = \n\thelper = !test ! -x "), "\(text)")
            #expect(text.contains("/ringback git-credential\n"), "\(text)")

            let token = try #require(try await stage.token())
            let filled = try await runGit(stage, "credential", "fill", stdin: server)
            #expect(filled.lines.contains("password=\(token)"), "\(filled)")
            // The helper `store` of the section before does not get it.
            try await runGit(stage, "credential", "approve", stdin: server + "username=oauth2\npassword=\(token)\n")
                .expect(0)
            #expect(!isThere("\(stage.directory)/home/.git-credentials"))
            // The path of the other origin is named, so git says which account is needed.
            let other = try await runGit(
                stage, "credential", "fill", stdin: "protocol=https\nhost=code.example.org\npath=team/a.git\n")
            #expect(other.err.contains("ringback login home"), "\(other)")

            // Once Ringback is removed, its line does nothing, and git asks the helper that it had before.
            try stage.write(text.replacing("/ringback ", with: "/removed "), to: file, mode: 0o640)
            let without = try await runGit(stage, "credential", "fill", stdin: server)
            #expect(without.err.contains("could not read Username") && !without.err.contains("removed"), "\(without)")
            let stored = "\(stage.directory)/home/.git-credentials"
            try stage.write("https://ada:kept@git.example.org\n", to: stored, mode: 0o600)
            try await runGit(stage, "credential", "fill", stdin: server).expect(0, prints: "password=kept")
            try stage.write(text, to: file, mode: 0o640)
            let again = try await runGit(stage, "credential", "fill", stdin: server)
            #expect(again.lines.contains("password=\(token)"), "\(again)")

            let list = try await setUp(stage)
            let row = list.lines.first { $0.hasPrefix("git ") } ?? ""
            #expect(
                row.contains(" set up ") && row.contains("https://git.example.org/* https://code.example.org/team/*"),
                "\(list)")
            try await setUp(stage, "git").expect(0, out: "", says: "nothing to change")

            let undone = try await setUp(stage, "git", "--undo", "--yes").expect(0)
            #expect(FileTree.text(of: file) == Self.dotfiles, "\(undone)")
            #expect(isLink("\(stage.directory)/home/.gitconfig"))
            try await setUp(stage, "git", "--undo", "--yes").expect(0, out: "", says: "nothing to remove")
        }
    }

    @Test(.enabled(if: hasGit, "git is not installed"))
    func `setup --undo without a tool undoes each tool, each AI tool and each scheme`() async throws {
        let linear = "[accounts.linear]\nmcp = \"http://127.0.0.1:9/mcp\"\n\n"
        try await Stage.play(linear + Stage.twoAccounts + Self.origins) { stage in
            try await setUp(stage, "--undo", "--yes").expect(0, out: "", says: "nothing to remove")
            let git = "\(stage.directory)/home/.gitconfig"
            let cursor = "\(stage.directory)/home/.cursor/mcp.json"
            try stage.write(Self.dotfiles, to: git)
            try await setUp(stage, "git", "--yes").expect(0)
            for name in ["one", "two"] {
                try await stage.ringback("mcp", "add-to", "cursor", "linear", "--name", name, "--yes", status: 0)
            }
            try await stage.ringback("scheme", "register", "org.example.app", status: 0)

            let shown = try await setUp(stage, "--undo", "--print").expect(
                0, prints: "git config --global", "remove one", "remove two", "scheme unregister org.example.app")
            try await setUp(stage, "--undo").expect(4, says: "ringback setup --undo --yes")
            #expect(FileTree.text(of: git) != Self.dotfiles && isThere(cursor))
            try await setUp(stage, "--undo", "--yes").expect(0, out: shown.out)
            #expect(FileTree.text(of: git) == Self.dotfiles)
            #expect(!isThere(cursor))
            let schemes = try await stage.ringback("scheme", "list", "--json")
            #expect(schemes.out.contains("org.example.app") == false, "\(schemes)")
            try await setUp(stage, "--undo", "--yes").expect(0, out: "", says: "nothing to remove")
        }
    }

    @Test(.enabled(if: hasGit, "git is not installed"))
    func `setup git names and ends another helper`() async throws {
        try await Stage.play(Stage.twoAccounts + Self.origins) { stage in
            let file = "\(stage.directory)/home/.gitconfig"
            #expect(try await setUp(stage, "git", "--yes", "--account", "work").status == 0)
            try stage.write((FileTree.text(of: file) ?? "") + "[credential]\n\thelper = cache\n", to: file)
            let list = try await setUp(stage, "--json")
            let git = try list.json["tools"]?.array?.first
            #expect(git?["state"] == "something else answers" && git?["servers"] == ["https://git.example.org/*"])
            let doctor = try await stage.ringback("doctor", environment: Self.git)
            #expect(doctor.out.contains("cache") && doctor.out.contains("ringback setup git"), "\(doctor)")

            let mended = try await setUp(stage, "git", "--yes", "--account", "work").expect(0)
            #expect(!mended.err.contains("another helper"), "\(mended)")
            // It is asked again once Ringback is removed.
            #expect(FileTree.text(of: file)?.contains(" || git credential-cache\n") == true)
            let row = try await setUp(stage).lines.first { $0.hasPrefix("git ") } ?? ""
            #expect(row.contains("set up in part"), "\(row)")
            // Somebody else's entry for the server stays.
            _ = try await runGit(
                stage, "config", "--global", "--add", "credential.https://git.example.org.username", "ada")
            #expect(try await setUp(stage, "git", "--undo", "--yes").status == 0)
            let left = FileTree.text(of: file) ?? ""
            #expect(left.contains("helper = cache") && left.contains("username = ada") && !left.contains("ringback"))
        }
    }

    @Test(.enabled(if: hasGit, "git is not installed"))
    func `setup on a terminal changes nothing without a yes`() async throws {
        try await Stage.play(Stage.twoAccounts + Self.origins) { stage in
            let file = "\(stage.directory)/home/.gitconfig"
            let environment = stage.environment.merging(Self.git) { $1 }
            let no = try TerminalProgram(["setup", "git"], environment: environment)
            try await no.shows("Make this change?")
            no.type("n")
            #expect(try await no.end().status == 4)
            #expect(no.text.contains("Nothing was changed") && !isThere(file), "\(no.text)")
            let yes = try TerminalProgram(["setup", "git"], environment: environment)
            try await yes.shows("Make this change?")
            yes.type("y")
            #expect(try await yes.end().status == 0)
            #expect(FileTree.text(of: file)?.contains("ringback") == true, "\(yes.text)")
        }
    }

    @Test func `setup needs an origin, an account and the tool`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            try stage.write("#!/bin/sh\n", to: "\(stage.directory)/bin/docker", mode: 0o700)
            try await setUp(stage, "docker", "--yes").expect(1, says: "ringback origin add URL")
            try await setUp(stage, "docker", "--account", "wrok", "--yes").expect(64, says: "Did you mean work")
            #expect(try await setUp(stage, "--yes").status == 64)
            #expect(try await setUp(stage, "npm").status == 64)
            let empty = ["PATH": "\(stage.directory)/home"]
            try await setUp(stage, "git", "--yes", added: empty).expect(1, says: "git: not installed")
            try await setUp(stage, "git", "--undo", "--yes", added: empty).expect(1, says: "git: not installed")
            // docs/tools.md has the lines for these tools; setup does not edit their files.
            for tool in ["aws", "bazel", "cargo", "pnpm", "terraform", "tofu"] {
                #expect(try await setUp(stage, tool, "--yes").status == 64, "\(tool)")
            }
            let list = try await setUp(stage, added: empty)
            let tools = list.lines.dropFirst()
            #expect(list.status == 0 && tools.count == 4, "\(list)")
            #expect(tools.allSatisfy { $0.hasSuffix("not installed") }, "\(list)")
        }
    }

    @Test func `setup docker edits config.json in place and makes a link`() async throws {
        let origins = """
            [[origin]]
            url = "https://r.example.org/*"
            account = "work"

            [[origin]]
            url = "https://taken.example.org:5000/*"
            account = "work"

            """
        try await Stage.playSignedIn(Stage.twoAccounts + origins) { stage in
            let home = "\(stage.directory)/home"
            try stage.write("#!/bin/sh\n", to: "\(stage.directory)/bin/docker", mode: 0o700)
            FileTree.makeDirectory("\(home)/.docker")
            let former = """
                {
                    "auths": {},
                    "credHelpers": {
                        "taken.example.org:5000": "pass"
                    },
                    "detachKeys": "ctrl-e,e"
                }
                """
            let file = try linkedFile(stage, ".docker/config.json", former)
            let shown = try await setUp(stage, "docker", "--print").expect(0)
            #expect(FileTree.text(of: file) == former, "\(shown)")
            #expect(!isThere("\(home)/.local/bin"))

            try await setUp(stage, "docker", "--yes").expect(
                0, says: "which stays: pass", "\(home)/.local/bin is not in PATH")
            #expect(
                FileTree.text(of: file)
                    == former.replacing("\"pass\"\n", with: "\"pass\",\n        \"r.example.org\": \"ringback\"\n"))
            #expect(isLink("\(home)/.docker/config.json"))
            #expect(FileTree.mode(of: file) == 0o640)

            let path = ["PATH": "\(home)/.local/bin:\(stage.directory)/bin:/usr/bin:/bin"]
            let got = try await stage.run(
                "\(home)/.local/bin/docker-credential-ringback", ["get"], stdin: "r.example.org")
            let token = try #require(try await stage.token())
            #expect(got.out.contains("\"Secret\":\"\(token)\""), "\(got)")
            let row = try await setUp(stage, added: path).lines.first { $0.hasPrefix("docker ") } ?? ""
            #expect(row.contains("something else answers") && row.contains("r.example.org"), "\(row)")

            let undone = try await setUp(stage, "docker", "--undo", "--yes").expect(0)
            #expect(FileTree.text(of: file) == former, "\(undone)")
            #expect(!isThere("\(home)/.local/bin/docker-credential-ringback"))
        }
    }

    @Test func `setup docker leaves an unreadable file and another program's link`() async throws {
        let origin = "[[origin]]\nurl = \"https://r.example.org/*\"\naccount = \"work\"\n"
        try await Stage.play(Stage.twoAccounts + origin, startsDaemon: false) { stage in
            let home = "\(stage.directory)/home"
            try stage.write("#!/bin/sh\n", to: "\(stage.directory)/bin/docker", mode: 0o700)
            let place = ["DOCKER_CONFIG": home]
            for text in ["{\"a\": 1,}", "[]", "{\"credHelpers\": null}", ""] {
                try stage.write(text, to: "\(home)/config.json")
                try await setUp(stage, "docker", "--yes", added: place).expect(1, says: "Nothing was changed")
                #expect(FileTree.text(of: "\(home)/config.json") == text)
            }
            FileTree.remove("\(home)/config.json")
            for name in [".local", ".local/bin"] { FileTree.makeDirectory("\(home)/\(name)") }
            try stage.write("mine", to: "\(home)/.local/bin/docker-credential-ringback")
            try await setUp(stage, "docker", "--yes", added: place).expect(1, says: "Move it away")
            #expect(FileTree.text(of: "\(home)/.local/bin/docker-credential-ringback") == "mine")
            #expect(!isThere("\(home)/config.json"))
        }
    }

    @Test(.enabled(if: hasKubectl, "kubectl or openssl is not installed"))
    func `setup kubectl makes a kubeconfig user that sends the token`() async throws {
        try await Stage.play { stage in
            let (server, port) = try await stage.startToolServer()
            try await stage.ringback(
                "origin", "add", "https://127.0.0.1:\(port)", "--account", "work", "--kind", "id_token", status: 0)
            try await stage.signIn()
            let file = "\(stage.directory)/kubeconfig"
            let place = ["KUBECONFIG": file]
            try stage.write(
                """
                {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                 "contexts": [{"name": "c", "context": {"cluster": "k", "user": "ada"}}],
                 "users": [{"name": "ada", "user": {"token": "t"}}],
                 "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:\(port)",
                   "certificate-authority": "\(stage.directory)/server.pem"}}]}
                """, to: file)
            let done = try await setUp(stage, "kubectl", "--yes", added: place)
            // The cluster has a certificate authority of its own, which the origin has to allow.
            #expect(done.status == 0 && done.out.contains("ca_sha256 = \""), "\(done)")
            let command = "kubectl config set-context c --user=ringback"
            #expect(done.err.contains(command), "\(done)")
            let before = try await setUp(stage, added: place)
            #expect(
                before.out.contains("something else answers") && before.err.contains("another user: ada"), "\(before)")
            try await stage.run(
                "/bin/sh", ["-c", "\(command) >/dev/null && exec kubectl get --raw /readyz"], environment: place,
                status: 0, prints: "ok")
            let session = try await stage.api("GET", "/v1/accounts/work/session?include=id_token")
            let token = try #require(session["id_token"]?.string)
            _ = try await server.line("the request with the ID token") { $0 == "/readyz Bearer \(token)" }
            let row = try await setUp(stage, added: place).lines.first { $0.hasPrefix("kubectl ") } ?? ""
            #expect(row.contains(" set up ") && row.contains("https://127.0.0.1:\(port)"), "\(row)")
            #expect(try await setUp(stage, "kubectl", added: place).err.contains("nothing to change"))
            // As after a new authority of the cluster.
            let configuration = try #require(FileTree.text(of: stage.configuration))
            let lines = configuration.split(separator: "\n", omittingEmptySubsequences: false)
            try stage.write(
                lines.filter { !$0.hasPrefix("ca_sha256") }.joined(separator: "\n"), to: stage.configuration)
            let renewed = try await setUp(stage, added: place)
            #expect(
                renewed.out.contains("set up in part") && renewed.err.contains("certificate authority"), "\(renewed)")
            try stage.write(configuration, to: stage.configuration)

            try await setUp(stage, "kubectl", "--account", "home", "--yes", added: place).expect(
                0, prints: "--exec-arg=--account=home")
            try await setUp(stage, "kubectl", "--undo", "--yes", added: place).expect(
                0, says: "The context c uses ringback")
            let text = FileTree.text(of: file) ?? ""
            #expect(text.contains("name: ada") && !text.contains("name: ringback"), "\(text)")
        }
    }
}
