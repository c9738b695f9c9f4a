import Glibc
import Testing

@Suite struct `The example app` {
    @Test func `is built again in an empty folder if an older package's remains do not fit`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let (scratch, swift) = ("\(stage.directory)/examples", "\(stage.directory)/bin/swift")
            FileTree.makeDirectory(scratch)
            try stage.write("of an older package", to: "\(scratch)/module")
            // The last argument is the folder.
            let script = """
                #!/bin/sh
                for scratch; do :; done
                echo build >>'\(stage.directory)/builds'
                if [ -e "$scratch/module" ]; then echo 'error: no such module' >&2; exit 1; fi

                """
            try stage.write(script, to: swift, mode: 0o700)
            let app = try await Programs.example("ListenToSessions", in: scratch, by: swift)
            #expect(app == "\(scratch)/debug/ListenToSessions")
            #expect(FileTree.text(of: "\(stage.directory)/builds") == "build\nbuild\n")
            // A mistake in the example itself is no older build's: it fails twice, and is reported.
            try stage.write("#!/bin/sh\necho 'error: a mistake' >&2\nexit 1\n", to: swift, mode: 0o700)
            await #expect(throws: Late.self) {
                _ = try await Programs.example("ListenToSessions", in: scratch, by: swift)
            }
        }
    }

    @Test func `builds by itself, signs in and tells of it`() async throws {
        let app = try await Programs.example("ListenToSessions")
        try await Stage.playReader { stage in
            let (added, name) = (stage.readersEnvironment, "work")
            let add = ["account", "add", name, "--issuer", stage.sandbox.origin, "--client-id", "ringback"]
            try await stage.run("ringback", add, environment: added, status: 0)
            // Line by line: its output goes to a pipe here, and would be held back.
            let program = try stage.start("/usr/bin/stdbuf", ["-oL", app], environment: added)
            let line = try await program.line("the sign-in") { $0.hasPrefix("signed_in") }
            #expect(line == "signed_in alice@example.org")
            try await stage.ringback("refresh", name, "--force", environment: added, status: 0)
            _ = try await program.line("the refresh") { $0 == "token_refreshed alice@example.org" }
        }
    }
}

@Suite struct `The example app with links` {
    @Test func `builds by itself, gets the links of its scheme, and ends when another app listens`() async throws {
        let app = try await Programs.example("OpenLinks")
        try await Stage.play("[schemes.swisscoin]\ncommand = [\"{stage}/bin/app\"]\n") { stage in
            // The app is what the configuration starts: it is told of the link that it was started for.
            let script = "#!/bin/sh\nRINGBACK_SOCK='\(stage.socket)' exec /usr/bin/stdbuf -oL '\(app)' "
            try stage.write(
                script + ">>'\(stage.directory)/said' 2>&1 </dev/null\n", to: "\(stage.directory)/bin/app", mode: 0o700)
            func said() -> [String] {
                (FileTree.text(of: "\(stage.directory)/said") ?? "").split(separator: "\n").map(String.init)
            }
            try await stage.ringback("open", "swisscoin://pay/7", status: 0)
            try await stage.eventually("the first link") { said() == ["open swisscoin://pay/7"] }
            try await stage.ringback("open", "swisscoin://pay/8", status: 0)
            try await stage.eventually("the second link") { said().last == "open swisscoin://pay/8" }
            // What it acknowledged is nobody else's; the newest listener gets what comes.
            let other = try stage.start("ringback", ["links", "swisscoin"])
            try await stage.eventually("its end") { said().last == "another program listens now" }
            try await stage.ringback("open", "swisscoin://pay/9", status: 0)
            _ = try await other.line("the third link") { $0 == "swisscoin://pay/9" }
            #expect(other.output.value.lines.count == 1 && said().count == 3)
        }
    }
}
