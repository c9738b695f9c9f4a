import RingbackBase
import Testing

@testable import Sandbox

/// RFC 8628, held against the sandbox itself: an examiner that is lax examines nothing.
@Suite struct `The sandbox, given devices` {
    private static let grant = "urn:ietf:params:oauth:grant-type:device_code"

    private func visitor(_ change: (inout SandboxSettings) -> Void = { _ in }) -> Visitor {
        Visitor.quick {
            $0.autoApprovedUser = nil
            change(&$0)
        }
    }

    private func codes(_ visitor: Visitor, _ extra: [(String, String)] = [("scope", "openid email")]) async -> Answer {
        await visitor.post("/device_authorization", [("client_id", "ringback-demo")] + extra)
    }

    private func ask(_ visitor: Visitor, _ code: String, client: String = "ringback-demo") async -> Answer {
        await visitor.post(
            "/token", [("grant_type", Self.grant), ("device_code", code), ("client_id", client)])
    }

    @Test func `answers as section 3.2 says, and says so in its metadata`() async throws {
        let visitor = visitor()
        let answer = await codes(visitor)
        #expect(answer.status == 200 && answer.fields["Cache-Control"] == "no-store")
        let userCode = try answer.json.text("user_code")
        #expect(userCode.utf8.count == 9 && userCode.dropFirst(4).first == "-")
        #expect(try answer.json.text("verification_uri") == origin + "/device")
        #expect(try answer.json.text("verification_uri_complete") == origin + "/device?user_code=\(userCode)")
        #expect(answer.json["expires_in"] == 600 && answer.json["interval"] == 5)
        #expect(try answer.json.text("device_code") != userCode)
        let metadata = await visitor.get("/.well-known/openid-configuration").json
        #expect(metadata["device_authorization_endpoint"]?.string == origin + "/device_authorization")
        #expect(metadata["grant_types_supported"]?.array?.contains(.string(Self.grant)) == true)
    }

    @Test func `makes the client wait, and slow down for good when it does not`() async throws {
        let visitor = visitor()
        let code = try await codes(visitor).json.text("device_code")
        visitor.clock.advance(by: 4)
        #expect(await ask(visitor, code).error == "slow_down")
        visitor.clock.advance(by: 9)
        #expect(await ask(visitor, code).error == "slow_down")
        visitor.clock.advance(by: 14)
        #expect(await ask(visitor, code).error == "slow_down")
        visitor.clock.advance(by: 20)
        #expect(await ask(visitor, code).error == "authorization_pending")
        #expect(await visitor.counter("early_device_questions") == 3)
        // A yes is not given to who asks too early, and not lost by it.
        let userCode = try await codes(visitor).json.text("user_code")
        #expect(userCode.isEmpty == false)
        await visitor.control(["device": ["decision": "allow"]])
        #expect(await ask(visitor, code).error == "slow_down")
        visitor.clock.advance(by: 25)
        #expect(await ask(visitor, code).status == 200)
    }

    @Test func `gives tokens once, to the client that asked first`() async throws {
        let visitor = visitor()
        await visitor.control(["clients": [["id": "other"]]])
        let code = try await codes(visitor).json.text("device_code")
        await visitor.control(["device": ["decision": "allow", "user": "bob"]])
        visitor.clock.advance(by: 5)
        #expect(await ask(visitor, code, client: "other").error == "invalid_grant")
        #expect(await ask(visitor, "unknown").error == "invalid_grant")
        let answer = await ask(visitor, code)
        #expect(answer.status == 200)
        let token = try TakenApart(answer.json.text("id_token"))
        #expect(token.claims["sub"] == "bob" && token.claims["nonce"] == nil)
        #expect(await visitor.userinfo(try answer.json.text("access_token")).json["email"] == "bob@example.org")
        #expect(await visitor.refresh(try answer.json.text("refresh_token")).status == 200)
        visitor.clock.advance(by: 5)
        #expect(await ask(visitor, code).error == "invalid_grant")
    }

    @Test func `tells of a no and of the end`() async throws {
        let visitor = visitor { $0.deviceCodeLifetime = 60 }
        let denied = try await codes(visitor).json.text("device_code")
        await visitor.control(["device": ["decision": "deny"]])
        visitor.clock.advance(by: 5)
        #expect(await ask(visitor, denied).error == "access_denied")
        let late = await codes(visitor).json
        visitor.clock.advance(by: 60)
        #expect(await ask(visitor, try late.text("device_code")).error == "expired_token")
        let page = await visitor.get("/device", [("user_code", try late.text("user_code"))])
        #expect(page.status == 422 && page.text.contains("No device waits"))
    }

    @Test func `has a page that shows the code and who asks, and takes a yes or a no`() async throws {
        let visitor = visitor()
        let answer = await codes(visitor).json
        let (code, userCode) = (try answer.text("device_code"), try answer.text("user_code"))
        #expect(await visitor.get("/device").text.contains("name=\"user_code\""))
        #expect(await visitor.get("/device", [("user_code", "WRONG")]).status == 422)
        // As a person types it.
        let typed = userCode.lowercased().filter { $0 != "-" }
        let page = await visitor.get("/device", [("user_code", typed)])
        #expect(page.text.contains(userCode) && page.text.contains("ringback-demo") && page.text.contains("bob"))
        #expect(page.hidden("user_code") == userCode)
        let unsure = await visitor.post("/device", [("user_code", userCode), ("decision", "allow")])
        #expect(unsure.status == 422 && unsure.text.contains("Choose who"))
        let done = await visitor.post("/device", [("user_code", userCode), ("decision", "allow"), ("user", "alice")])
        #expect(done.status == 200)
        #expect(await visitor.get("/device", [("user_code", userCode)]).status == 422)
        visitor.clock.advance(by: 5)
        #expect(await ask(visitor, code).status == 200)
    }

    @Test func `offers nothing where it is switched off, and lies where it is told to`() async throws {
        let visitor = visitor()
        await visitor.control(["device_answer": ["interval": .null, "verification_uri": "http://evil.example/"]])
        let answer = await codes(visitor)
        #expect(answer.json["interval"] == nil && answer.json["verification_uri"] == "http://evil.example/")
        await visitor.control(["device_grant": false])
        #expect(await codes(visitor).status == 404)
        #expect(await visitor.get("/device").status == 404)
        #expect(await ask(visitor, "x").error == "unsupported_grant_type")
        let metadata = await visitor.get("/.well-known/openid-configuration").json
        #expect(metadata["device_authorization_endpoint"] == nil)
    }

    @Test func `asks for the client as everywhere`() async {
        let visitor = visitor()
        #expect(await visitor.post("/device_authorization", [("client_id", "nobody")]).error == "invalid_client")
        #expect(await visitor.get("/device_authorization").status == 405)
    }
}
