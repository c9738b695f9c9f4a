import Cryptography
import RingbackBase
import Testing

@testable import Sandbox

@Suite struct `The sandbox, asked by a client with a key` {
    private let key: PrivateKey
    private let visitor: Visitor

    init() throws {
        key = try PrivateKey.generate(.ed25519)
        var options = SandboxOptions()
        options.clients.append(SandboxClient(id: "signed", keys: [key.publicKey]))
        visitor = Visitor(options)
    }

    private func assertion(_ change: (inout JSONObject) -> Void = { _ in }) throws -> String {
        var claims: JSONObject = [
            "iss": "signed", "sub": "signed", "aud": origin, "jti": RandomToken.identifier(),
            "exp": visitor.clock.now + 60,
        ]
        change(&claims)
        return try JSONWebToken.signed(["alg": "EdDSA"] as JSONObject, claims) {
            try key.sign(message: $0, algorithm: .edDSA)
        }
    }

    private func revoke(_ assertion: String, _ more: [(String, String)] = []) async -> Answer {
        await visitor.post(
            "/revoke",
            [
                ("token", "x"), ("client_assertion", assertion),
                ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
            ] + more)
    }

    @Test func `takes a statement of its key once`() async throws {
        let text = try assertion()
        #expect(await revoke(text, [("client_id", "signed")]).status == 200)
        #expect(await revoke(text).error == "invalid_client")
        #expect(await revoke(try assertion()).status == 200)
    }

    @Test func `refuses other audiences, lifetimes, names and signatures`() async throws {
        let now = visitor.clock.now
        let changes: [(inout JSONObject) -> Void] = [
            { $0["aud"] = [.string(origin)] }, { $0["aud"] = .string(origin + "/token") }, { $0["aud"] = nil },
            { $0["exp"] = .integer(now - 60) }, { $0["exp"] = .integer(now + 3_600) }, { $0["exp"] = nil },
            { $0["iat"] = .integer(now + 60) }, { $0["jti"] = nil }, { $0["sub"] = "ringback-demo" },
            { $0["iss"] = "other" },
        ]
        for change in changes {
            let answer = await revoke(try assertion(change))
            #expect(answer.status == 401 && answer.error == "invalid_client")
        }
        let text = try assertion()
        #expect(await revoke(text + "A").error == "invalid_client")
        #expect(await revoke(text, [("client_id", "ringback-demo")]).error == "invalid_client")
        #expect(await revoke(text, [("client_secret", "s")]).error == "invalid_request")
        #expect(await visitor.post("/revoke", [("token", "x"), ("client_id", "signed")]).error == "invalid_client")
    }
}
