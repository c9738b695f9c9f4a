import Glibc
import RingbackBase
import Testing

@Suite struct `The vault` {
    private static func configuration(_ vault: String) -> String {
        """
        [vault]
        \(vault)

        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"

        """
    }

    private func status(_ stage: Stage) async throws -> JSON {
        try await stage.api("GET", "/v1/status")["vault"] ?? .null
    }

    /// Every route that needs a session says 423 and what to do, and nothing is changed.
    private func expectLocked(_ stage: Stage, _ word: String, command: String) async throws {
        let session = try await stage.api("GET", "/v1/accounts/work/session", status: 423, code: "vault_locked")
        #expect(session["detail"]?.string?.contains(word) == true, "\(session)")
        #expect(try await stage.account()["state"]?.string == "loading")
        #expect(try await stage.api("POST", "/v1/accounts/work/refresh").status == 423)
        #expect(try await stage.api("DELETE", "/v1/accounts/work/session").status == 423)
        #expect(try await stage.api("POST", "/v1/accounts/work/sign-in", [:]).status == 423)
        let status = try await status(stage)
        #expect(status["locked"]?.bool == true)
        #expect(status["reason"]?.string?.contains(word) == true, "\(status.text)")
        let token = try await stage.ringback("token", "work", status: 1, says: word)
        // The daemon says why; the command line says what to type.
        #expect(session["detail"]?.string?.contains(command) == false, "\(session)")
        #expect(token.err.contains(command), "\(token)")
        #expect(try await stage.ringback("status").out.contains(command))
    }

    @Test func `ringback lock and unlock lock and unlock the vault of a running daemon`() async throws {
        try await Stage.playSignedIn(Self.configuration("")) { stage in
            let token = try await stage.token()
            try await stage.ringback("lock", status: 0)
            try await expectLocked(stage, "vault", command: "ringback unlock")
            // What is out of reach may be a session: nobody is told that there is none.
            try await stage.ringback("logout", "--all", status: 1, says: "locked")
            try await stage.ringback("unlock", status: 0)
            #expect(try await stage.token() == token)
            #expect(try await stage.api("POST", "/v1/vault/unlock", [:]).status == 200)
        }
    }

    @Test func `a vault with a passphrase is locked at start and opens for the right one only`() async throws {
        try await Stage.play(Self.configuration("key_source = \"passphrase\"")) { stage in
            try await expectLocked(stage, "vault", command: "ringback unlock")
            #expect(try await status(stage)["needs_new_passphrase"]?.bool == true)
            try await stage.ringback("unlock", stdin: "correct horse\n", status: 0)
            try await stage.signIn()
            let token = try await stage.token()
            #expect(try await status(stage)["key_source"]?.string == "passphrase")
            #expect(try await status(stage)["needs_new_passphrase"] == nil)
            stage.daemon?.send(SIGKILL)
            _ = try await stage.daemon?.end()
            try await stage.startDaemon()
            try await expectLocked(stage, "vault", command: "ringback unlock")
            for _ in 0..<5 {
                try await stage.api(
                    "POST", "/v1/vault/unlock", ["passphrase": "wrong horse"], status: 401, code: "invalid_credentials")
            }
            let sixth = try await stage.api("POST", "/v1/vault/unlock", ["passphrase": "correct horse"], status: 429)
            #expect((1...60).contains(sixth["retry_after"]?.integer ?? 0), "\(sixth)")
            stage.daemon?.send(SIGTERM)
            _ = try await stage.daemon?.end()
            try await stage.startDaemon()
            try await stage.ringback("unlock", stdin: "correct horse\n", status: 0)
            #expect(try await stage.token() == token)
        }
    }

    @Test func `the vault's key moves only by vault rekey`() async throws {
        try await Stage.playSignedIn(Self.configuration("")) { stage in
            let token = try await stage.token()
            #expect(try await status(stage)["key_source"]?.string == "key-file")
            let keys = "\(stage.directory)/home/.local/share/ringback/keys"
            #expect(FileTree.names(in: keys).count == 1)
            try await stage.ringback(
                "vault", "rekey", "--key-source", "passphrase", stdin: "correct horse\ncorrect horse\n", status: 0)
            #expect(FileTree.names(in: keys).isEmpty)
            #expect(try await stage.token() == token)
            _ = try await stage.stopDaemon()
            // The configuration still says auto: what the vault was sealed with stays.
            try await stage.startDaemon()
            try await expectLocked(stage, "vault", command: "ringback unlock")
            try await stage.ringback("unlock", stdin: "correct horse\n", status: 0)
            #expect(try await stage.token() == token)
            // Another word in the configuration does not move it.
            _ = try await stage.stopDaemon()
            try stage.write(configuration: Self.configuration("key_source = \"key-file\""))
            try await stage.startDaemon()
            try await expectLocked(
                stage, "key_source", command: "run ringback unlock and ringback vault rekey --key-source=key-file")
        }
    }

    @Test func `the advised vault rekey moves the key and names the setting to change`() async throws {
        try await Stage.playSignedIn(Self.configuration("")) { stage in
            let token = try await stage.token()
            // A running daemon keeps the vault that it has, and does not pretend otherwise.
            try stage.write(configuration: Self.configuration("key_source = \"passphrase\""))
            try await stage.ringback("reload", status: 0, says: "[vault]")
            let answer = try await stage.api("POST", "/v1/reload")
            #expect(answer["restart_needed"] == ["vault"], "\(answer)")
            #expect(try await stage.token() == token)
            _ = try await stage.stopDaemon()
            try await stage.startDaemon()
            try await expectLocked(
                stage, "key_source", command: "run: ringback vault rekey --key-source=passphrase")
            let status = try await status(stage)
            #expect(status["cause"] == "key_source_differs" && status["other_key_source"] == "passphrase")
            for wrong in [["vault", "rekey"], ["vault", "rekey", "auto", "--key-source", "auto"]] {
                try await stage.run("ringback", wrong, status: 64)
            }
            let moved = try await stage.ringback("vault", "rekey", "passphrase", stdin: "correct horse\n", status: 0)
            #expect(!moved.err.contains("key_source"), "\(moved)")
            try await stage.eventually("an open vault") { try await stage.token() == token }
            try await stage.ringback(
                "vault", "rekey", "--key-source", "key-file", status: 0, says: "Set key_source = \"key-file\"")
        }
    }
}
