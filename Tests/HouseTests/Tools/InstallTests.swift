// The tarball's ./install (Scripts/dist-installer) in a home of its own. What Scripts/dist puts into a tarball is tried by
// `make test-packages`.

import Glibc
import Testing

@Suite struct `The tarball's ./install` {
    /// An unpacked tarball with programs that only say their names.
    private func unpack(_ stage: Stage, pages: [String] = ["ringback-relay.1"]) async throws -> String {
        let top = "\(stage.directory)/unpacked"
        FileTree.remove(top)
        let script = #"""
            set -e
            mkdir -p bin lib/ringback lib/systemd/user share/man/man1 share/ringback
            for name in ringbackd ringback; do printf '#!/bin/sh\necho %s\n' "$name" >bin/$name; done
            chmod 755 bin/*
            cp "$2"/systemd/ringback.socket "$2"/systemd/ringback.service lib/systemd/user
            cp "$2"/systemd/*.desktop share/ringback
            for page in $1; do cp "$2/man/$page" share/man/man1; done
            for name in keyring oidc-token; do ln -s ../../bin/ringback lib/ringback/$name; done
            sed "s/@MACHINE@/$(uname -m)/" "$2/Scripts/dist-installer" >install
            chmod 755 install
            find install bin lib share -type f | xargs sha256sum >SHA256SUMS
            """#
        FileTree.makeDirectory(top)
        let pages = pages.joined(separator: " ")
        try await stage.run("/bin/sh", ["-c", "cd '\(top)' && \(script)", "unpack", pages, Document.root], status: 0)
        return "\(top)/install"
    }

    /// A systemctl that notes its orders; the socket's unit is the one that was installed, and the service runs or not.
    private func systemctl(_ stage: Stage, runs: Bool = false) throws -> String {
        let notes = "\(stage.directory)/orders"
        let script = """
            #!/bin/sh
            case "$*" in
                *FragmentPath*) echo '\(prefix(stage))/share/systemd/user/ringback.socket' ;;
                *is-active*) exit \(runs ? 0 : 3) ;;
                *Version*) ;;
                *) echo "$*" >>'\(notes)' ;;
            esac

            """
        try stage.write(script, to: "\(stage.directory)/bin/systemctl", mode: 0o700)
        return notes
    }

    private func prefix(_ stage: Stage) -> String { "\(stage.directory)/home/.local" }

    /// Root's usual prefix is /usr/local, so that it is named here in any case.
    private func run(_ installer: String, _ arguments: [String] = [], on stage: Stage) async throws -> Output {
        try await stage.run(installer, ["--prefix", prefix(stage)] + arguments)
    }

    private func files(in stage: Stage) async throws -> [String] {
        try await stage.run("/usr/bin/find", ["\(stage.directory)/home", "!", "-type", "d", "-printf", "%P %m\n"])
            .lines.sorted()
    }

    private static let installed = [
        ".local/bin/ringback 755", ".local/bin/ringbackd 755", ".local/lib/ringback/keyring 777",
        ".local/lib/ringback/oidc-token 777", ".local/share/man/man1/ringback-relay.1 644",
        ".local/share/ringback/install 755", ".local/share/ringback/installed 644",
        ".local/share/ringback/ringback-callback.desktop 644", ".local/share/ringback/ringbackd.desktop 644",
        ".local/share/systemd/user/ringback.service 644", ".local/share/systemd/user/ringback.socket 644",
    ]

    @Test func `the installer puts everything in its place, and the undo takes exactly that away`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let installer = try await unpack(stage)
            let orders = try systemctl(stage)
            let home = "\(stage.directory)/home"
            for name in [".local", ".local/bin"] { FileTree.makeDirectory("\(home)/\(name)") }
            try stage.write("mine", to: "\(home)/.local/bin/mine")

            let done = try await stage.run(
                "/bin/sh", ["-c", "umask 077; exec \"$0\" --prefix \"$1\"", installer, prefix(stage)], status: 0,
                out: "")
            #expect(try await files(in: stage) == ([".local/bin/mine 600"] + Self.installed).sorted())
            for name in ["ringback.service", "ringback.socket"] {
                #expect(
                    FileTree.text(of: "\(home)/.local/share/systemd/user/\(name)")
                        == (try Document(path: "systemd/\(name)").text)
                        .replacing("=/usr/bin/", with: "=\(home)/.local/bin/"))
            }
            #expect(FileTree.target(of: "\(home)/.local/lib/ringback/keyring") == "../../bin/ringback")
            #expect(done.err.contains("\(home)/.local/bin is not in your PATH"), "\(done)")
            let next = "systemctl --user daemon-reload && systemctl --user enable --now ringback.socket"
            #expect(done.err.contains(next), "\(done)")
            #expect(FileTree.text(of: orders) == nil)

            // An upgrade: a page less, and a daemon that runs.
            _ = try systemctl(stage, runs: true)
            try await run(try await unpack(stage, pages: []), on: stage).expect(
                0, says: "systemctl --user restart ringback.service")
            let rest = Self.installed.filter { !$0.contains("man1") }
            #expect(try await files(in: stage) == ([".local/bin/mine 600"] + rest).sorted())

            try await run("\(home)/.local/share/ringback/install", ["--undo"], on: stage).expect(0, out: "")
            let left = try await stage.run("/usr/bin/find", [home, "-mindepth", "1", "-printf", "%P\n"]).lines.sorted()
            #expect(left == [".local", ".local/bin", ".local/bin/mine"])
            #expect(
                FileTree.text(of: orders)
                    == "--user disable --now ringback.socket\n--user stop ringback.service\n--user daemon-reload\n")
            try await run(installer, ["--undo"], on: stage).expect(1, says: "there is nothing to undo")
        }
    }

    @Test func `the installer neither replaces nor removes files that are not its own or were changed`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            _ = try systemctl(stage)
            let installer = try await unpack(stage)
            for name in ["", "/bin", "/lib", "/lib/ringback"] { FileTree.makeDirectory(prefix(stage) + name) }
            let (program, link) = ("\(prefix(stage))/bin/ringback", "\(prefix(stage))/lib/ringback/keyring")
            try stage.write("mine", to: program)
            #expect(unsafe symlink("/bin/true", link) == 0)
            try await run(installer, on: stage).expect(1, says: "nothing was changed", program, link)
            #expect(try await files(in: stage) == [".local/bin/ringback 600", ".local/lib/ringback/keyring 777"])

            FileTree.remove(program)
            FileTree.remove(link)
            #expect(try await run(installer, on: stage).status == 0)
            FileTree.remove(link)
            #expect(unsafe symlink("/bin/true", link) == 0)
            try stage.write("#!/bin/sh\n# mine\n", to: program)
            #expect(try await run(installer, on: stage).status == 1)
            try await run(installer, ["--undo"], on: stage).expect(
                0, says: "left, since it was changed: \(program)", "left, since it was changed: \(link)")
            #expect(FileTree.target(of: link) == "/bin/true")
            #expect(try await files(in: stage) == [".local/bin/ringback 600", ".local/lib/ringback/keyring 777"])
        }
    }

    @Test func `the installer installs nothing from a tarball with a changed file`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let installer = try await unpack(stage)
            try stage.write("x", to: "\(stage.directory)/unpacked/share/man/man1/ringback-relay.1")
            try await run(installer, on: stage).expect(1, says: "nothing was installed")
            #expect(try await files(in: stage).isEmpty)
        }
    }

    @Test func `without systemd the installer says how to start the daemon, the undo which one runs`() async throws {
        try await Stage.play { stage in
            try stage.write("#!/bin/sh\nexit 1\n", to: "\(stage.directory)/bin/systemctl", mode: 0o700)
            let entry = "\(prefix(stage))/share/ringback/ringbackd.desktop"
            try await run(try await unpack(stage), on: stage).expect(
                0, says: "\(prefix(stage))/bin/ringbackd &", "cp \(entry) ~/.config/autostart/")
            #expect(FileTree.text(of: entry)?.contains("exec \(prefix(stage))/bin/ringbackd\"") == true)
            let undo = "\(prefix(stage))/share/ringback/install"
            FileTree.remove("\(prefix(stage))/bin/ringbackd")
            try await stage.run("/bin/cp", ["/bin/sleep", "\(prefix(stage))/bin/ringbackd"], status: 0)
            let running = try stage.start("\(prefix(stage))/bin/ringbackd", ["600"])
            try await run(undo, ["--undo"], on: stage).expect(0, says: "To end it: kill \(running.pid)\n")
            kill(running.pid, SIGTERM)
            _ = try await running.end()
        }
    }

    @Test func `a prefix that is no plain absolute path is refused`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let installer = try await unpack(stage)
            for prefix in ["relative", "/tmp/with space", "/tmp/$HOME"] {
                try await stage.run(installer, ["--prefix", prefix], status: 1, says: prefix)
            }
            try await stage.run(installer, ["--purge"], status: 1, says: "usage: ./install [--undo]")
        }
    }
}
