import Glibc
import RingbackBase
import Testing

@Suite struct `The vault's key in a keyring` {
    private static let configuration = "[accounts.work]\nissuer = \"{sandbox}\"\nclient_id = \"ringback-demo\"\n"

    private func play(
        _ kind: KeyringKind, _ test: (Stage, Keyring, _ token: String) async throws -> Void
    ) async throws {
        try await Stage.play(Self.configuration, startsDaemon: false) { stage in
            let keyring = try await Keyring(kind, stage)
            try await keyring.start()
            try await stage.startDaemon(environment: keyring.bus.session)
            try await stage.signIn()
            try await expectOpen(stage)
            try await test(stage, keyring, try #require(try await stage.token()))
        }
    }

    private func vault(_ stage: Stage) async throws -> JSON {
        try await stage.api("GET", "/v1/status")["vault"] ?? .null
    }

    private func keyFiles(_ stage: Stage) -> [String] {
        FileTree.names(in: "\(stage.directory)/home/.local/share/ringback/keys")
    }

    private func expectOpen(
        _ stage: Stage, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let vault = try await vault(stage)
        #expect(vault["locked"]?.bool == false, "\(vault.text)", sourceLocation: sourceLocation)
        #expect(vault["key_source"] == "secret-service", "\(vault.text)", sourceLocation: sourceLocation)
        #expect(keyFiles(stage).isEmpty, sourceLocation: sourceLocation)
    }

    /// 423 with the reason, everywhere, and nothing has been made in the key's place.
    private func expectLocked(
        _ stage: Stage, _ word: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let session = try await stage.api(
            "GET", "/v1/accounts/work/session", status: 423, code: "vault_locked", sourceLocation: sourceLocation)
        let detail = session["detail"]?.string ?? ""
        #expect(detail.contains(word), "\(detail)", sourceLocation: sourceLocation)
        let account = try await stage.account()
        #expect(account["state"]?.string == "loading", "\(account.text)", sourceLocation: sourceLocation)
        let vault = try await vault(stage)
        #expect(vault["locked"]?.bool == true, "\(vault.text)", sourceLocation: sourceLocation)
        #expect(vault["reason"]?.string?.contains(word) == true, "\(vault.text)", sourceLocation: sourceLocation)
        #expect(vault["key_source"]?.string == "secret-service", "\(vault.text)", sourceLocation: sourceLocation)
        #expect(keyFiles(stage).isEmpty, sourceLocation: sourceLocation)
    }

    /// The session is served again, and nobody has asked for it to be unlocked.
    private func expectReturn(_ token: String, _ stage: Stage) async throws {
        try await stage.eventually("the session") { try await stage.token() == token }
        try await expectOpen(stage)
    }

    /// It was the bus that told: the daemon tries again by itself 15 s after an attempt, and made none before `start`.
    private func expectNoRetry(since start: ContinuousClock.Instant) {
        #expect(ContinuousClock.now - start < .seconds(15))
    }

    @Test(arguments: KeyringKind.all)
    func `the vault's key is stored in the keyring once and never in clear on the bus`(
        kind: KeyringKind
    ) async throws {
        try await Stage.play(Self.configuration, startsDaemon: false) { stage in
            let keyring = try await Keyring(kind, stage)
            try await keyring.start()
            let monitor = try await keyring.bus.monitor()
            try await stage.startDaemon(environment: keyring.bus.session)
            try await stage.signIn()
            try await expectOpen(stage)
            let token = try #require(try await stage.token())
            let sealed = FileTree.text(of: "\(stage.state)/vault.key")
            #expect(try await stage.stopDaemon().status == 0)
            try await stage.startDaemon(environment: keyring.bus.session)
            #expect(try await stage.token() == token)
            try await expectOpen(stage)
            #expect(FileTree.text(of: "\(stage.state)/vault.key") == sealed)
            let key = try #require(try await keyring.key())
            #expect(key.utf8.count >= 43)
            try await stage.eventually("what the monitor saw") { monitor.seen.contains("GetSecret") }
            let refreshToken = try await stage.sandbox.log().compactMap { $0["parameters"]?["refresh_token"]?.string }
            for secret in [key, token] + refreshToken { #expect(!monitor.seen.contains(secret)) }
        }
    }

    @Test(arguments: KeyringKind.all)
    func `a keyring that is locked at start keeps the vault locked until it is unlocked`(kind: KeyringKind) async throws
    {
        try await play(kind) { stage, keyring, token in
            #expect(try await stage.stopDaemon().status == 0)
            try await keyring.lock()
            let start = ContinuousClock.now
            try await stage.startDaemon(environment: keyring.bus.session)
            try await expectLocked(stage, "keyring is locked")
            try await keyring.unlock()
            try await expectReturn(token, stage)
            expectNoRetry(since: start)
        }
    }

    @Test(.enabled(if: KeyringKind.all.contains(.gnome), "no gnome-keyring"))
    func `the vault opens after gnome-keyring was unlocked without a signal`() async throws {
        try await play(.gnome) { stage, keyring, token in
            #expect(try await stage.stopDaemon().status == 0)
            try await keyring.lock()
            try await stage.startDaemon(environment: keyring.bus.session)
            try await expectLocked(stage, "keyring is locked")
            try await keyring.unlockUnheard()
            try await expectReturn(token, stage)
        }
    }

    @Test(arguments: KeyringKind.all)
    func `a keyring that dies leaves the vault open, and one that is missing at start is waited for`(
        kind: KeyringKind
    ) async throws {
        try await play(kind) { stage, keyring, _ in
            let sealed = FileTree.text(of: "\(stage.state)/vault.key")
            try await keyring.kill()
            // The next token is sealed, too.
            try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true], status: 200)
            let token = try #require(try await stage.token())
            try await expectOpen(stage)
            #expect(try await stage.stopDaemon().status == 0)
            let start = ContinuousClock.now
            try await stage.startDaemon(environment: keyring.bus.session)
            try await expectLocked(stage, "keyring is not there")
            #expect(FileTree.text(of: "\(stage.state)/vault.key") == sealed)
            try await keyring.start()
            try await expectReturn(token, stage)
            expectNoRetry(since: start)
        }
    }
}
