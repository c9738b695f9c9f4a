import RingbackBase
import Testing

@testable import RingbackClient

@Suite(.timeLimit(.minutes(5))) struct `A client with passkeys` {
    @Test func `signs in by one`() async throws {
        let daemon = try FakeDaemon { request in
            if request.contains("/sign-in") {
                return .json(
                    201,
                    #"{"id":"f1","account":"app","method":"passkey","status":"pending","waiting_for":"passkey","#
                        + #""challenge_id":"c","options":{"challenge":"YQ"}}"#)
            }
            if request.hasPrefix("GET /v1/accounts/app ") {
                return .json(200, #"{"name":"app","state":"authenticated"}"#)
            }
            if request.contains("\"wrong\"") {
                return .json(
                    200,
                    #"{"id":"f1","account":"app","status":"failed","error":{"code":"invalid_credentials","status":401}}"#
                )
            }
            return .json(200, #"{"id":"f1","account":"app","status":"completed"}"#)
        }
        let broker = daemon.client
        guard case .pending(let flow) = try await broker.signIn("app", with: .passkey()) else {
            Issue.record("a passkey's answer is awaited")
            return
        }
        #expect(flow.passkeyOptions == #"{"challenge":"YQ"}"#)
        #expect(try await broker.verify(flow, credential: #"{"id":"right"}"#).state == .authenticated)
        #expect(daemon.requests[1].hasSuffix(#"{"credential":{"id":"right"}}"#))
        do {
            try await broker.verify(flow, credential: #"{"id":"wrong"}"#)
            Issue.record("a wrong answer fails")
        } catch {
            #expect(error.kind == .invalidCredentials)
        }
        await #expect(throws: RingbackError("validation_failed", "A JSON object is expected.")) {
            _ = try await broker.verify(flow, credential: "x")
        }
    }

    @Test func `adds, lists, names and removes them`() async throws {
        let passkey = #"{"id":"p","friendly_name":"Key","created_at":"2026-01-02T03:04:05Z"}"#
        let daemon = try FakeDaemon { request in
            if request.contains("/passkey-options") {
                return .json(200, #"{"challenge_id":"c","options":{"rp":{}},"expires_at":7}"#)
            }
            if request.hasPrefix("GET") { return .json(200, #"{"passkeys":[\#(passkey)]}"#) }
            if request.hasPrefix("DELETE") { return .json(200, #"{"account":"app","removed":"p"}"#) }
            return .json(request.hasPrefix("POST") ? 201 : 200, passkey)
        }
        let broker = daemon.client
        let challenge = try await broker.passkeyRegistration("app")
        #expect(challenge.id == "c" && challenge.options == #"{"rp":{}}"# && challenge.expiresAt?.secondsSince1970 == 7)
        let added = try await broker.registerPasskey("app", challenge: "c", credential: #"{"id":"k"}"#)
        #expect(
            added.id == "p" && added.name == "Key" && added.lastUsedAt == nil
                && added.createdAt?.description == "2026-01-02T03:04:05Z")
        #expect(daemon.requests.last?.hasSuffix(#"{"challenge_id":"c","credential":{"id":"k"}}"#) == true)
        #expect(try await broker.passkeys("app") == [added])
        #expect(try await broker.renamePasskey("app", "p", to: "Key") == added)
        #expect(daemon.requests.last?.hasPrefix("PATCH /v1/accounts/app/passkeys/p ") == true)
        try await broker.removePasskey("app", "p")
        #expect(daemon.requests.last?.hasPrefix("DELETE /v1/accounts/app/passkeys/p ") == true)
    }
}
