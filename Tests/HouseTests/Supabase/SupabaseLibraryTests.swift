import RingbackBase
import RingbackClient
import Testing

@Suite struct `RingbackClient at a Supabase project` {
    private static let mira = SupabaseSignInFields.Contact.email("mira@example.org")

    private func failure<Value>(_ call: () async throws -> Value) async throws -> RingbackError {
        try #require(await #expect(throws: RingbackError.self) { _ = try await call() })
    }

    @Test func `RingbackClient tells a wrong password from a wrong code`() async throws {
        try await Stage.playProject { stage in
            let broker = BrokerClient(application: "test", socket: stage.socket)
            // Both methods label their arguments alike.
            let ways: [SupabaseSignInFields] = [
                .signUp(Self.mira, password: "secret12"), .password(Self.mira, password: "secret12"),
            ]
            for way in ways {
                guard case .done(let account) = try await broker.signIn("app", with: way) else {
                    Issue.record("The sign-in waits for something: \(way)")
                    return
                }
                #expect(account.user?.email == "mira@example.org")
                let session = try await broker.session("app")
                let end = try #require(session.expiresAt)
                #expect(end > .now && WallInstant.now.duration(to: end) <= .seconds(3_601))
                _ = try await broker.signOut("app")
            }
            let password = try await failure {
                try await broker.signIn("app", with: .password(Self.mira, password: "wrong123"))
            }
            #expect(password.kind == .wrongPassword && password.providerCode == "invalid_credentials")
            guard case .pending(let flow) = try await broker.signIn("app", with: .oneTimeCode(to: Self.mira)) else {
                Issue.record("A code is awaited.")
                return
            }
            let right = try await stage.code()
            let code = try await failure {
                try await broker.verify(flow, code: right == "123456" ? "654321" : "123456")
            }
            #expect(code.kind == .wrongCode && code.providerCode == "otp_expired", "\(code.debugDescription)")
            for error in [password, code] {
                let message = try #require(error.userMessage)
                #expect(error.description == message && !message.contains("_"), "\(message)")
                #expect(error.debugDescription == "\(error.kind.rawValue): \(error.detail)")
            }
        }
    }

    @Test func `RingbackClient throws for the events of an unknown account`() async throws {
        try await Stage.playProject { stage in
            let broker = BrokerClient(application: "test", socket: stage.socket)
            let error = try await failure {
                for try await _ in broker.authStateChanges("nobody") { Issue.record("There is an event.") }
            }
            #expect(error.kind == .accountNotFound, "\(error.debugDescription)")
        }
    }
}
