// Every verb that opens a page starts one browser, once: a second tab would bring the authorization response of a flow
// that has ended, and show "No sign-in here".

import Glibc
import Testing

@Suite struct `A page is opened once` {
    /// Who is asked to open it: the program that `BROWSER` names, or `xdg-open` where it is unset.
    enum Opener: String, CaseIterable, Sendable {
        case named = "my-browser"
        case desktop = "xdg-open"
    }

    private func install(_ opener: Opener, on stage: Stage) throws -> [String: String] {
        let program = "\(stage.directory)/bin/\(opener.rawValue)"
        let log = "\(stage.directory)/opened.log"
        try stage.write("", to: log)
        try stage.write(
            "#!/bin/sh\nprintf '%s\\n' \"$1\" >>'\(log)'\nexec curl -sSL -o /dev/null \"$1\"\n", to: program,
            mode: 0o700)
        return opener == .named ? ["BROWSER": program] : ["DISPLAY": ":0"]
    }

    private func opened(_ opener: Opener, atLeast count: Int = 1, on stage: Stage) async throws -> [String] {
        let log = "\(stage.directory)/opened.log"
        // While a process replaces its program, it has no arguments for a moment, and would not be found below.
        try await stage.eventually("\(count) starts") {
            (FileTree.text(of: log) ?? "").split(separator: "\n").count >= count
        }
        // A start returns after exec: an opener that has not written yet is a process with its path as an argument.
        try await stage.eventually("the end of every opener") {
            !FileTree.names(in: "/proc").compactMap { pid_t($0) }.contains { pid in
                Processes.arguments(of: pid)?.contains("\(stage.directory)/bin/\(opener.rawValue)") == true
            }
        }
        let urls = (FileTree.text(of: log) ?? "").split(separator: "\n").map(String.init)
        try stage.write("", to: log)
        return urls
    }

    @Test(arguments: Opener.allCases)
    func `by login, token --sign-in and logout --browser`(opener: Opener) async throws {
        let arguments = ["--user", "alice", "--auto-approve", "alice"]
        try await Stage.play(sandboxArguments: arguments) { stage in
            let environment = try install(opener, on: stage)
            let verbs = [
                ["login", "work"], ["logout", "work", "--browser"], ["token", "work", "--sign-in"],
                ["login", "home", "--json"], ["logout", "home", "--browser", "--hint"],
            ]
            for verb in verbs {
                try await stage.run("ringback", verb, environment: environment, status: 0)
                let urls = try await opened(opener, on: stage)
                #expect(urls.count == 1, "\(verb) opened \(urls)")
                // An argument list gives nothing away: neither a state nor an ID token.
                #expect(urls.allSatisfy { $0.contains("/start/") && !$0.contains("?") }, "\(verb) opened \(urls)")
            }
            _ = try await stage.ringback("logout", "work", "--no-browser", environment: environment)
            #expect(try await opened(opener, atLeast: 0, on: stage) == [])
        }
    }

    @Test(arguments: Opener.allCases)
    func `by login and supabase link at a project`(opener: Opener) async throws {
        try await Stage.playProject { stage in
            let environment = try install(opener, on: stage)
            for verb in [["login", "app", "--with", "github"], ["supabase", "link", "app", "--with", "google"]] {
                try await stage.run("ringback", verb, environment: environment, status: 0)
                let urls = try await opened(opener, on: stage)
                #expect(urls.count == 1, "\(verb) opened \(urls)")
                // An argument list gives nothing away: neither a state nor an ID token.
                #expect(urls.allSatisfy { $0.contains("/start/") && !$0.contains("?") }, "\(verb) opened \(urls)")
            }
        }
    }

    @Test func `by the first program of BROWSER that can be started`() async throws {
        try await Stage.play(sandboxArguments: ["--user", "alice", "--auto-approve", "alice"]) { stage in
            let program = try install(.named, on: stage)["BROWSER"] ?? ""
            let list = "\(stage.directory)/bin/none:\(program):\(program) second"
            try await stage.ringback("login", "work", environment: ["BROWSER": list], status: 0)
            #expect(try await opened(.named, on: stage).count == 1)
        }
    }
}
