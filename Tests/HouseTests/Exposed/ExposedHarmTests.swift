import Cryptography
import RingbackBase
import TestSupport
import Testing

@Suite struct `A program behind an exposed socket` {
    private static let url = "https://git.example.org/team/x"
    private static let accounts = """
        [accounts.mail]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]

        [[origin]]
        url = "https://git.example.org/*"
        account = "mail"

        """

    private func exposed(_ stage: Stage) -> String { "\(stage.directory)/run/ringback/exposed/ci.sock" }

    private static func play(_ test: (Stage) async throws -> Void) async throws {
        try await Stage.play(accounts) { stage in
            try await stage.signIn("mail")
            try await stage.ringback("expose", "ci", "--account", "mail", "--scope", "openid", status: 0)
            try await test(stage)
        }
    }

    /// What a tool sends to the server: the token. With `refused`, tells that the server refused that token.
    private func lookup(_ connection: Connection, refused: String? = nil) async throws -> String {
        var body: JSON = ["url": .string(Self.url)]
        if let refused { body = ["url": .string(Self.url), "rejected_sha256": .string(Self.digest(refused))] }
        await connection.send(Stage.request("POST", "/v1/lookup", body.text))
        let answer = try await connection.answer()
        #expect(answer.status == 200, "\(answer)")
        return answer["secret"]?.string ?? ""
    }

    private static func digest(_ token: String) -> String { Digest.hex(Digest.sha256(token)) }

    @Test func `cannot make the owner's rejection of a token forgotten`() async throws {
        try await Self.play { stage in
            let owner = try stage.connect()
            let program = try Connection(to: .unix(exposed(stage)))
            let first = try await lookup(owner)
            _ = try await lookup(owner, refused: first)
            // The program's token has fewer scopes: it is another one, for the same origin.
            let downscoped = try await lookup(program)
            #expect(!downscoped.isEmpty && downscoped != first)
            let second = try await lookup(owner)
            #expect(!second.isEmpty && second != first)
            // The program's own rejections have the effect that they have for the owner, and none on the owner's token.
            _ = try await lookup(program, refused: downscoped)
            #expect(try await lookup(owner) == second)
            let renewed = try await lookup(program)
            #expect(!renewed.isEmpty && renewed != downscoped)
            // A token that the program was not given is not for it to refuse.
            _ = try await lookup(program, refused: second)
            #expect(try await lookup(program) == renewed)
        }
    }

    /// The server's rejection makes the next lookup refresh the token, which costs the owner's provider a request.
    @Test func `cannot cause more requests to the provider by rejections than by anything else`() async throws {
        try await Self.play { stage in
            try await stage.ringback("expose", "more", "--account", "mail", "--scope", "openid email", status: 0)
            let program = try Connection(to: .unix("\(stage.directory)/run/ringback/exposed/more.sock"))
            let first = try await lookup(program)
            _ = try await lookup(program, refused: first)
            // What one socket may cause in a minute is used up by requests that are refused.
            try await stage.sandbox.control([
                "faults": [["endpoint": "token", "kind": "error", "error": "invalid_scope"]]
            ])
            for _ in 0..<40 {
                await program.send(Stage.request("GET", "/v1/accounts/mail/session?scope=email"))
                _ = try await program.answer()
            }
            try await stage.sandbox.control(["clear": true])
            let before = try await stage.sandbox.counters().requests("token")
            // The sign-in, and what one socket may cause in a minute; after a downscoped token the session may be refreshed.
            #expect((31...32).contains(before), "\(before)")
            let body: JSON = ["url": .string(Self.url)]
            await program.send(Stage.request("POST", "/v1/lookup", body.text))
            let answer = try await program.answer()
            #expect(answer.status == 429 && answer.code == "rate_limited", "\(answer)")
            #expect(try await stage.sandbox.counters().requests("token") == before)
            // The owner has no such limit.
            #expect(try await stage.api("POST", "/v1/accounts/mail/refresh", ["force": true]).status == 200)
        }
    }

    /// 16,000 requests of all kinds that the socket serves and denies, each with another name of the tool: more lines
    /// than all files of the log hold, if each request were one.
    @Test func `cannot push the owner's entries out of the audit log`() async throws {
        try await Self.play { stage in
            _ = try await stage.token("mail")
            let before = try await entries(stage)
            #expect(before.contains { $0["event"] == "issued_token" } && before.contains { $0["event"] == "signed_in" })
            let issued = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<4 { group.addTask { try await flood(stage, 4_000, number) } }
                return try await group.reduce(0, +)
            }
            #expect(issued >= 8_000)
            let after = try await entries(stage)
            for entry in before { #expect(after.contains(entry), "\(entry)") }
            let exposed = after.filter { $0["exposed_socket"] == "ci" && $0["event"] == "issued_token" }
            #expect(exposed.count <= 200 && exposed.contains { $0["aggregated"] == true }, "\(exposed.count)")
            #expect(exposed.compactMap { $0["count"]?.integer }.reduce(0, +) == issued)
            // Nothing of all that is in the owner's file, and the socket's has its own small share.
            let audit = FileTree.all(in: stage.state).filter { $0.contains("/audit") }
            #expect(audit.contains { $0.hasSuffix("/audit-ci.jsonl") })
            for path in audit {
                let text = FileTree.text(of: path) ?? ""
                #expect(text.utf8.count <= 512 << 10, "\(path): \(text.utf8.count)")
                if path.hasSuffix("/audit.jsonl") { #expect(text.split(separator: "\n").count < 50, "\(text)") }
            }
        }
    }

    private func entries(_ stage: Stage) async throws -> [JSON] {
        let audit = try await stage.ringback("audit", "--json", "--limit", "1000")
        return try audit.lines.map { try JSON(parsing: $0.utf8) }
    }

    /// Sends requests over one connection, a hundred at a time. Gives how many brought a token.
    private func flood(_ stage: Stage, _ count: Int, _ connectionNumber: Int) async throws -> Int {
        let connection = try Connection(to: .unix(exposed(stage)))
        let lookup: JSON = ["url": .string(Self.url)]
        var issued = 0
        for batch in 0..<(count / 100) {
            let texts = (0..<100).map { number in
                let tool = [("Ringback-Application", "tool \(connectionNumber) \(batch) \(number)")]
                return switch number % 5 {
                case 0, 1: Stage.request("POST", "/v1/lookup", lookup.text, fields: tool)
                case 2: Stage.request("GET", "/v1/accounts/mail/session", fields: tool)
                case 3: Stage.request("GET", "/v1/accounts/home/session", fields: tool)
                default: Stage.request("POST", "/v1/accounts/mail/refresh", "{}", fields: tool)
                }
            }
            await connection.send(texts.joined())
            for number in 0..<100 {
                let status = try await connection.answer().status
                #expect(status == (number % 5 < 3 ? 200 : 403))
                if status == 200 { issued += 1 }
            }
        }
        return issued
    }
}
