import RingbackBase
import Testing

@Suite struct `A client that the provider is asked about` {
    struct Client: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let lines: String
        let level: String
        let words: String

        static let all = [
            Client(
                testDescription: "a public client", lines: "client_id = \"ringback-demo\"", level: "ok",
                words: "knows this client."),
            Client(
                testDescription: "a wrong client id", lines: "client_id = \"mistyped\"", level: "wrong",
                words: "rejects this client: client_id is wrong."),
            Client(
                testDescription: "a wrong secret",
                lines: "client_id = \"web client\"\nclient_secret = \"canary-of-a-wrong-secret\"", level: "wrong",
                words: "rejects this client: client_id, client_authentication or the client's secret is wrong."),
        ]
        static let right = "canary-of-the-secret"
    }

    @Test(arguments: Client.all)
    func `doctor checks a client by one token request`(client: Client) async throws {
        let configuration = "[accounts.work]\nissuer = \"{sandbox}\"\n\(client.lines)\n"
        try await Stage.play(configuration, sandboxArguments: ["--client", "web client:\(Client.right)"]) { stage in
            let output = try await stage.ringback("doctor", "work", "--json", environment: ["DISPLAY": ":99"])
            let checks = try output.json["checks"]?.array ?? []
            let line = try #require(checks.first { $0["check"] == "client" }, "\(output)")
            #expect(line["level"]?.string == client.level && line["account"] == "work", "\(output)")
            #expect(line["message"]?.string?.hasSuffix(client.words) == true, "\(output)")
            let isWrong = client.level == "wrong"
            #expect(output.status == (isWrong ? 1 : 0), "\(output)")
            #expect(line["command"]?.string == (isWrong ? "ringback account edit work" : nil), "\(output)")
            #expect(checks.filter { $0["level"] == "wrong" }.count == (isWrong ? 1 : 0), "\(output)")
            #expect(!output.out.contains("canary") && !output.err.contains("canary"), "\(output)")
            let counters = try await stage.sandbox.counters()
            #expect(counters.requests("discovery") == 1 && counters.requests("token") == 1, "\(counters)")
            #expect(counters.tokenRequests("authorization_code") == 1, "\(counters)")
            // What is sent is what the documents say: a random code and verifier, and nothing of a user.
            let sent = try #require(try await stage.sandbox.log().last { $0["endpoint"] == "token" }?["parameters"])
            let names = Set(sent.object?.members.map(\.name) ?? []).subtracting(["client_id"])
            #expect(names == ["grant_type", "code", "code_verifier", "redirect_uri"], "\(sent.text)")
        }
    }

    @Test func `account add checks a client's secret by two more requests`() async throws {
        try await Stage.play(sandboxArguments: ["--client", "web client:\(Client.right)"]) { stage in
            let add = ["account", "add", "play", "--issuer", stage.sandbox.origin, "--client-id"]
            try await stage.run(
                "ringback", add + ["mistyped"], status: 78, says: "is wrong. Look at --client-id.")
            #expect(FileTree.names(in: stage.dropIns) == [])
            var counters = try await stage.sandbox.counters()
            #expect(counters.requests("discovery") == 1 && counters.requests("token") == 1, "\(counters)")
            let asked = try await stage.sandbox.log().last { $0["endpoint"] == "token" }?["parameters"]?["client_id"]
            #expect(asked == "mistyped")
            try stage.write(Client.right + "\n", to: "\(stage.directory)/secret")
            let secret = ["--client-secret-file", "\(stage.directory)/secret"]
            try await stage.run("ringback", add + ["web client"] + secret, status: 0)
            counters = try await stage.sandbox.counters()
            // The secret, and one that is certainly wrong: else a provider that does not look at it would be believed.
            #expect(counters.requests("discovery") == 2 && counters.requests("token") == 3, "\(counters)")
            try stage.write("canary-of-a-wrong-secret\n", to: "\(stage.directory)/secret")
            try await stage.run(
                "ringback", ["account", "add", "other"] + add.dropFirst(3) + ["web client"] + secret, status: 78,
                says: "the client's secret is wrong")
            #expect(FileTree.names(in: stage.dropIns) == ["play.toml"])
            try await stage.ringback(
                "account", "add", "known", "--issuer", stage.sandbox.origin, "--client-id", "ringback-demo", status: 0)
            #expect(try await stage.sandbox.counters().requests("token") == 5)
        }
    }
}
