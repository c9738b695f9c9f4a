// `ringback install` in a home of its own, from an unpacked archive: the programs, of which ringback is the real one.

import Glibc
import Testing

@Suite struct `ringback install` {
    /// An archive's directory: bin with the programs, share with the pages.
    private func unpack(_ stage: Stage) async throws -> String {
        let archive = "\(stage.directory)/unpacked"
        for name in ["", "/bin", "/share", "/share/man", "/share/man/man1", "/share/man/man5", "/share/man/man8"] {
            FileTree.makeDirectory(archive + name)
        }
        let copied = try await stage.run("/bin/cp", [Programs.path("ringback"), "\(archive)/bin/ringback"])
        #expect(copied.status == 0, "\(copied)")
        for name in ["ringbackd", "ringback-relay", "ringback-sandbox"] {
            try stage.write("#!/bin/sh\necho \(name)\n", to: "\(archive)/bin/\(name)", mode: 0o755)
            FileTree.setMode(0o755, of: "\(archive)/bin/\(name)")
        }
        for page in ["ringback.1", "ringback-relay.1", "ringback.toml.5", "ringbackd.8"] {
            let text = try Document(path: "man/\(page)").text
            try stage.write(text, to: "\(archive)/share/man/man\(page.suffix(1))/\(page)")
        }
        return "\(archive)/bin/ringback"
    }

    /// A systemctl that notes its orders; the whole of a manager as far as `install` asks it.
    private func systemctl(_ stage: Stage) throws -> String {
        let notes = "\(stage.directory)/orders"
        try stage.write("#!/bin/sh\necho \"$*\" >>\(notes)\n", to: "\(stage.directory)/bin/systemctl", mode: 0o700)
        return notes
    }

    private func files(in stage: Stage) async throws -> [String] {
        try await stage.run("/usr/bin/find", ["\(stage.directory)/home", "-type", "f", "-printf", "%P %m\n"]).lines
            .sorted()
    }

    private static let installed = [
        ".config/systemd/user/ringback.service 644", ".config/systemd/user/ringback.socket 644",
        ".local/bin/ringback 755", ".local/bin/ringback-relay 755", ".local/bin/ringback-sandbox 755",
        ".local/bin/ringbackd 755",
        ".local/share/bash-completion/completions/ringback 644",
        ".local/share/fish/vendor_completions.d/ringback.fish 644",
        ".local/share/man/man1/ringback-relay.1 644",
        ".local/share/man/man1/ringback.1 644", ".local/share/man/man5/ringback.toml.5 644",
        ".local/share/man/man8/ringbackd.8 644", ".local/share/ringback/installed 600",
        ".local/share/zsh/site-functions/_ringback 644",
    ]

    @Test func `puts everything in its place, and takes exactly that away again`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let program = try await unpack(stage)
            let orders = try systemctl(stage)
            let home = "\(stage.directory)/home"
            for name in [".local", ".local/bin"] { FileTree.makeDirectory("\(home)/\(name)") }
            try stage.write("mine", to: "\(home)/.local/bin/mine")

            let done = try await stage.run(program, ["install"])
            #expect(done.status == 0 && done.out.isEmpty, "\(done)")
            #expect(try await files(in: stage) == (Self.installed + [".local/bin/mine 600"]).sorted())
            for name in ["ringback.service", "ringback.socket"] {
                let text = try Document(path: "systemd/\(name)").text
                #expect(
                    FileTree.text(of: "\(home)/.config/systemd/user/\(name)")
                        == text.replacing("=/usr/bin/", with: "=\(home)/.local/bin/"))
            }
            #expect(
                FileTree.text(of: "\(home)/.local/share/man/man8/ringbackd.8")
                    == (try Document(path: "man/ringbackd.8").text))
            #expect(try await stage.run("\(home)/.local/bin/ringback", ["--version"]).status == 0)
            #expect(done.err.contains("\(home)/.local/bin is not in your PATH"), "\(done)")
            let names = "\(home)/.local/lib/ringback"
            #expect(FileTree.names(in: names) == ["keyring", "oidc-token"])
            for name in ["keyring", "oidc-token"] {
                #expect(FileTree.target(of: "\(names)/\(name)") == "../../bin/ringback")
            }
            #expect(try await stage.run("\(names)/oidc-token", ["--usage"]).out.contains("oidc-token"))

            // Once more, from where it is now: nothing else, and the former daemon is spoken of.
            let again = try await stage.run("\(home)/.local/bin/ringback", ["install"])
            #expect(again.status == 0 && again.err.contains("systemctl --user restart ringback.service"), "\(again)")
            #expect(try await files(in: stage).count == Self.installed.count + 1)
            let given = (FileTree.text(of: orders) ?? "").split(separator: "\n")
            #expect(given.contains("--user --no-pager enable --now ringback.socket"), "\(given)")

            let undone = try await stage.run(program, ["install", "--undo"])
            #expect(undone.status == 0 && undone.out.isEmpty, "\(undone)")
            let left = try await stage.run("/usr/bin/find", [home, "-mindepth", "1", "-printf", "%P\n"]).lines.sorted()
            #expect(left == [".local", ".local/bin", ".local/bin/mine"])
            let last = (FileTree.text(of: orders) ?? "").split(separator: "\n").dropFirst(given.count)
            let wanted = ["disable --now ringback.socket", "stop ringback.service", "daemon-reload"]
            #expect(last.suffix(3).map { $0.dropFirst(18) } == wanted.map { $0[...] }, "\(last)")

            let nothing = try await stage.run(program, ["install", "--undo"])
            #expect(nothing.status == 0 && nothing.err.contains("nothing to undo"), "\(nothing)")
        }
    }

    @Test func `without systemd says how to start the daemon`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            try stage.write("#!/bin/sh\nexit 1\n", to: "\(stage.directory)/bin/systemctl", mode: 0o700)
            let program = try await unpack(stage)
            let done = try await stage.run(program, ["install"])
            #expect(done.status == 0, "\(done)")
            #expect(done.err.contains("\(stage.directory)/home/.local/bin/ringbackd &"), "\(done)")
            #expect(try await stage.run(program, ["install", "--undo"]).status == 0)
            #expect(try await files(in: stage).isEmpty)
        }
    }

    @Test func `replaces and removes nothing of anybody else`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            _ = try systemctl(stage)
            let program = try await unpack(stage)
            let home = "\(stage.directory)/home"
            for name in [".config", ".config/systemd", ".config/systemd/user"] {
                FileTree.makeDirectory("\(home)/\(name)")
            }
            let unit = "\(home)/.config/systemd/user/ringback.service"
            try stage.write("[Service]\nExecStart=/bin/true\n", to: unit)
            let refused = try await stage.run(program, ["install"])
            #expect(refused.status == 1 && refused.err.contains("Nothing was changed: \(unit) is not"), "\(refused)")
            #expect(try await files(in: stage) == [".config/systemd/user/ringback.service 600"])

            FileTree.remove(unit)
            for name in [".local", ".local/lib", ".local/lib/ringback"] { FileTree.makeDirectory("\(home)/\(name)") }
            let link = "\(home)/.local/lib/ringback/keyring"
            #expect(unsafe symlink("/bin/true", link) == 0)
            let taken = try await stage.run(program, ["install"])
            #expect(taken.status == 1 && taken.err.contains("Nothing was changed: \(link) is not"), "\(taken)")
            #expect(FileTree.target(of: link) == "/bin/true")

            FileTree.remove(link)
            #expect(try await stage.run(program, ["install"]).status == 0)
            FileTree.remove(link)
            #expect(unsafe symlink("/bin/true", link) == 0)
            try stage.write("[Service]\nExecStart=/bin/true\n# mine\n", to: unit)
            let changed = try await stage.run(program, ["install"])
            #expect(changed.status == 1 && changed.err.contains("changed since"), "\(changed)")
            let undone = try await stage.run(program, ["install", "--undo"])
            #expect(undone.status == 0 && undone.err.contains("left, since it was changed: \(unit)"), "\(undone)")
            #expect(undone.err.contains("left, since it was changed: \(link)"), "\(undone)")
            #expect(FileTree.target(of: link) == "/bin/true")
            #expect(try await files(in: stage) == [".config/systemd/user/ringback.service 600"])
        }
    }

    @Test func `does not take the socket from under a daemon that was started by hand`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let daemon = try await stage.startDaemon(["--socket", "\(stage.directory)/run/ringback/ringback.sock"])
            let program = try await unpack(stage)
            try stage.write(
                "#!/bin/sh\ncase \"$*\" in *is-active*) exit 3 ;; esac\n", to: "\(stage.directory)/bin/systemctl",
                mode: 0o700)
            let refused = try await stage.run(program, ["install"])
            #expect(refused.status == 1 && refused.err.contains("End it (kill \(daemon.pid))"), "\(refused)")
            #expect(try await files(in: stage).filter { !$0.contains("ringback/keys") }.isEmpty)
            #expect(try await stage.stopDaemon().status == 0)
            #expect(try await stage.run(program, ["install"]).status == 0)
            #expect(try await stage.run(program, ["install", "--undo"]).status == 0)
        }
    }

    @Test func `takes another prefix, whatever its name`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            _ = try systemctl(stage)
            let program = try await unpack(stage)
            let prefix = "\(stage.directory)/50% \"of\" $HOME"
            let done = try await stage.run(program, ["install", "--prefix", prefix])
            #expect(done.status == 0, "\(done)")
            #expect(
                FileTree.names(in: "\(prefix)/bin") == ["ringback", "ringback-relay", "ringback-sandbox", "ringbackd"])
            let unit = "\(stage.directory)/home/.config/systemd/user/ringback.service"
            let word = "\"\(stage.directory)/50%% \\\"of\\\" $$HOME/bin/ringback"
            let text = FileTree.text(of: unit) ?? ""
            #expect(text.contains("ExecStart=\(word)d\"\n") && text.contains("ExecReload=\(word)\" reload\n"))
            let other = try await stage.run(program, ["install"])
            #expect(other.status == 1 && other.err.contains("ringback install --undo"), "\(other)")
            #expect(try await stage.run(program, ["install", "--undo"]).status == 0)
            #expect(FileTree.names(in: prefix) == [])
            #expect(try await files(in: stage).isEmpty)
        }
    }

    @Test func `says what is missing, and what is not a note of its own`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let program = try await unpack(stage)
            FileTree.remove("\(stage.directory)/unpacked/bin/ringbackd")
            let alone = try await stage.run(program, ["install"])
            #expect(alone.status == 1 && alone.err.contains("ringbackd is not beside this program"), "\(alone)")
            #expect(try await files(in: stage).isEmpty)
            let homeless = try await stage.run(program, ["install"], environment: ["HOME": ""])
            #expect(homeless.status == 1 && homeless.err.contains("HOME"), "\(homeless)")
            #expect(try await stage.run(program, ["install", "--undo", "--prefix", "/tmp"]).status == 64)
            for name in [".local", ".local/share", ".local/share/ringback"] {
                FileTree.makeDirectory("\(stage.directory)/home/\(name)")
            }
            try stage.write("/etc/passwd\n", to: "\(stage.directory)/home/.local/share/ringback/installed")
            let foreign = try await stage.run(program, ["install", "--undo"])
            #expect(foreign.status == 1 && foreign.err.contains("not a list of ringback install"), "\(foreign)")
        }
    }

    @Test func `undone ends the daemon that it installed, and says what stays`() async throws {
        try await Stage.play { stage in
            try stage.write("#!/bin/sh\nexit 1\n", to: "\(stage.directory)/bin/systemctl", mode: 0o700)
            let program = try await unpack(stage)
            let copied = try await stage.run(
                "/bin/cp", [Programs.path("ringbackd"), "\(stage.directory)/unpacked/bin/ringbackd"])
            #expect(copied.status == 0, "\(copied)")
            // Another program's daemon is left alone.
            #expect(try await stage.run(program, ["install"]).status == 0)
            #expect(try await stage.run(program, ["install", "--undo"]).status == 0)
            #expect(stage.daemon?.endedStatus == nil)
            _ = try await stage.stopDaemon()

            #expect(try await stage.run(program, ["install"]).status == 0)
            let installed = "\(stage.directory)/home/.local/bin/ringbackd"
            let daemon = try stage.start(installed, ["--config", stage.configuration, "--socket", stage.socket])
            try await stage.eventually("a daemon") { try await stage.ringback("status").status == 0 }
            try await stage.signIn()
            let undone = try await stage.run(program, ["install", "--undo"])
            #expect(undone.status == 0 && undone.err.contains("ended the daemon (pid \(daemon.pid))"), "\(undone)")
            #expect(try await daemon.end().status == 0)
            let (state, keys) = (
                "\(stage.directory)/state-home/ringback", "\(stage.directory)/home/.local/share/ringback/keys"
            )
            #expect(undone.err.contains("\(state) (the vault with the sessions)"), "\(undone)")
            #expect(undone.err.contains("\(keys) (the vault's key)"), "\(undone)")
            #expect(undone.err.contains("ringback install --undo --purge"), "\(undone)")

            let record = "\(stage.directory)/home/.local/share/ringback/setup"
            try stage.write("ringback setup 1\n", to: record)
            for (answer, isLeft) in [("", true), ("n\n", true), ("y\n", false)] {
                let purged = try await stage.run(program, ["install", "--undo", "--purge"], stdin: answer)
                #expect(purged.status == 0 && purged.err.contains("[y/N]"), "\(purged)")
                #expect(FileTree.names(in: state).isEmpty == !isLeft && FileTree.names(in: keys).isEmpty == !isLeft)
                #expect((FileTree.mode(of: record) != nil) == isLeft)
            }
            let nothing = try await stage.run(program, ["install", "--undo", "--purge"])
            #expect(nothing.status == 0 && nothing.err.contains("There are no sessions and no keys"), "\(nothing)")
        }
    }

    @Test func `removes no sessions from under a daemon that runs`() async throws {
        try await Stage.play { stage in
            FileTree.makeDirectory("\(stage.directory)/state-home/ringback")
            let purged = try await stage.ringback("install", "--undo", "--purge", stdin: "y\n")
            #expect(purged.status == 1 && purged.err.contains("a daemon still runs"), "\(purged)")
            #expect(FileTree.mode(of: "\(stage.directory)/state-home/ringback") != nil)
            #expect(try await stage.ringback("install", "--purge").status == 64)
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a home to somebody else"))
    func `does not install in a home of somebody else, as sudo would`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let program = try await unpack(stage)
            #expect(unsafe chown("\(stage.directory)/home", 65_534, 65_534) == 0)
            for arguments in [["install"], ["install", "--undo"], ["install", "--prefix", "/tmp/none"]] {
                let refused = try await stage.run(program, arguments)
                #expect(refused.status == 1 && refused.err.contains("belongs to uid 65534"), "\(refused)")
            }
            #expect(try await files(in: stage).isEmpty)
        }
    }

    @Test func `installs programs without symbols, with modes of their own`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            _ = try systemctl(stage)
            let program = try await unpack(stage)
            let done = try await stage.run("/bin/sh", ["-c", "umask 077; exec \"$0\" install", program])
            #expect(done.status == 0, "\(done)")
            #expect(try await files(in: stage) == Self.installed.sorted())
            let symbols = try await stage.run("/usr/bin/nm", ["\(stage.directory)/home/.local/bin/ringback"])
            #expect(symbols.err.contains("no symbols"), "\(symbols.err)")
            #expect(try await stage.run("\(stage.directory)/home/.local/bin/ringback", ["--version"]).status == 0)
        }
    }
}
