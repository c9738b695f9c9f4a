import RingbackBase
import Testing

@testable import Sandbox

@Suite struct `Userinfo, revocation and end of session` {
    let visitor = Visitor.quick()

    @Test func `userinfo says what the scopes allow`() async throws {
        let token = try await visitor.signIn(["scope": "openid email"]).text("access_token")
        let answer = await visitor.userinfo(token)
        #expect(answer.json == ["sub": "alice", "email": "alice@example.org", "email_verified": true])
        let profile = try await visitor.signIn(["scope": "openid profile"]).text("access_token")
        #expect(await visitor.userinfo(profile).json["name"] == "Alice")
        let other = try await visitor.signIn(["scope": "repo"]).text("access_token")
        #expect(await visitor.userinfo(other).status == 403)
    }

    @Test func `the token comes in the header and nowhere else`() async throws {
        let token = try await visitor.signIn().text("access_token")
        #expect(await visitor.get("/userinfo", [("access_token", token)]).error == "invalid_request")
        #expect(await visitor.post("/userinfo", [("access_token", token)]).error == "invalid_request")
        let none = await visitor.get("/userinfo")
        #expect(none.status == 401)
        #expect(none.fields["WWW-Authenticate"] == "Bearer realm=\"sandbox\"")
        let header = [("Authorization", "bearer \(token)")]
        #expect(await visitor.post("/userinfo", [], fields: header).status == 200)
        let twice = await visitor.get("/userinfo", [("access_token", token)], fields: header)
        #expect(twice.error == "invalid_request")
    }

    @Test func `an access token ends`() async throws {
        await visitor.control(["access_token_lifetime": 5])
        let token = try await visitor.signIn().text("access_token")
        visitor.clock.advance(by: 4)
        #expect(await visitor.userinfo(token).status == 200)
        visitor.clock.advance(by: 1)
        let answer = await visitor.userinfo(token)
        #expect(answer.error == "invalid_token")
        #expect(answer.status == 401)
    }

    private func revoke(_ token: String, client: String = "ringback-demo") async -> Answer {
        await visitor.post("/revoke", [("token", token), ("client_id", client)])
    }

    @Test func `revoking a refresh token ends the family`() async throws {
        let first = try await visitor.signIn()
        let second = await visitor.refresh(try first.text("refresh_token")).json
        #expect(await revoke(try second.text("refresh_token")).status == 200)
        for tokens in [first, second] {
            #expect(await visitor.userinfo(try tokens.text("access_token")).status == 401)
            #expect(await visitor.refresh(try tokens.text("refresh_token")).error == "invalid_grant")
        }
        #expect(await visitor.counter("revocations") == 1)
        #expect(await visitor.counter("reuse_detections") == 0)
    }

    @Test func `revoking an access token ends it alone`() async throws {
        let tokens = try await visitor.signIn()
        #expect(await revoke(try tokens.text("access_token")).status == 200)
        #expect(await visitor.userinfo(try tokens.text("access_token")).status == 401)
        #expect(await visitor.refresh(try tokens.text("refresh_token")).status == 200)
    }

    @Test func `an unknown token is as good as revoked, another client's is not`() async throws {
        #expect(await revoke("nonsense").status == 200)
        await visitor.control(["clients": [["id": "other"]]])
        let tokens = try await visitor.signIn()
        #expect(await revoke(try tokens.text("refresh_token"), client: "other").error == "unauthorized_client")
        #expect(await revoke(try tokens.text("refresh_token"), client: "nobody").error == "invalid_client")
        #expect(await visitor.refresh(try tokens.text("refresh_token")).status == 200)
    }

    @Test func `the end of a session is answered to the client, with its state`() async throws {
        let tokens = try await visitor.signIn(["scope": "openid"])
        let answer = await visitor.get(
            "/logout",
            [
                ("id_token_hint", try tokens.text("id_token")), ("post_logout_redirect_uri", callback),
                ("state", "bye"),
            ])
        #expect(answer.status == 303)
        #expect(answer.location == callback + "?state=bye")
        #expect(await visitor.refresh(try tokens.text("refresh_token")).error == "invalid_grant")
        #expect(await visitor.counter("ended_sessions") == 1)
    }

    @Test func `offline access survives the end of the session`() async throws {
        let tokens = try await visitor.signIn()
        #expect(await visitor.get("/logout", [("id_token_hint", try tokens.text("id_token"))]).status == 200)
        #expect(await visitor.refresh(try tokens.text("refresh_token")).status == 200)
    }

    @Test func `the end of a session redirects nowhere else`() async throws {
        let hint = ("id_token_hint", try await visitor.signIn().text("id_token"))
        let stranger = await visitor.get("/logout", [hint, ("post_logout_redirect_uri", "https://evil.example.org/")])
        #expect(stranger.status == 400)
        #expect(await visitor.get("/logout", [("post_logout_redirect_uri", callback)]).status == 400)
        #expect(await visitor.get("/logout", [("id_token_hint", "e30.e30.")]).status == 400)
        #expect(await visitor.get("/logout", [hint, ("client_id", "other")]).status == 400)
    }
}
