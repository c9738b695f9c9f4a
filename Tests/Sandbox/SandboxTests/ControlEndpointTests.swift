import Foundation
import RingbackBase
import Testing

@testable import Sandbox

@Suite(.timeLimit(.minutes(1))) struct `The control endpoint` {
    let visitor = Visitor.quick()

    @Test(arguments: [
        "", "[]", "{", #"{"frob":1}"#, #"{"access_token_lifetime":"5"}"#, #"{"access_token_lifetime":-1}"#,
        #"{"access_token_lifetime":5,"access_token_lifetime":6}"#, #"{"algorithm":"none"}"#,
        #"{"auto_approve":"mallory"}"#, #"{"latency":{"nowhere":1}}"#, #"{"perturb":["lie"]}"#,
        #"{"perturb":[{"name":"callback_no_iss","times":1}]}"#, #"{"faults":[{"endpoint":"token"}]}"#,
        #"{"faults":[{"endpoint":"token","kind":"explode"}]}"#,
        #"{"faults":[{"endpoint":"token","kind":"status","status":99}]}"#,
        #"{"faults":[{"endpoint":"token","kind":"hang","count":0}]}"#, #"{"users":["Not A Name"]}"#,
        #"{"clients":[{"secret":"x"}]}"#, #"{"endpoints":{"nowhere":"http://127.0.0.1:9/"}}"#,
        #"{"endpoints":{"token":1}}"#,
        #"{"release":"nowhere"}"#, #"{"revoke_all":"mallory"}"#, #"{"device":{"decision":"maybe"}}"#,
        #"{"device":{"decision":"allow","user":"mallory"}}"#, #"{"device_answer":1}"#, #"{"device":{}}"#,
    ])
    func `a mistake is explained and changes nothing`(body: String) async {
        let before = await visitor.get("/sandbox/control").json
        let mixed = body.hasPrefix("{\"") ? #"{"require_nonce":true,"# + body.dropFirst() : body
        let answer = await visitor.send("POST", "/sandbox/control", body: Array(mixed.utf8))
        #expect(answer.status == 400)
        #expect(answer.json["error_description"]?.string?.isEmpty == false)
        #expect(await visitor.get("/sandbox/control").json == before)
    }

    @Test func `settings are shown as they are set`() async {
        let settings: JSON = [
            "access_token_lifetime": 5, "id_token_lifetime": 6, "code_lifetime": 7, "refresh_token_lifetime": 8,
            "refresh_expires_in": true, "omit_expires_in": true, "refresh_tokens": "never", "rotation": false,
            "reuse_grace": 9, "id_token_on_refresh": false, "downscope_refresh_tokens": true, "algorithm": "EdDSA",
            "device_grant": false, "device_interval": 11, "device_code_lifetime": 12,
            "device_answer": ["interval": .null, "user_code": "x"], "registration": "token",
            "initial_access_token": "x", "registered_authentication": "client_secret_post",
            "registered_secret_lifetime": 60,
            "assertion_issuers": ["https://id.example": ["keys": []]],
            "pushed_requests": "required", "dpop": "offered", "dpop_binds": "refresh_tokens", "dpop_nonce": "once",
            "pushed_status": 200, "require_response_type": true,
            "require_nonce": true, "omit_kid": true, "latency": ["token": 10],
            "endpoints": ["token": "http://127.0.0.1:9/token"], "auto_approve": "bob",
        ]
        #expect(await visitor.control(settings).json["settings"] == settings)
        #expect(await visitor.control(["reset": true]).json["settings"]?["algorithm"] == "ES256")
    }

    @Test func `the page about the sandbox names each switch, and no other`() async throws {
        let page = SupabaseVector.folder.appending(path: "../../../../docs/sandbox.md")
        let rows = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("| `") }
        let named = Set(rows.flatMap { row in row.dropFirst().prefix { $0 != "|" }.matches(of: /`(\w+)`/).map(\.1) })
        for setting in try #require(await visitor.get("/sandbox/control").json["settings"]?.object).members {
            #expect(named.contains(setting.name[...]), "\(setting.name)")
        }
        for name in named {
            let answer = await visitor.control([String(name): .null])
            #expect(
                answer.json["error_description"]?.string?.hasSuffix("is not a key of this document") != true, "\(name)")
        }
    }

    @Test func `a reset forgets everything, before the rest of the document`() async throws {
        let tokens = try await visitor.signIn()
        await visitor.control(["users": ["dora"], "auto_approve": "dora", "rotation": false])
        let answer = await visitor.control(["access_token_lifetime": 9, "reset": true]).json
        #expect(answer["users"] == ["alice", "bob", "carol"])
        #expect(answer["settings"]?["auto_approve"] == "alice")
        #expect(answer["settings"]?["rotation"] == true)
        #expect(answer["settings"]?["access_token_lifetime"] == 9)
        #expect(await visitor.counter("sign_ins") == 0)
        #expect(await visitor.get("/sandbox/log").json["requests"] == [])
        #expect(await visitor.userinfo(try tokens.text("access_token")).status == 401)
    }

    @Test func `users and clients can be added`() async throws {
        await visitor.control([
            "auto_approve": "dora", "users": ["dora"],
            "clients": [["id": "app", "redirect_uris": ["app.example:/cb"]]],
        ])
        let answer = await visitor.authorize(["client_id": "app", "redirect_uri": "app.example:/cb"])
        #expect(answer.location?.hasPrefix("app.example:/cb?code=") == true)
        let tokens = try await visitor.signIn()
        #expect(await visitor.userinfo(try tokens.text("access_token")).json["sub"] == "dora")
    }

    @Test func `a user's sessions can be ended, and everybody's`() async throws {
        let alice = try await visitor.signIn()
        await visitor.control(["auto_approve": "bob"])
        let bob = try await visitor.signIn()
        await visitor.control(["revoke_all": "alice"])
        #expect(await visitor.refresh(try alice.text("refresh_token")).error == "invalid_grant")
        let next = await visitor.refresh(try bob.text("refresh_token"))
        #expect(next.status == 200)
        await visitor.control(["revoke_all": true])
        #expect(await visitor.refresh(try next.json.text("refresh_token")).error == "invalid_grant")
        #expect(await visitor.counter("ended_sessions") == 2)
    }

    @Test func `the clock can be advanced`() async throws {
        let tokens = try await visitor.signIn()
        await visitor.control(["advance_clock": 3_600])
        #expect(await visitor.userinfo(try tokens.text("access_token")).status == 401)
        #expect(await visitor.refresh(try tokens.text("refresh_token")).status == 200)
    }

    @Test func `the metadata can name another place for an endpoint`() async throws {
        let place = "http://127.0.0.1:9/elsewhere"
        await visitor.control(["endpoints": ["token": .string(place)]])
        let metadata = await visitor.get("/.well-known/openid-configuration").json
        #expect(metadata["token_endpoint"] == .string(place))
        #expect(metadata["userinfo_endpoint"] == .string(origin + "/userinfo"))
        #expect(try await visitor.signIn()["access_token"] != nil, "it still answers at its own place")
        await visitor.control(["endpoints": [:]])
        let honest = await visitor.get("/.well-known/openid-configuration").json
        #expect(honest["token_endpoint"] == .string(origin + "/token"))
    }

    @Test func `expires_in can be left out`() async throws {
        await visitor.control(["omit_expires_in": true])
        #expect(try await visitor.signIn()["expires_in"] == nil)
    }

    @Test func `the log has every request with its parameters and its answer`() async throws {
        let tokens = try await visitor.signIn()
        _ = await visitor.refresh("rt-wrong", [("scope", "a"), ("scope", "b")])
        let log = try #require(await visitor.get("/sandbox/log").json["requests"]?.array)
        #expect(log.map { $0["endpoint"]?.string } == ["authorize", "token", "token"])
        #expect(log.map { $0["status"]?.integer } == [303, 200, 400])
        #expect(log.last?["parameters"]?["refresh_token"] == "rt-wrong")
        #expect(log.last?["parameters"]?["scope"] == ["a", "b"])
        #expect(log.first?["headers"]?["host"] == "127.0.0.1:8080")
        var other = visitor
        other.prefix = "/tenant-a"
        #expect(await other.get("/sandbox/log").json["requests"] == [])
        _ = await other.userinfo(try tokens.text("access_token"))
        #expect(await other.get("/sandbox/log").json["requests"]?.array?.first?["status"] == 401)
    }

    @Test func `token requests are counted by grant, refused ones too`() async throws {
        _ = try await visitor.signIn()
        _ = await visitor.refresh("rt-wrong")
        let counters = await visitor.get("/sandbox/counters").json
        #expect(counters["token_requests"] == ["authorization_code": 1, "refresh_token": 1])
        #expect(counters["requests"]?["token"] == 2)
        #expect(counters["requests"]?["userinfo"] == 0)
        #expect(counters["codes_issued"] == 1)
        #expect(counters["tokens_issued"] == 1)
        #expect(counters["refreshes"] == 0)
    }

    @Test func `waiting has a bound, and counts what was seen`() async {
        let late = await visitor.get("/sandbox/wait", [("endpoint", "token"), ("timeout", "0")])
        #expect(late.status == 504)
        #expect(late.json == ["waiting": 0, "seen": 0])
        let visitor = visitor
        await withTaskGroup(of: Int.self) { group in
            group.addTask {
                await visitor.get("/sandbox/wait", [("endpoint", "jwks"), ("what", "seen"), ("count", "2")]).status
            }
            for _ in 0..<2 { _ = await visitor.get("/jwks") }
            #expect(await group.next() == 200)
        }
        #expect(await visitor.get("/sandbox/wait").status == 400)
        #expect(await visitor.get("/sandbox/wait", [("endpoint", "token"), ("what", "x")]).status == 400)
    }

    @Test func `latency delays an endpoint`() async {
        await visitor.control(["latency": ["jwks": 30]])
        let start = ContinuousClock.now
        _ = await visitor.get("/jwks")
        #expect(ContinuousClock.now - start >= .milliseconds(30))
    }

    @Test func `web pages are turned away`() async {
        let body = Array("{}".utf8)
        for field in [("Origin", "https://evil.example.org"), ("Sec-Fetch-Site", "cross-site"), ("Origin", "null")] {
            #expect(await visitor.send("POST", "/sandbox/control", fields: [field], body: body).status == 403)
            #expect(await visitor.get("/sandbox/log", fields: [field]).status == 403)
        }
        #expect(await visitor.get("/sandbox/log", fields: [("Sec-Fetch-Site", "same-origin")]).status == 200)
    }

    @Test func `other paths and methods are refused`() async {
        #expect(await visitor.get("/sandbox/nothing").status == 404)
        #expect(await visitor.send("DELETE", "/sandbox/control").status == 405)
        #expect(await visitor.send("POST", "/sandbox/log").status == 405)
    }
}
