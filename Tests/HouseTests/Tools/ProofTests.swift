import RingbackBase
import Testing

/// At a provider that wants a new nonce with each proof.
@Suite struct `Programs with a token that is bound to a key` {
    private static let configuration = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]
        dpop = "required"

        """

    private func play(_ test: (Stage) async throws -> Void) async throws {
        try await Stage.play(Self.configuration, startsDaemon: false) { stage in
            try await stage.sandbox.control(["strict": true])
            try await stage.startDaemon()
            try await stage.signIn()
            try await stage.ringback("origin", "add", stage.sandbox.origin, "--account", "work", status: 0)
            try await test(stage)
        }
    }

    private func curl(_ stage: Stage, _ fields: Output) async throws -> Output {
        let lines = fields.lines.flatMap { ["-H", $0] }
        return try await stage.run(
            "/usr/bin/env", ["curl", "-sS", "-i"] + lines + ["\(stage.sandbox.origin)/userinfo"], status: 0)
    }

    @Test func `token --dpop prints the fields of one request`() async throws {
        try await play { stage in
            let url = "\(stage.sandbox.origin)/userinfo?a=b"
            let first = try await stage.ringback("token", "work", "--dpop", "GET", url, status: 0)
            #expect(first.lines.count == 2 && first.lines.first?.hasPrefix("Authorization: DPoP ") == true, "\(first)")
            #expect(first.lines.last?.hasPrefix("DPoP: ey") == true)
            let refused = try await curl(stage, first)
            let field = refused.out.split(whereSeparator: \.isNewline).first {
                $0.lowercased().hasPrefix("dpop-nonce: ")
            }
            let nonce = try #require(field).dropFirst("dpop-nonce: ".count)
            #expect(refused.out.contains(" 401 ") && refused.out.contains("use_dpop_nonce"), "\(refused)")
            let words = ["token", "--dpop", "GET", url, "work", "--nonce", String(nonce)]
            let second = try await stage.run("ringback", words, status: 0)
            let accepted = try await curl(stage, second)
            #expect(accepted.out.contains("alice@example.org"), "\(accepted)")
            // A proof is taken once.
            #expect(try await curl(stage, second).out.contains(" 401 "))
            try await stage.ringback(
                "token", "work", "--dpop", "POST", "\(stage.sandbox.origin)/token", status: 4, out: "", says: "endpoint"
            )
            try await stage.ringback(
                "token", "work", "--dpop", "GET", "https://api.example.org/", status: 4, out: "", says: "no origin")
            for wrong in [["--dpop", "GET"], ["--dpop", "GET", url, "--format", "header"], ["--nonce", "x"]] {
                try await stage.run("ringback", ["token", "work"] + wrong, status: 64, out: "")
            }
        }
    }

    @Test func `programs that send a token alone get none, and are told what to do`() async throws {
        try await play { stage in
            let advice = "ringback token work --dpop METHOD URL"
            for words in [["token", "work"], ["token", "work", "--format", "header"], ["exec", "work", "--", "env"]] {
                let ended = try await stage.run("ringback", words, status: 1, out: "", says: "bound to a key", advice)
                #expect(SecretSearch.tokens(in: Array(ended.err.utf8)) == [], "\(ended)")
            }
            try await stage.ringback("token", "work", "--format", "json", status: 0, prints: "\"DPoP\"")
            try await stage.ringback("token", "work", "--kind", "id_token", status: 0, prints: "ey")
            let server = try WebURL(parsing: stage.sandbox.origin)
            try await stage.ringback(
                "git-credential", "get", stdin: "protocol=http\nhost=\(server.place)\n\n", prints: "quit=1",
                says: "bound to a key", advice)
            try await stage.ringback(
                "kubectl-credential", "--account", "work", "--kind", "access_token", out: "", says: "bound to a key")
            try await stage.ringback("oidc-token", "work", status: 1, out: "", says: "bound to a key")
            let origin = stage.sandbox.origin
            try await stage.ringback("token", "--origin", origin, status: 1, out: "", says: "bound to a key", advice)
        }
    }

    @Test func `exec --relay signs each request, with the server's nonces`() async throws {
        try await play { stage in
            let token = try await stage.token() ?? ""
            let relay = ["exec", "work", "--relay", "API=\(stage.sandbox.origin)", "--", "sh", "-c"]
            let script = """
                curl -sS -i -H 'DPoP: mine' -H 'Authorization: Bearer mine' "$API/userinfo"; echo
                curl -sS -i "$API/userinfo"; echo
                curl -sS -o /dev/null -w '%{http_code}\n' -d grant_type=refresh_token "$API/token"
                """
            let ended = try await stage.run("ringback", relay + [script], status: 0)
            #expect(ended.lines.count { $0.contains("alice@example.org") } == 2, "\(ended)")
            #expect(ended.lines.last == "403", "\(ended)")
            #expect(!ended.out.contains(token) && !ended.out.lowercased().contains("dpop"), "\(ended)")
            let statuses = try await stage.sandbox.log().filter { $0["endpoint"] == "userinfo" }
                .compactMap { $0["status"]?.integer }
            #expect(statuses.suffix(3) == [401, 200, 200], "\(statuses)")
            #expect(try await stage.sandbox.counters()["refreshes"] == 0)
        }
    }
}
