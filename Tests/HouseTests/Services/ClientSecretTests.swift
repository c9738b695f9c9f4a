import RingbackBase
import Testing

/// Where a client's secret is, and how it is sent.
private struct Way: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let lines: String
    let sends: String

    static let all = [
        Way(testDescription: "in a file", lines: "client_secret_file = \"{stage}/secret\"", sends: "basic"),
        Way(
            testDescription: "by a command, by post",
            lines: "client_secret_command = [\"{stage}/bin/secret\"]\nclient_authentication = \"client_secret_post\"",
            sends: "post"),
    ]
    /// Everything that form encoding and Basic's colon could break.
    static let secret = "s3:cr t+%41&=?é/~"
}

@Suite struct `A client's secret` {
    private func configuration(_ lines: String) -> String {
        "[accounts.work]\nissuer = \"{sandbox}\"\nclient_id = \"web client\"\n\(lines)\n"
    }

    /// A client that must prove itself, whose secret is in a file and printed by a program.
    private func play(_ lines: String, _ test: (Stage) async throws -> Void) async throws {
        let client = ["--client", "web client:\(Way.secret)"]
        try await Stage.play(configuration(lines), sandboxArguments: client, startsDaemon: false) { stage in
            try stage.write(Way.secret + "\n", to: "\(stage.directory)/secret")
            try stage.write(
                "#!/bin/sh\ncat '\(stage.directory)/secret'\n", to: "\(stage.directory)/bin/secret", mode: 0o700)
            try await stage.startDaemon()
            try await test(stage)
        }
    }

    @Test(arguments: Way.all)
    private func `REV-01, RT-01: a client secret is sent at exchange, refresh and revocation`(way: Way) async throws {
        try await play(way.lines) { stage in
            try await stage.signIn()
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
            #expect(try await stage.api("DELETE", "/v1/accounts/work/session").status == 200)
            try await stage.sandbox.wait("revocation", count: 2, what: "seen")
            let requests = try await stage.sandbox.log().filter {
                ["token", "revocation"].contains($0["endpoint"]?.string ?? "")
            }
            #expect(requests.count == 4, "\(requests)")
            for request in requests {
                let isBasic = request["headers"]?["authorization"]?.string?.hasPrefix("Basic ") == true
                let posted = request["parameters"]?["client_secret"]?.string
                #expect(isBasic == (way.sends == "basic"), "\(request.text)")
                #expect(posted == (way.sends == "post" ? Way.secret : nil), "\(request.text)")
                #expect(request["status"]?.integer == 200, "\(request.text)")
            }
        }
    }

    @Test func `a client secret that was replaced on disk is used at once`() async throws {
        try await play("client_secret_file = \"{stage}/secret\"") { stage in
            try await stage.signIn()
            try await stage.sandbox.control(["clients": [["id": "web client", "secret": "newer"]]])
            let refused = try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true], status: 422)
            #expect(refused["provider_code"]?.string == "invalid_client", "\(refused)")
            #expect(try await stage.account()["state"]?.string == "authenticated")
            try stage.write("newer", to: "\(stage.directory)/secret")
            #expect(try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true]).status == 200)
        }
    }

    @Test func `a client_secret_command that fails is named before a browser opens, without its output`() async throws {
        try await play("client_secret_command = [\"{stage}/bin/fails\"]") { stage in
            try stage.write(
                "#!/bin/sh\necho CANARY-out; echo CANARY-err >&2; exit 3\n", to: "\(stage.directory)/bin/fails",
                mode: 0o700)
            let (browser, _) = try stage.recordingBrowser()
            let login = try await stage.ringback(
                "login", "work", environment: ["BROWSER": browser], status: 78, out: "",
                says: "client_secret_command exited with status 3", "work")
            #expect(!login.err.contains("CANARY"), "\(login)")
            let answer = try await stage.api(
                "POST", "/v1/accounts/work/sign-in", status: 400, code: "invalid_configuration")
            #expect(answer["recovery"]?.string == "fix_configuration")
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array == [])
            #expect(try await stage.api("GET", "/v1/status")["listeners"]?.array == [])
            #expect(try await stage.sandbox.counters().requests("authorize") == 0)
        }
    }

    @Test func `an unusable client secret file is the account's error until it is mended`() async throws {
        try await play("client_secret_file = \"{stage}/secret\"") { stage in
            try await stage.signIn()
            let file = "\(stage.directory)/secret"
            FileTree.remove(file)
            let refused = try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true], status: 400)
            #expect(refused["setting"] == "client_secret_file", "\(refused)")
            for _ in 0..<2 {
                #expect(try await stage.account()["error"]?["code"] == "invalid_configuration")
                #expect(try await stage.ringback("accounts").out.contains("does not exist"))
            }
            // Nothing is asked of the provider, and no reload is needed.
            let asked = try await stage.sandbox.counters().requests("token")
            try stage.write(Way.secret, to: file)
            let accounts = try await stage.ringback("accounts", status: 0)
            #expect(!accounts.out.contains("does not exist"), "\(accounts)")
            #expect(try await stage.account()["error"] == nil)
            #expect(try await stage.sandbox.counters().requests("token") == asked)
            try await stage.ringback("refresh", "work", "--force", status: 0)
        }
    }
}
