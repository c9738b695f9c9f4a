import RingbackBase
import Testing

@Suite struct `oidc-token` {
    /// The values of a token's facts as words, so that outputs of two programs can be compared.
    private func form(_ output: Output, of facts: [String]) -> String {
        zip(["EXP", "ISS", "AT"], facts).reduce("\(output.status)\n" + output.out) { $0.replacing($1.1, with: $1.0) }
    }

    @Test func `oidc-token prints a token by account and issuer`() async throws {
        try await Stage.playSignedIn { stage in
            let token = try #require(try await stage.token())
            try await stage.ringback("oidc-token", "work", status: 0)
            let audit = try await stage.ringback("audit", "--account", "work")
            #expect(audit.out.contains("issued_token") && audit.out.contains("operation=token"), "\(audit)")
            stage.link(ringbackAs: "oidc-token")
            for (program, first) in [("ringback", ["oidc-token"]), ("\(stage.directory)/bin/oidc-token", [])] {
                for words in [["work"], ["-t", "30", "work"], [stage.sandbox.origin], ["\(stage.sandbox.origin)/"]] {
                    let output = try await stage.run(program, first + words, status: 0, out: token + "\n")
                    #expect(output.err.isEmpty, "\(output)")
                }
            }
            let shell = try await stage.run(
                "/bin/sh",
                ["-c", "eval `oidc-token -c work`; printenv OIDC_AT OIDC_ISS; oidc-token --scope=email work"], status: 0
            )
            #expect(shell.lines.prefix(2) == [token[...], stage.sandbox.origin[...]].map(String.init)[...], "\(shell)")
            #expect(shell.lines.count == 3 && shell.lines.last != token, "\(shell)")
            let forced = try await stage.ringback("oidc-token", "-f", "work", status: 0)
            #expect(forced.out != token + "\n", "\(forced)")
            let identity = try await stage.ringback("oidc-token", "--id-token", "work", status: 0)
            #expect(identity.out.split(separator: ".").count == 3, "\(identity)")

            for (words, status) in [
                (["home"], 1), (["nobody"], 1), (["Not A Name"], 1), ([], 64), (["work", "home"], 64),
                (["-z", "work"], 64), (["-oX;id", "work"], 64),
            ] {
                let failed = try await stage.run("ringback", ["oidc-token"] + words, status: Int32(status), out: "")
                #expect(!failed.err.isEmpty, "\(failed)")
            }
        }
    }

    @Test(.enabled(if: ForeignAgent.isInstalled))
    func `oidc-token prints what oidc-agent's program prints`() async throws {
        try await Stage.play { stage in
            let agent = try await ForeignAgent(on: stage)
            defer { agent.stop() }
            try await stage.sandbox.control(["clients": [["id": "ringback-demo"]]])
            try await stage.signIn()
            let real = { (words: [String]) in
                try await stage.run("/usr/bin/oidc-token", words + ["mine"], environment: agent.environment)
            }
            let ours = { (words: [String]) in try await stage.run("ringback", ["oidc-token"] + words + ["work"]) }
            let theirFacts = Array(try await real(["-a"]).lines.reversed())
            let facts = Array(try await ours(["-a"]).lines.reversed())
            #expect(theirFacts.count == 3 && facts.count == 3, "\(theirFacts), \(facts)")
            for words in [
                [], ["-o"], ["-i"], ["-e"], ["-a"], ["-c"], ["-oie"], ["-eX"], ["-iX", "-e"], ["--issuer=ISSUER"],
                ["--token=T", "--expires-at"], ["-o", "-e", "-i"], ["--tim=5"], ["-z"], ["--time=abc"], ["extra"],
                ["--nothing"], ["-c", "-a"],
            ] {
                let theirs = try await real(words)
                let output = try await ours(words)
                #expect(form(output, of: facts) == form(theirs, of: theirFacts), "\(words): \(output), \(theirs)")
            }
        }
    }
}
