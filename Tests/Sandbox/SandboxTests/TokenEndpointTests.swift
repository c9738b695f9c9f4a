import RingbackBase
import Testing

@testable import Sandbox

@Suite struct `The token endpoint` {
    let visitor = Visitor.quick()

    @Test func `a code yields tokens that nobody may store`() async throws {
        let answer = await visitor.exchange(try await visitor.code())
        #expect(answer.status == 200)
        #expect(answer.fields["Cache-Control"] == "no-store")
        #expect(answer.json["token_type"] == "Bearer")
        #expect(answer.json["expires_in"] == 3_600)
        #expect(answer.json["scope"] == "openid email profile offline_access")
        #expect(await visitor.userinfo(try answer.json.text("access_token")).json["sub"] == "alice")
        _ = try answer.json.text("refresh_token")
        _ = try answer.json.text("id_token")
    }

    @Test func `no openid, no ID token`() async throws {
        let tokens = try await visitor.signIn(["scope": "repo"])
        #expect(tokens["id_token"] == nil)
        #expect(tokens["scope"] == "repo")
    }

    @Test(
        arguments: [
            (["code_verifier": String(repeating: "w", count: 43)], "invalid_grant"),
            (["code_verifier": nil], "invalid_request"),
            (["code_verifier": "short"], "invalid_request"),
            (["code_verifier": String(repeating: "+", count: 43)], "invalid_request"),
            (["redirect_uri": "http://127.0.0.1:5001/callback"], "invalid_grant"),
            (["redirect_uri": nil], "invalid_grant"),
            (["code": "code-unknown"], "invalid_grant"), (["code": nil], "invalid_request"),
            (["client_id": "nobody"], "invalid_client"), (["client_id": nil], "invalid_client"),
            (["client_secret": "guess"], "invalid_client"), (["grant_type": "password"], "unsupported_grant_type"),
            (["grant_type": nil], "invalid_request"), (["client_assertion": "e30.e30."], "invalid_client"),
        ] as [([String: String?], String)])
    func `a wrong request yields nothing`(changes: [String: String?], error: String) async throws {
        let answer = await visitor.exchange(try await visitor.code(), changes)
        #expect(answer.error == error)
        #expect(answer.status == (error == "invalid_client" ? 401 : 400))
        #expect(await visitor.counter("tokens_issued") == 0)
    }

    @Test func `a wrong verifier uses the code up`() async throws {
        let code = try await visitor.code()
        _ = await visitor.exchange(code, ["code_verifier": String(repeating: "w", count: 43)])
        #expect(await visitor.exchange(code).error == "invalid_grant")
    }

    @Test func `a code that comes twice ends what it yielded`() async throws {
        let code = try await visitor.code()
        let tokens = await visitor.exchange(code).json
        #expect(await visitor.exchange(code).error == "invalid_grant")
        #expect(await visitor.userinfo(try tokens.text("access_token")).status == 401)
        #expect(await visitor.refresh(try tokens.text("refresh_token")).error == "invalid_grant")
        #expect(await visitor.counter("code_reuses") == 1)
    }

    @Test func `a code ends after a minute`() async throws {
        let code = try await visitor.code()
        visitor.clock.advance(by: 60)
        #expect(await visitor.exchange(code).error == "invalid_grant")
    }

    @Test func `a refresh rotates, and a replaced token ends the family`() async throws {
        let first = try await visitor.signIn().text("refresh_token")
        let answer = await visitor.refresh(first).json
        let second = try answer.text("refresh_token")
        #expect(second != first)
        #expect(try TakenApart(answer.text("id_token")).claims["nonce"] == nil)
        #expect(await visitor.counter("rotations") == 1)

        #expect(await visitor.refresh(first).error == "invalid_grant")
        #expect(await visitor.refresh(second).error == "invalid_grant")
        #expect(await visitor.userinfo(try answer.text("access_token")).status == 401)
        #expect(await visitor.counter("reuse_detections") == 1)
    }

    @Test func `within the grace a replaced token yields its successor again`() async throws {
        await visitor.control(["reuse_grace": 30])
        let first = try await visitor.signIn().text("refresh_token")
        let second = try await visitor.refresh(first).json.text("refresh_token")
        visitor.clock.advance(by: 30)
        #expect(await visitor.refresh(first).json["refresh_token"] == .string(second))
        visitor.clock.advance(by: 1)
        #expect(await visitor.refresh(first).error == "invalid_grant")
        #expect(await visitor.refresh(second).error == "invalid_grant")
    }

    @Test func `the grace ends when the successor is used`() async throws {
        await visitor.control(["reuse_grace": 30])
        let first = try await visitor.signIn().text("refresh_token")
        let second = try await visitor.refresh(first).json.text("refresh_token")
        #expect(await visitor.refresh(second).status == 200)
        #expect(await visitor.refresh(first).error == "invalid_grant")
    }

    @Test func `without rotation the token stays and is not sent again`() async throws {
        await visitor.control(["rotation": false])
        let token = try await visitor.signIn().text("refresh_token")
        for _ in 0..<3 {
            let answer = await visitor.refresh(token)
            #expect(answer.status == 200)
            #expect(answer.json["refresh_token"] == nil)
        }
        #expect(await visitor.counter("refreshes") == 3)
        #expect(await visitor.counter("rotations") == 0)
    }

    @Test func `a refresh can ask for fewer scopes but not for more`() async throws {
        let first = try await visitor.signIn(["scope": "openid email"]).text("refresh_token")
        #expect(await visitor.refresh(first, [("scope", "openid repo")]).error == "invalid_scope")
        let downscoped = await visitor.refresh(first, [("scope", "openid")]).json
        #expect(downscoped["scope"] == "openid")
        #expect(await visitor.userinfo(try downscoped.text("access_token")).json["email"] == nil)
        #expect(await visitor.refresh(try downscoped.text("refresh_token")).json["scope"] == "openid email")
    }

    @Test func `refresh tokens end`() async throws {
        await visitor.control(["refresh_token_lifetime": 100])
        let token = try await visitor.signIn().text("refresh_token")
        visitor.clock.advance(by: 100)
        #expect(await visitor.refresh(token).error == "invalid_grant")
    }

    @Test func `an answer can say how long its refresh token lasts`() async throws {
        await visitor.control(["refresh_token_lifetime": 100])
        #expect(try await visitor.signIn()["refresh_expires_in"] == nil)
        await visitor.control(["refresh_expires_in": true])
        let first = try await visitor.signIn()
        #expect(first["refresh_expires_in"] == 100)
        visitor.clock.advance(by: 40)
        let second = await visitor.refresh(try first.text("refresh_token")).json
        #expect(second["refresh_expires_in"] == 100, "it is a new one")
        await visitor.control(["rotation": false])
        visitor.clock.advance(by: 40)
        let third = await visitor.refresh(try second.text("refresh_token")).json
        #expect(third["refresh_expires_in"] == 60, "the old one stays")
        visitor.clock.advance(by: 60)
        #expect(await visitor.refresh(try second.text("refresh_token")).error == "invalid_grant")
    }

    @Test func `what does not end has no remaining life`() async throws {
        await visitor.control(["refresh_expires_in": true])
        #expect(try await visitor.signIn()["refresh_expires_in"] == nil)
    }

    @Test func `refresh tokens come always, for offline access, or never`() async throws {
        await visitor.control(["refresh_tokens": "offline_access"])
        #expect(try await visitor.signIn(["scope": "openid"])["refresh_token"] == nil)
        #expect(try await visitor.signIn()["refresh_token"] != nil)
        await visitor.control(["refresh_tokens": "never"])
        #expect(try await visitor.signIn()["refresh_token"] == nil)
    }

    @Test func `what is not a plain form is refused`() async {
        let json = await visitor.send(
            "POST", "/token", fields: [("Content-Type", "application/json")], body: Array("{}".utf8))
        #expect(json.error == "invalid_request")
        let broken = await visitor.send(
            "POST", "/token", fields: [("Content-Type", "application/x-www-form-urlencoded")], body: Array("a=%zz".utf8)
        )
        #expect(broken.error == "invalid_request")
        #expect(await visitor.post("/token?client_id=ringback-demo", [("grant_type", "x")]).error == "invalid_request")
        let twice = [("grant_type", "refresh_token"), ("grant_type", "refresh_token"), ("client_id", "ringback-demo")]
        #expect(await visitor.post("/token", twice).error == "invalid_request")
        let read = await visitor.get("/token")
        #expect(read.status == 405)
        #expect(read.fields["Allow"] == "POST")
    }

    @Test func `another client's code and refresh token are unknown`() async throws {
        await visitor.control(["clients": [["id": "other"]]])
        let code = try await visitor.code()
        #expect(await visitor.exchange(code, ["client_id": "other"]).error == "invalid_grant")
        let tokens = await visitor.exchange(code).json
        let form = [("grant_type", "refresh_token"), ("client_id", "other")]
        let answer = await visitor.post("/token", form + [("refresh_token", try tokens.text("refresh_token"))])
        #expect(answer.error == "invalid_grant")
    }
}

@Suite struct `Client authentication` {
    private func visitor(_ authentication: String? = nil) async -> Visitor {
        let visitor = Visitor.quick()
        var client = JSONObject([.init("id", "a client"), .init("secret", "p:ä %+")])
        if let authentication { client["authentication"] = .string(authentication) }
        await visitor.control(["clients": [.object(client)]])
        return visitor
    }

    private func basic(_ id: String, _ secret: String) -> [(String, String)] {
        let text = FormEncoding.escape(id, spaceAsPlus: true) + ":" + FormEncoding.escape(secret, spaceAsPlus: true)
        return [("Authorization", "Basic " + Base64.encode(Array(text.utf8)))]
    }

    private func exchange(
        _ visitor: Visitor, form extra: [(String, String)] = [], fields: [(String, String)] = []
    ) async throws -> Answer {
        let code = try await visitor.code(["client_id": "a client"])
        let form = [
            ("grant_type", "authorization_code"), ("code", code), ("redirect_uri", callback),
            ("code_verifier", verifier),
        ]
        return await visitor.post("/token", form + extra, fields: fields)
    }

    @Test func `basic credentials are form-encoded first`() async throws {
        #expect(try await exchange(visitor(), fields: basic("a client", "p:ä %+")).status == 200)
        let raw = [("Authorization", "Basic " + Base64.encode(Array("a client:p:ä %+".utf8)))]
        #expect(try await exchange(visitor(), fields: raw).error == "invalid_client")
    }

    @Test func `a secret in the form is accepted`() async throws {
        let form = [("client_id", "a client"), ("client_secret", "p:ä %+")]
        #expect(try await exchange(visitor(), form: form).status == 200)
    }

    @Test func `a wrong secret is answered with the scheme`() async throws {
        let answer = try await exchange(visitor(), fields: basic("a client", "wrong"))
        #expect(answer.status == 401)
        #expect(answer.error == "invalid_client")
        #expect(answer.fields["WWW-Authenticate"]?.hasPrefix("Basic ") == true)
    }

    @Test func `a confidential client without its secret is nobody`() async throws {
        #expect(try await exchange(visitor(), form: [("client_id", "a client")]).error == "invalid_client")
    }

    @Test func `two ways at once are one too many`() async throws {
        let form = [("client_secret", "p:ä %+")]
        let answer = try await exchange(visitor(), form: form, fields: basic("a client", "p:ä %+"))
        #expect(answer.error == "invalid_request")
    }

    @Test func `a client registered for one way may not use the other`() async throws {
        let form = [("client_id", "a client"), ("client_secret", "p:ä %+")]
        #expect(try await exchange(visitor("client_secret_basic"), form: form).error == "invalid_client")
        let header = basic("a client", "p:ä %+")
        #expect(try await exchange(visitor("client_secret_post"), fields: header).error == "invalid_client")
    }
}
