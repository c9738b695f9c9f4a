import Glibc
import RingbackBase
import Testing

/// Collects everything that could be read by somebody who must not know a secret, with a name for each place.
private final class Haystack {
    private(set) var places: [(name: String, text: String)] = []

    func add(_ name: String, _ text: String?) {
        if let text { places.append((name, text)) }
    }

    func add(_ name: String, _ program: Program) {
        add("\(name)'s output", program.output.value.text)
        add("\(name)'s errors", program.errors.value.text)
    }

    func addProcesses(below pid: pid_t, _ name: String) {
        for pid in [pid] + Processes.descendants(of: pid) {
            add("\(name) (\(pid)): arguments", Processes.arguments(of: pid))
            add("\(name) (\(pid)): environment", Processes.environment(of: pid))
        }
    }

    func addFiles(in directory: String, except: Set<String> = []) {
        for name in FileTree.names(in: directory) where !except.contains(name) {
            let path = "\(directory)/\(name)"
            add("the name of \(path)", name)
            var status = stat()
            guard unsafe lstat(path, &status) == 0 else { continue }
            switch status.st_mode & S_IFMT {
            case S_IFDIR: addFiles(in: path, except: except)
            case S_IFREG: add(path, FileTree.text(of: path))
            default: break
            }
        }
    }

    /// - Parameter prefixes: what the sandbox's values begin with.
    func expect(
        without secrets: Set<String>, prefixes: [String], except isAllowed: (String) -> Bool = { _ in false },
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        for (name, text) in places where !isAllowed(name) {
            for secret in secrets {
                #expect(!text.contains(secret), "\(secret) in \(name): \(text)", sourceLocation: sourceLocation)
            }
            for prefix in prefixes {
                #expect(
                    !Haystack.hasValue(prefix, in: text), "\(prefix) in \(name): \(text)",
                    sourceLocation: sourceLocation)
            }
        }
    }

    /// True if a value begins so. Behind a character of base64url it is within a random text, such as a code challenge,
    /// which has three given characters by chance now and then.
    static func hasValue(_ prefix: String, in text: String) -> Bool {
        text.ranges(of: prefix).contains { range in
            guard range.lowerBound > text.startIndex else { return true }
            let before = text[text.index(before: range.lowerBound)]
            return !(before.isASCII && (before.isLetter || before.isNumber || before == "-" || before == "_"))
        }
    }
}

@Suite struct `A secret` {
    private let configuration = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "file-client"
        client_secret_file = "{stage}/secrets/file"
        scopes = ["openid", "email", "offline_access"]

        [accounts.home]
        issuer = "{sandbox}/tenant-a"
        client_id = "command-client"
        client_secret_command = ["{stage}/bin/secret"]
        client_authentication = "client_secret_post"
        scopes = ["openid", "email", "offline_access"]

        """
    private let fileSecret = "CANARY-of-the-file"
    private let commandSecret = "CANARY-of-the-command"

    /// SK-21, SK-29, ADV-22.
    @Test func `no secret is in a log, an argument list, an environment or a plain file`() async throws {
        try await Stage.play(configuration, startsDaemon: false) { stage in
            try await prepare(stage)
            let daemon = try await stage.startDaemon(["--log-level", "trace"])
            let haystack = Haystack()
            let events = try stage.start("ringback", ["events"])
            _ = try await events.line("the first event")
            for account in ["work", "home"] { try await live(account, stage, haystack) }
            try await fail(stage, haystack)
            haystack.addProcesses(below: daemon.pid, "ringbackd")
            haystack.addProcesses(below: events.pid, "ringback events")
            try await stage.stopDaemon()
            _ = try await events.end()
            haystack.add("ringbackd", daemon)
            haystack.add("ringback events", events)
            haystack.addFiles(in: stage.directory, except: ["secrets"])

            let log = try await stage.sandbox.log() + stage.sandbox.log(issuer: "/tenant-a")
            let (secrets, tokens) = try secrets(in: log)
            #expect(secrets.count >= 18 && tokens.count >= 2, "\(secrets)")
            haystack.expect(without: secrets.union(["CANARY-"]), prefixes: ["rt-", "code-"])
            // An access token is where it was asked for, and nowhere else.
            haystack.expect(without: tokens, prefixes: ["at-"]) { $0.hasPrefix("ringback token") }
            #expect(haystack.places.contains { $0.name.hasPrefix("ringback token") && $0.text.contains("at-") })
            // The log was as talkative as it can be, and the command was seen at its work.
            for name in ["the command's environment", "its parent's arguments"] {
                #expect(haystack.places.contains { $0.name.hasSuffix(name) }, "\(haystack.places.map(\.name))")
            }
        }
    }

    @Test(arguments: ["rt-1", "Bearer rt-1", "?token=rt-1&x", "\"rt-1\"", "\nrt-1"])
    func `a value is told from a random text with the same letters`(text: String) {
        #expect(Haystack.hasValue("rt-", in: text))
        #expect(!Haystack.hasValue("rt-", in: "code_challenge=EXFwrt-M and a_rt-b"))
    }

    private func prepare(_ stage: Stage) async throws {
        let secrets = "\(stage.directory)/secrets"
        FileTree.makeDirectory(secrets)
        try stage.write(fileSecret, to: "\(secrets)/file")
        try stage.write(commandSecret, to: "\(secrets)/command")
        // While it works, the command tells how it and the helper, its parent, look to others.
        let command = """
            #!/bin/sh
            cd '\(stage.directory)'
            { cat /proc/self/environ; echo; } >>"the command's environment"
            { cat /proc/$$/cmdline; echo; } >>"the command's arguments"
            { cat /proc/$PPID/cmdline; echo; } >>"its parent's arguments"
            { cat /proc/$PPID/environ; echo; } >>"its parent's environment" 2>/dev/null
            cat secrets/command

            """
        try stage.write(command, to: "\(stage.directory)/bin/secret", mode: 0o700)
        let file: JSON = ["id": "file-client", "secret": .string(fileSecret)]
        let other: JSON = ["id": "command-client", "secret": .string(commandSecret)]
        try await stage.sandbox.control(["clients": [file]])
        try await stage.sandbox.control(["clients": [other]], issuer: "/tenant-a")
    }

    /// A session's life, each step by the command line.
    private func live(_ account: String, _ stage: Stage, _ haystack: Haystack) async throws {
        let login = try stage.start("ringback", ["login", account, "--no-browser"])
        let url = try await login.line()
        haystack.addProcesses(below: login.pid, "ringback login")
        let callback = try await Browser.signIn(at: url)
        let answers = try await Browser.deliver(callback)
        haystack.add("the answer to the browser", "\(answers)")
        #expect(try await login.end().status == 0)
        haystack.add("ringback login", login)
        for verb in [
            ["token", account], ["session", account], ["accounts"], ["accounts", "--json"], ["status"],
            ["refresh", account], ["status", "--json"], ["token", account, "--format", "json"],
            ["complete", callback.text],
            ["config", "check"], ["reload"],
        ] {
            let ended = try await stage.run("ringback", verb)
            haystack.add("ringback \(verb[0])'s output", ended.out)
            // A callback that comes twice was typed by the person; it is not repeated to them.
            haystack.add("ringback \(verb[0])'s errors", ended.err)
        }
        for path in ["accounts/\(account)", "flows", "status", "peer", "accounts/\(account)/session?include=user"] {
            let answer = try await stage.api("GET", "/v1/\(path)")
            let isToken = path.contains("session")
            haystack.add(isToken ? "ringback token by the API" : "/v1/\(path)", answer.description)
        }
        let logout = try await stage.ringback("logout", account, status: 0)
        haystack.add("ringback logout", logout.description)
    }

    /// What goes wrong is told without secrets too.
    private func fail(_ stage: Stage, _ haystack: Haystack) async throws {
        let faults: [JSON] = [
            ["endpoint": "token", "kind": "error", "error": "invalid_grant", "count": 1],
            ["endpoint": "token", "kind": "invalid_json", "count": 1],
            ["endpoint": "token", "kind": "html", "count": 1],
            ["endpoint": "token", "kind": "duplicate_members", "count": 1],
            ["endpoint": "token", "kind": "truncated", "count": 1],
            ["endpoint": "token", "kind": "redirect", "to": "http://127.0.0.1:9/", "count": 1],
        ]
        for fault in faults {
            try await stage.sandbox.control(["faults": [fault]])
            let login = try stage.start("ringback", ["login", "work", "--no-browser"])
            let callback = try await Browser.signIn(at: try await login.line())
            #expect(try await Browser.deliver(callback).answer.location == "/failed")
            #expect(try await login.end().status != 0)
            haystack.add("ringback login", login)
            haystack.add("the failed account", try await stage.account().text)
        }
        let wrong = try await stage.begin()
        let genuine = try await Browser.signIn(at: wrong.authorizationURL)
        for url in [genuine.text + "&state=x", genuine.text.replacing("127.0.0.1", with: "localhost")] {
            haystack.add("ringback open", try await stage.ringback("open", url).description)
            haystack.add("/v1/callbacks", try await stage.api("POST", "/v1/callbacks", ["url": .string(url)]).text)
        }
        let denied = try genuine.setting("code", to: nil).setting("error", to: "access_denied")
        _ = try await Browser.deliver(denied)
    }

    /// What the provider has seen and given: each of it by its own value, beside the beginnings that all share.
    private func secrets(in log: [JSON]) throws -> (secrets: Set<String>, tokens: Set<String>) {
        var secrets: Set<String> = []
        var tokens: Set<String> = []
        for request in log {
            for name in ["code", "code_verifier", "refresh_token", "client_secret"] {
                if let value = request["parameters"]?[name]?.string { secrets.insert(value) }
            }
            if let value = request["parameters"]?["token"]?.string {
                if value.hasPrefix("at-") { tokens.insert(value) } else { secrets.insert(value) }
            }
            let authorization = request["headers"]?["authorization"]?.string?.split(separator: " ") ?? []
            if authorization.first == "Basic" { secrets.insert(String(authorization[1])) }
        }
        return (secrets, tokens)
    }
}
