import RingbackBase
import Testing

@testable import RingbackClient

@Suite(.timeLimit(.minutes(5))) struct `A client with an authenticator as second factor` {
    private func daemon(type: String = "create") throws -> FakeDaemon {
        try FakeDaemon { request in
            if request.contains("/challenge ") {
                return .json(
                    200,
                    #"{"id":"c","factor":"f","expires_at":7,"#
                        + #""webauthn":{"type":"\#(type)","options":{"challenge":"YQ"}}}"#)
            }
            if request.contains("/verify ") {
                return .json(200, #"{"name":"app","state":"authenticated","aal":"aal2","next_aal":"aal2"}"#)
            }
            return .json(201, #"{"id":"f","factor_type":"webauthn","status":"unverified","friendly_name":"Key"}"#)
        }
    }

    private func bodies(_ daemon: FakeDaemon) -> [String] {
        daemon.requests.map { String($0.split(separator: "\r\n\r\n").dropFirst().first ?? "") }
    }

    @Test func `adds it, asks what it is to sign, and proves it`() async throws {
        let daemon = try daemon()
        let broker = daemon.client
        let enrolment = try await broker.enrollWebAuthnFactor("app", name: "Key")
        #expect(enrolment.factor.kind == "webauthn" && enrolment.factor.name == "Key" && enrolment.uri == nil)
        let challenge = try await broker.webAuthnChallenge("app", "f")
        #expect(challenge.id == "c" && challenge.makesKey && challenge.options == #"{"challenge":"YQ"}"#)
        #expect(challenge.expiresAt?.secondsSince1970 == 7)
        let account = try await broker.verifyFactor("app", "f", credential: #"{"id":"k"}"#, challenge: challenge.id)
        #expect(account.assurance == "aal2")
        #expect(
            bodies(daemon) == [
                #"{"factor_type":"webauthn","friendly_name":"Key"}"#, "{}",
                #"{"challenge_id":"c","credential":{"id":"k"}}"#,
            ])
    }

    @Test func `says whom the credential is for`() async throws {
        let daemon = try daemon(type: "request")
        let broker = daemon.client
        let party = RelyingParty(id: "app.example.org", origins: ["https://app.example.org"])
        let challenge = try await broker.webAuthnChallenge("app", "f", party: party)
        #expect(!challenge.makesKey)
        try await broker.verifyFactor("app", "f", credential: "{}", challenge: "c", party: party)
        let members = #""rp_id":"app.example.org","rp_origins":["https://app.example.org"]"#
        #expect(bodies(daemon) == ["{\(members)}", #"{"challenge_id":"c","credential":{},\#(members)}"#])
    }

    @Test func `reads nothing into a challenge that is for a code, or a credential that is none`() async throws {
        let daemon = try FakeDaemon { _ in .json(200, #"{"id":"c","factor":"f"}"#) }
        let broker = daemon.client
        await #expect(throws: RingbackError.self) { _ = try await broker.webAuthnChallenge("app", "f") }
        await #expect(throws: RingbackError("validation_failed", "A JSON object is expected.")) {
            try await broker.verifyFactor("app", "f", credential: "x", challenge: "c")
        }
        #expect(daemon.requests.count == 1)
    }
}
