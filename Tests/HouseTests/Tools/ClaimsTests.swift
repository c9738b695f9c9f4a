import RingbackBase
import Testing

@Suite struct `ringback claims` {
    /// A JSON text of a token's part.
    private static func part(_ text: String) -> String { Base64URL.encode(text.utf8) }

    @Test func `claims prints the payload of the token that ringback token prints, and no part of the token`()
        async throws
    {
        try await Stage.playSignedIn { stage in
            let token = try await stage.ringback("token", "work", "--kind", "id_token", status: 0).out.dropLast()
            let parts = token.split(separator: ".")
            let payload = String(decoding: try #require(Base64URL.decode(parts[1])), as: UTF8.self)
            let claims = try await stage.ringback("claims", "work", "--kind", "id_token", status: 0)
            // In the order of the token, a claim on each line.
            #expect(try claims.json.text == payload && claims.err.isEmpty, "\(claims)")
            #expect(claims.lines.contains("  \"sub\": \"alice\","), "\(claims)")
            #expect(parts.allSatisfy { !claims.out.contains($0) })
            try await stage.ringback("claims", "work", "--kind", "id_token", "--json", status: 0, out: payload + "\n")
            // The sandbox's access tokens are opaque.
            try await stage.ringback(
                "claims", "work", status: 1, out: "", says: "The access token of work", "it is opaque",
                "See: ringback session work, or", ": ringback claims work --kind id_token\n")
            try await stage.ringback(
                "claims", "work", "--kind", "id_token", "--subject", "bob", status: 1, out: "", says: "another user")
        }
    }

    @Test func `claims shows only what a terminal can take, and says why a token has no claims`() async throws {
        let head = Self.part(#"{"alg":"none"}"#)
        let cases: [(token: String, status: Int32, out: String, says: String)] = [
            (
                "\(head).\(Self.part(#"{"exp":1, "a\u009b":[{}, [], "\u001b]0;x\u202e", {"b":[1.5]}]}"#)).", 0,
                """
                {
                  "exp": 1,
                  "a\\u009b": [
                    {},
                    [],
                    "\\u001b]0;x\\u202e",
                    {
                      "b": [
                        1.5
                      ]
                    }
                  ]
                }

                """, ""
            ),
            ("\(head).\(Self.part("{}")).c2ln", 0, "{}\n", ""),
            ("\(head).\(Self.part("[1]")).c2ln", 1, "", "its payload is not a valid JSON object"),
            ("\(head).\(Self.part(#"{"a":1,"a":2}"#)).c2ln", 1, "", "its payload is not a valid JSON object"),
            ("\(head).e30=.c2ln", 1, "", "its payload is not a valid JSON object"),
            ("\(head).a2V5.aXY.Y2lwaGVy.dGFn", 1, "", "only the server that it is for can read its claims"),
            ("0paque", 1, "", "it is opaque"), ("......", 1, "", "it is opaque"),
        ]
        try await Stage.play("", startsDaemon: false) { stage in
            for (index, expected) in cases.enumerated() {
                let socket = "\(stage.directory)/run/\(index).sock"
                // A token that is bound to a key is decoded too.
                let answer: JSON = ["access_token": .string(expected.token), "token_type": "DPoP"]
                let far = try stage.start(
                    "/usr/bin/env",
                    ["python3", "-B", "\(Document.root)/Tests/Programs/hostile_daemon.py", socket, answer.text])
                _ = try await far.line("who listens") { $0 == "listening" }
                let output = try await stage.ringback(
                    "claims", "work", "--socket", socket, status: expected.status, out: expected.out)
                #expect(!output.err.contains(expected.token), "\(output)")
                #expect(expected.says.isEmpty ? output.err.isEmpty : output.err.contains(expected.says), "\(output)")
            }
        }
    }
}
