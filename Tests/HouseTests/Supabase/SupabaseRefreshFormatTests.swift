// What a project's refresh tokens look like, and what becomes of one that looks otherwise, or changes its looks.

import Cryptography
import RingbackBase
import Testing

@Suite struct `A project's refresh tokens, by their form` {
    private static func isRow(_ token: String) -> Bool {
        token.utf8.count == 12 && token.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber) }
    }

    private static func isCounted(_ token: String) -> Bool {
        token.utf8.count >= 51 && Base64URL.decode(token)?.first == 0
    }

    @Test(arguments: Stage.tokenKinds)
    func `look and rotation: each refresh is made with another token of the same kind`(kind: String) async throws {
        try await Stage.playShared(kind) { stage, _ in
            for _ in 0..<3 { try await stage.expectAlive() }
            let tokens = try await stage.presented()
            #expect(tokens.count == 4 && Set(tokens).count == 4)
            #expect(tokens.allSatisfy(kind == "v1" ? Self.isRow : Self.isCounted), "\(tokens)")
        }
    }

    @Test func `upgrade: a session of the first kind goes on with the second, and over a restart`() async throws {
        try await Stage.playShared("v1") { stage, _ in
            try await stage.setProject(["refresh_tokens": "v2", "upgrade": 100])
            try await stage.expectAlive()
            try await stage.expectAlive()
            try await stage.restartAfterKill()
            try await stage.expectAlive()
            let tokens = try await stage.presented()
            #expect(tokens.prefix(2).allSatisfy(Self.isRow) && tokens.count >= 4, "\(tokens)")
            #expect(tokens.dropFirst(2).allSatisfy(Self.isCounted), "\(tokens)")
        }
    }

    @Test func `upgrade: none, where no share of the sessions is to have it`() async throws {
        try await Stage.playShared("v1") { stage, _ in
            try await stage.setProject(["refresh_tokens": "v2", "upgrade": 0])
            for _ in 0..<3 { try await stage.expectAlive() }
            #expect(try await stage.presented().allSatisfy(Self.isRow))
        }
    }

    @Test func `upgrade: a response that was lost is requested again at once, without a caller`() async throws {
        try await Stage.playShared("v1", [("reuse_interval", 600)]) { stage, _ in
            try await stage.setProject(["refresh_tokens": "v2", "upgrade": 100])
            let before = try await stage.sandbox.counters(issuer: "/supabase")["refreshes"]
            try await stage.fault(["kind": "status", "status": 504, "processed": true])
            #expect(try await stage.refreshApp().status == 503)
            try await stage.eventually("another refresh") {
                try await stage.sandbox.counters(issuer: "/supabase")["refreshes"] >= before + 2
            }
            // The server has counted it; the daemon must have read the answer, or the next one joins it.
            try await stage.eventually("what it answered") {
                try await stage.account("app")["state"]?.string == "authenticated"
            }
            // The row is nobody's parent: its time is over. What the daemon holds now is good at any time.
            try await stage.advance(1_800)
            try await stage.expectAlive()
            #expect(try await stage.presented().last.map(Self.isCounted) == true)
        }
    }

    @Test func `upgrade: an answer that was lost with the daemon ends the session after the interval`() async throws {
        try await Stage.playShared("v1") { stage, _ in
            try await stage.setProject(["refresh_tokens": "v2", "upgrade": 100])
            try await stage.fault(["kind": "gate", "processed": true])
            let caller = try stage.connect()
            await caller.send(Stage.request("POST", "/v1/accounts/app/refresh", #"{"force":true}"#))
            try await stage.sandbox.wait("supabase_token", issuer: "/supabase")
            try await stage.advance(60)
            try await stage.restartAfterKill()
            try await stage.eventually("the end of the session") {
                try await stage.api("GET", "/v1/accounts/app/session").status == 401
            }
            try await stage.expectNobody("refresh_token_already_used")
        }
    }

    @Test(arguments: Stage.tokenKinds)
    func `malformed: a token of long ago ends its session`(kind: String) async throws {
        try await Stage.playShared("v0") { stage, program in
            #expect(program.refreshToken.utf8.count == 22)
            try await stage.expectAlive()
            try await stage.setProject(["refresh_tokens": .string(kind)])
            try await stage.expectDead("validation_failed")
        }
    }

    @Test(
        arguments: Stage.tokenKinds,
        ["short", "ABCDEFGHIJKL", "abcdefghijk-", "abcdefghijklmnopqrstuv", "changed", "abcdefghijkl", "forged"])
    func `malformed or unknown: a token that is handed in so is not kept`(kind: String, text: String) async throws {
        try await Stage.playShared("v2") { stage, program in
            #expect(try await stage.api("DELETE", "/v1/accounts/app/session").status == 200)
            try await stage.setProject(["refresh_tokens": .string(kind)])
            try await program.signIn()
            // Of the second kind: one letter is another one; or the sum is right, and the signature is not.
            var token = text
            if ["changed", "forged"].contains(text) {
                try await stage.setProject(["refresh_tokens": "v2"])
                try await program.signIn()
                var bytes = try #require(Base64URL.decode(program.refreshToken))
                bytes[bytes.count - 5] ^= 1
                if text == "forged" {
                    let sum = Digest.sha256(Array(bytes.dropLast(4))).prefix(4)
                    bytes.replaceSubrange((bytes.count - 4)..., with: sum)
                }
                token = Base64URL.encode(bytes)
            }
            let answer = try await program.offer(token)
            let word = ["forged", "abcdefghijkl"].contains(text) ? "refresh_token_not_found" : "validation_failed"
            #expect(answer.status == 401 && answer.code == "session_expired", "\(answer)")
            #expect(answer["provider_code"]?.string == word, "\(answer)")
            #expect(try await stage.account("app")["state"] == "unauthenticated")
            // Nobody else is harmed by it.
            #expect(try await program.refresh().status == 200)
        }
    }
}
