import Foundation
import Glibc
import Testing

@Suite struct `The example app of a project` {
    @Test(arguments: [["python3", "Examples/python/profile.py"], ["node", "Examples/node/profile.mjs"]])
    func `shows who is signed in and their row, follows what happens, and signs out`(command: [String]) async throws {
        try await walk("/usr/bin/env", [command[0], "\(Document.root)/\(command[1])", "app"])
    }

    @Test func `does the same in Swift`() async throws {
        // Line by line: its output goes to a pipe here, and would be held back.
        try await walk("/usr/bin/stdbuf", ["-oL", try await Programs.example("SupabaseProfile"), "app"])
    }

    /// In the browser, which is a program that follows the page by itself; then nobody is signed in again.
    private func signIn(
        _ stage: Stage, _ program: String, _ arguments: [String], _ environment: [String: String]
    ) async throws {
        try stage.write(
            "#!/bin/sh\nprintf %s \"$1\" >'\(stage.directory)/opened'\nexec curl -sSL -o /dev/null \"$1\"\n",
            to: "\(stage.directory)/bin/xdg-open", mode: 0o700)
        var environment = environment
        environment["PATH"] = "\(stage.directory)/bin:" + (environment["PATH"] ?? "")
        environment["BROWSER"] = "xdg-open"
        let app = try await stage.run(program, arguments + ["sign-in", "github"], environment: environment, status: 0)
        #expect(app.out.hasPrefix("signed in: alice@example.org\nprofile: "), "\(app)")
        // All users can read a program's arguments, so the address has no state.
        let opened = FileTree.text(of: "\(stage.directory)/opened") ?? ""
        #expect(opened.hasPrefix("http://127.0.0.1:") && opened.contains("/start/"), "\(opened)")
        try await stage.ringback("logout", "app", status: 0)
    }

    @Test func `no example and no client starts a program with authorization_url`() throws {
        let starts = [
            "webbrowser", "spawn(", "exec(", "execFile(", "xdg-open", "Browser.open", "open_page(", "subprocess",
            "Popen(",
            "Process(", "os.system",
        ]
        let ends = [".py", ".mjs", ".js", ".ts", ".swift", ".md"]
        let files = try ["Examples", "Clients"].flatMap { folder in
            try FileManager.default.subpathsOfDirectory(atPath: SourceTree.folder(folder).path())
                .filter { name in !name.contains(".build/") && ends.contains { name.hasSuffix($0) } }
                .map { "\(folder)/\($0)" }
        }
        #expect(files.count > 10)
        for file in files {
            for line in try Document(path: file).lines where starts.contains(where: line.contains) {
                // What is shown where nothing could be opened comes after the call.
                let call = line.split(separator: ",").first ?? ""
                #expect(!call.contains("authorization_url") && !call.contains("authorizationURL"), "\(file): \(line)")
            }
        }
    }

    @Test(arguments: [["python3", "Examples/python/profile.py"], ["node", "Examples/node/profile.mjs"]])
    func `ends with an error where there is no such account, and when the daemon goes`(command: [String]) async throws {
        try await Stage.playProject { stage in
            let environment = [
                "RINGBACK_SOCK": stage.socket, "PATH": Programs.variable("PATH") ?? "/usr/bin:/bin",
                "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "\(Document.root)/Clients/python/src",
            ]
            let program = [command[0], "\(Document.root)/\(command[1])"]
            try await stage.run(
                "/usr/bin/env", program + ["nobody"], environment: environment, status: 1, out: "", says: "nobody")
            let app = try stage.start("/usr/bin/env", program + ["app"], environment: environment)
            _ = try await app.line("the start") { $0 == "nobody is signed in" }
            try await stage.stopDaemon()
            let ended = try await app.end()
            #expect(ended.status == 1, "\(ended)")
        }
    }

    @Test func `in Swift shows why there is no such account, as the library's comment says`() async throws {
        let app = try await Programs.example("SupabaseProfile")
        try await Stage.playProject { stage in
            let nobody = try await stage.run(
                app, ["nobody", "sign-in", "github"],
                environment: [
                    "RINGBACK_SOCK": stage.socket, "PROJECT_URL": "\(stage.sandbox.origin)/supabase",
                    "PROJECT_KEY": "sb_publishable_sandbox",
                ], status: 1, out: "")
            #expect(nobody.err == "There is no account “nobody”.\n", "\(nobody)")
        }
        // What was compiled is what the comment shows.
        let file = try Document(path: "Examples/SupabaseProfile/Sources/SupabaseProfile/LocalizedRingbackError.swift")
        let recipe = try #require(file.text.split(separator: "\n\n").last)
        let comment = recipe.split(separator: "\n").map { "/// \($0)" }.joined(separator: "\n")
        let library = try Document(path: "Sources/Socket/RingbackClient/RingbackError.swift")
        #expect(library.text.contains("/// ```swift\n\(comment)\n/// ```\n"))
    }

    @Test func `in JavaScript names the page where nothing can open it`() async throws {
        try await Stage.playProject { stage in
            let node = String(try await stage.run("/bin/sh", ["-c", "command -v node"]).out.prefix { $0 != "\n" })
            let environment = [
                "RINGBACK_SOCK": stage.socket, "PROJECT_URL": "\(stage.sandbox.origin)/supabase",
                "PROJECT_KEY": "sb_publishable_sandbox", "PATH": "\(stage.directory)/nothing",
            ]
            let app = try stage.start(
                node, ["\(Document.root)/Examples/node/profile.mjs", "app", "sign-in", "github"],
                environment: environment)
            let line = try await app.errorLine("the address") { $0.hasPrefix("Open: ") }
            _ = try await stage.run("/usr/bin/curl", ["-sSL", "-o", "/dev/null", String(line.dropFirst(6))])
            let ended = try await app.end().expect(0)
            #expect(ended.out.hasPrefix("signed in: alice@example.org\n"), "\(ended)")
        }
    }

    private func walk(_ program: String, _ arguments: [String]) async throws {
        try await Stage.playProject { stage in
            let environment = [
                "RINGBACK_SOCK": stage.socket, "PROJECT_URL": "\(stage.sandbox.origin)/supabase",
                "PROJECT_KEY": "sb_publishable_sandbox", "PATH": Programs.variable("PATH") ?? "/usr/bin:/bin",
                "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "\(Document.root)/Clients/python/src",
            ]
            try await signIn(stage, program, arguments, environment)
            let app = try stage.start(program, arguments, environment: environment)
            _ = try await app.line("the start") { $0 == "nobody is signed in" }
            try await stage.signUp()
            _ = try await app.line("the person") { $0 == "signed in: mira@example.org" }
            let row = try await app.line("the row") { $0.hasPrefix("profile: ") }
            #expect(row.contains("mira@example.org"))
            try await stage.run(
                program, arguments + ["sign-out"], environment: environment, status: 0, out: "nobody is signed in\n")
            let ended = try await app.end().expect(0)
            #expect(ended.out.hasSuffix("nobody is signed in\n"), "\(ended)")
        }
    }
}
