import RingbackBase
import Testing

/// A provider that has registered the client of an account, and does not know it any more: some keep clients in memory.
@Suite struct `A registered client that its provider forgot` {
    private func clientID(_ stage: Stage) async throws -> String {
        let requests = try await stage.sandbox.log().filter { $0["endpoint"]?.string == "authorize" }
        return try #require(requests.last?["parameters"]?["client_id"]?.string)
    }

    @Test func `a registered client that its provider forgot is replaced by the advised command`() async throws {
        try await Stage.play { stage in
            let scopes = ["--scope", "openid", "--scope", "offline_access"]
            try await stage.sandbox.control(["registered_authentication": "client_secret_basic"])
            let add = ["account", "add", "play", "--issuer", stage.sandbox.origin, "--register"]
            try await stage.run("ringback", add + scopes, status: 0)
            let file = try #require(FileTree.text(of: "\(stage.dropIns)/play.toml"))
            let redirectURI = try #require(file.firstMatch(of: #/redirect_uri = "([^"]+)"/#)?.1)
            let command =
                "ringback account add play --issuer \(stage.sandbox.origin) --register --replace --scope=openid "
                + "--scope=offline_access --redirect-uri=\(redirectURI) --client-authentication=client_secret_basic"
            try await stage.signIn("play")
            let first = try await clientID(stage)
            // It is forgotten between the page and the exchange of the code.
            let flow = try await stage.begin("play", ["switch_subject": true])
            let callback = try await Browser.signIn(at: flow.authorizationURL, as: "alice")
            try await stage.sandbox.control(["forget_clients": [.string(try await clientID(stage))]])
            _ = try await Browser.deliver(callback)
            let ended = try await stage.ended(flow)
            #expect(ended["error"]?["registration"]?["issuer"]?.string == stage.sandbox.origin, "\(ended.text)")
            let refused = try await stage.ringback("refresh", "play", "--force")
            #expect(refused.status != 0 && refused.err.contains("Register the client again."), "\(refused)")
            #expect(refused.err.contains("Run: \(command)\n"), "\(command): \(refused)")
            let doctor = try await stage.ringback("doctor", "play", "--json")
            let checks = try doctor.json["checks"]?.array ?? []
            let client = checks.first { $0["check"] == "client" }
            #expect(doctor.status == 1 && client?["command"]?.string == command, "\(doctor)")

            let words = command.split(separator: " ").dropFirst().map(String.init)
            try await stage.run("ringback", words, status: 0)
            try await stage.signIn("play")
            #expect(try await clientID(stage) != first)
            #expect(try await stage.api("POST", "/v1/accounts/play/refresh", ["force": true]).status == 200)
            // The provider knows the client this time: it is deleted there when it is replaced.
            let second = try await clientID(stage)
            let again = try await stage.run("ringback", words, status: 0)
            #expect(again.err.contains("Deleted its former client \(second) at "), "\(again)")
        }
    }
}
