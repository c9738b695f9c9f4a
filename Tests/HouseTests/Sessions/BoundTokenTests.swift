import Glibc
import RingbackBase
import TestSupport
import Testing

extension JSON {
    /// The proof in the field of a logged request (RFC 9449 section 4.2): its key, and its claims.
    fileprivate var proof: (key: JSON, claims: JSON)? {
        let parts = (self["headers"]?["dpop"]?.string ?? "").split(separator: ".").prefix(2)
        let documents = parts.compactMap { part in Base64URL.decode(part).flatMap { try? JSON(parsing: $0) } }
        guard documents.count == 2, let key = documents[0]["jwk"] else { return nil }
        return (key, documents[1])
    }
}

@Suite struct `Tokens that are bound to a key` {
    private static func configuration(_ more: String = "dpop = \"required\"") -> String {
        """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]
        \(more)

        """
    }

    private func requests(_ stage: Stage, _ endpoints: String...) async throws -> [JSON] {
        try await stage.sandbox.log().filter { endpoints.contains($0["endpoint"]?.string ?? "") }
    }

    private func session(_ stage: Stage) async throws -> JSON {
        try await stage.api("GET", "/v1/accounts/work/session", status: 200).json
    }

    @Test(arguments: [SIGTERM, SIGKILL])
    func `a provider that demands PAR, DPoP and a new nonce of everyone gets them, also after a restart`(
        signal: Int32
    ) async throws {
        try await Stage.play(Self.configuration(), startsDaemon: false) { stage in
            try await stage.sandbox.control(["strict": true])
            try await stage.startDaemon()
            try await stage.signIn()
            #expect(try await session(stage)["token_type"] == "DPoP")
            for _ in 0..<2 { try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true], status: 200) }
            stage.daemon?.send(signal)
            _ = try await stage.daemon?.end()
            try await stage.startDaemon()
            try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true], status: 200)
            #expect(try await stage.account()["subject"] == "alice")
            #expect(try await session(stage)["token_type"] == "DPoP")
            let logged = try await requests(stage, "par", "token", "userinfo")
            let proofs = logged.compactMap(\.proof)
            // The flow's own page and the one that a browser is started with may both be pushed.
            #expect(proofs.count == logged.count && Set(proofs.map(\.key.text)).count == 1, "\(logged)")
            #expect(Set(proofs.map { $0.claims["jti"]?.string }).count == proofs.count)
            // Only the first request of each role, and of each life, comes without a nonce.
            let refused = logged.filter { $0["status"]?.integer != 200 && $0["status"]?.integer != 201 }
            #expect(refused.count == 3 && refused.allSatisfy { $0.proof?.claims["nonce"] == nil }, "\(refused)")
            #expect(try await stage.sandbox.counters()["reuse_detections"] == 0)
        }
    }

    @Test func `programs that ask at the same time cause one refresh, with its nonce`() async throws {
        try await Stage.play(Self.configuration(), startsDaemon: false) { stage in
            try await stage.sandbox.control(["strict": true])
            try await stage.startDaemon()
            try await stage.signInExpired()
            let tokens = try await withThrowingTaskGroup(of: String?.self) { group in
                for _ in 0..<20 { group.addTask { try await stage.token() } }
                return try await group.reduce(into: Set<String?>()) { $0.insert($1) }
            }
            #expect(tokens.count == 1 && !tokens.contains(nil))
            #expect(try await stage.sandbox.counters()["refreshes"] == 1)
        }
    }

    @Test func `refresh-only takes ordinary tokens, and says what to set where it gets others`() async throws {
        try await Stage.play(Self.configuration("dpop = \"refresh-only\""), startsDaemon: false) { stage in
            try await stage.sandbox.control(["dpop": "offered", "dpop_binds": "refresh_tokens"])
            try await stage.startDaemon()
            try await stage.signIn()
            #expect(try await session(stage)["token_type"] == "Bearer")
            try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true], status: 200)
            #expect(try await requests(stage, "token").allSatisfy { $0.proof != nil })
            try await stage.sandbox.control(["dpop_binds": "all"])
            let flow = try await stage.begin()
            _ = try await Browser.deliver(Browser.signIn(at: flow.authorizationURL))
            let ended = try await stage.ended(flow)
            #expect(ended["status"] == "failed")
            let detail = ended["error"]?["detail"]?.string ?? ""
            #expect(detail.contains("dpop = \"refresh-only\"") && detail.contains("dpop-bind-enforcer"), "\(detail)")
            // The session of the first sign-in is as it was.
            try await stage.sandbox.control(["dpop_binds": "refresh_tokens"])
            try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true], status: 200)
        }
    }

    @Test func `required refuses an ordinary token`() async throws {
        try await Stage.play(Self.configuration(), startsDaemon: false) { stage in
            try await stage.sandbox.control(["dpop": "offered", "dpop_binds": "refresh_tokens"])
            try await stage.startDaemon()
            let flow = try await stage.begin()
            _ = try await Browser.deliver(Browser.signIn(at: flow.authorizationURL))
            #expect(try await stage.ended(flow)["status"] == "failed")
            #expect(try await stage.api("GET", "/v1/accounts/work/session").status == 401)
        }
    }

    @Test func `a clock that differs is corrected, audited and shown by doctor`() async throws {
        try await Stage.play(Self.configuration(), startsDaemon: false) { stage in
            try await stage.sandbox.control(["dpop": "required", "advance_clock": 100])
            try await stage.startDaemon()
            try await stage.signIn()
            try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true], status: 200)
            #expect(try await requests(stage, "token").map { $0["status"]?.integer } == [400, 200, 200])
            let audit = try await stage.ringback("audit", "--json").out
            #expect(audit.contains("\"clock_differs\""), "\(audit)")
            let doctor = try await stage.ringback("doctor", "work", "--json").out
            #expect(doctor.contains("binds the session's tokens to its key (DPoP)"), "\(doctor)")
        }
    }
}
