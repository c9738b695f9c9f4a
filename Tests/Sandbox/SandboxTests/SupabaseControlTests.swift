import RingbackBase
import Synchronization
import Testing

@testable import Sandbox

@Suite(.timeLimit(.minutes(1))) struct `Switching a Supabase project` {
    let visitor: Visitor = {
        var visitor = Visitor.quick()
        visitor.prefix = "/supabase"
        return visitor
    }()

    private func call(_ method: String, _ path: String, _ body: JSON? = nil, bearer: String? = nil) async -> Answer {
        var fields = [("apikey", "sb_publishable_sandbox")]
        if let bearer { fields.append(("Authorization", "Bearer \(bearer)")) }
        return await visitor.send(
            method, "/supabase/auth/v1/" + path, fields: fields, body: body?.serialized() ?? [])
    }

    private func signUp() async throws -> (access: String, refresh: String) {
        let answer = await call("POST", "signup", ["email": "mira@example.org", "password": "a long password"]).json
        return (try answer.text("access_token"), try answer.text("refresh_token"))
    }

    @Test(arguments: [
        #"{"supabase":1}"#, #"{"supabase":{"configuration":"C"}}"#, #"{"supabase":{"reuse_interval":"10"}}"#,
        #"{"supabase":{"nothing":true}}"#, #"{"supabase":{"site_url":"nowhere"}}"#,
        #"{"supabase":{"sso_domains":{"a.example":"x"}}}"#, #"{"supabase":{"users":[{"name":"x"}]}}"#,
        #"{"supabase":{"otp_length":5}}"#, #"{"supabase":{"autoconfirm":false,"tables":[]}}"#,
        #"{"supabase":{"allow_list":"**"}}"#, #"{"supabase":{"upgrade":101}}"#,
        #"{"supabase":{"token_hook":{"status":200}}}"#, #"{"supabase":{"token_hook":{"why":"x"}}}"#,
    ]) func `a mistake changes nothing`(document: String) async throws {
        let before = await visitor.get("/sandbox/control").json["supabase"]
        let answer = await visitor.send("POST", "/supabase/sandbox/control", body: Array(document.utf8))
        #expect(answer.status == 400)
        #expect(try answer.json.text("error_description").hasPrefix("supabase"))
        #expect(await visitor.get("/sandbox/control").json["supabase"] == before)
    }

    @Test func `the answer shows the settings under the names that set them`() async throws {
        let shown = try #require(await visitor.control(["supabase": ["configuration": "B"]]).json["supabase"]?.object)
        #expect(shown["refresh_tokens"] == "v2")
        #expect(shown["autoconfirm"] == false)
        #expect(shown["algorithm"] == "ES256")
        #expect(await visitor.control(["supabase": .object(shown)]).json["supabase"] == .object(shown))
        #expect(await visitor.control(["reset": true]).json["supabase"]?["configuration"] == "A")
    }

    @Test func `each mail and SMS is announced with its code and stands in the inbox, newest first`() async throws {
        let lines = Mutex<[String]>([])
        var options = SandboxOptions()
        options.announce = { line in lines.withLock { $0.append(line) } }
        var visitor = Visitor(options)
        visitor.prefix = "/supabase"
        #expect(await visitor.get("/sandbox/inbox").text.contains("Nothing has been sent yet."))
        for body in [#"{"phone":"+14155550100"}"#, #"{"email":"alice@example.org"}"#] {
            let answer = await visitor.send(
                "POST", "/supabase/auth/v1/otp", fields: [("apikey", "sb_publishable_sandbox")],
                body: Array(body.utf8))
            #expect(answer.status == 200, "\(answer)")
        }
        let announced = lines.withLock { $0 }
        #expect(announced.count == 2)
        #expect(announced.first?.wholeMatch(of: /SMS to 14155550100 \(sms\): [0-9]{6}/) != nil, "\(announced)")
        #expect(announced.last?.hasPrefix("Mail to alice@example.org (") == true, "\(announced)")
        let page = await visitor.get("/sandbox/inbox").text
        let mail = try #require(page.firstRange(of: "alice@example.org"))
        let sms = try #require(page.firstRange(of: "SMS to <strong>14155550100</strong> (sms): <code>"))
        #expect(mail.lowerBound < sms.lowerBound)
        #expect(page.contains(try #require(announced.first?.split(separator: " ").last)))
    }

    @Test(arguments: [
        ("recover", #"{"email":"alice@example.org"}"#, "no mail to alice@example.org: the project has no such user"),
        ("resend", #"{"type":"sms","phone":"14155550100"}"#, "no SMS to 14155550100: the project has no such user"),
        (
            "resend", #"{"type":"signup","email":"mira@example.org"}"#,
            "no mail to mira@example.org: nothing of the user waits to be confirmed"
        ),
        (
            "signup", #"{"email":"mira@example.org","password":"a long password"}"#,
            "no mail to mira@example.org: the user has signed up already"
        ),
    ]) func `a message that the response only pretends to have sent is announced as missing`(
        path: String, body: String, line: String
    ) async throws {
        let lines = Mutex<[String]>([])
        var options = SandboxOptions()
        options.announce = { line in lines.withLock { $0.append(line) } }
        var visitor = Visitor(options)
        visitor.prefix = "/supabase"
        await visitor.control(["supabase": ["autoconfirm": false, "users": [["email": "mira@example.org"]]]])
        let answer = await visitor.send(
            "POST", "/supabase/auth/v1/\(path)", fields: [("apikey", "sb_publishable_sandbox")],
            body: Array(body.utf8))
        #expect(answer.status == 200, "\(answer)")
        #expect(lines.withLock { $0 } == [line])
    }

    @Test func `every issuer has a project of its own`() async throws {
        await visitor.control(["supabase": ["anonymous": false]])
        #expect(await call("POST", "signup", [:]).status == 422)
        let other = await visitor.send(
            "POST", "/tenant-a/auth/v1/signup", fields: [("apikey", "sb_publishable_sandbox")], body: Array("{}".utf8))
        #expect(other.status == 200)
        #expect(await call("GET", "user", bearer: try other.json.text("access_token")).json["error_code"] == "bad_jwt")
    }

    @Test func `a refusal by fault has the shape that the request asks for`() async {
        await visitor.control([
            "faults": [
                [
                    "endpoint": "supabase_token", "grant_type": "refresh_token", "kind": "error", "error": "conflict",
                    "status": 409, "message": "Too many concurrent token refresh requests", "count": 1,
                ]
            ]
        ])
        #expect(await call("POST", "token?grant_type=password", [:]).status == 400)
        let answer = await visitor.send(
            "POST", "/supabase/auth/v1/token?grant_type=refresh_token",
            fields: [("apikey", "x"), ("X-Supabase-Api-Version", "2024-01-01")])
        #expect(answer.status == 409)
        #expect(answer.json == ["code": "conflict", "message": "Too many concurrent token refresh requests"])
        #expect(answer.fields["x-sb-error-code"] == "conflict")
        #expect(await call("POST", "token?grant_type=refresh_token", ["refresh_token": "x"]).status == 400)
    }

    @Test func `a refusal by fault can have any body`() async {
        let body: JSON = ["code": "P0001", "message": "no more seats", "hint": "ask", "detail": .null]
        await visitor.control([
            "faults": [["endpoint": "supabase_signup", "kind": "error", "status": 500, "body": body]]
        ])
        let answer = await call("POST", "signup", [:])
        #expect(answer.status == 500)
        #expect(answer.json == body)
        #expect(!answer.fields.contains("x-sb-error-code"))
    }

    @Test func `a fault can concern one path of a group`() async throws {
        let tokens = try await signUp()
        await visitor.control([
            "faults": [["endpoint": "supabase_otp", "path": "/auth/v1/magiclink", "kind": "html", "status": 502]]
        ])
        #expect(await call("POST", "otp", ["email": "mira@example.org"]).status == 200)
        #expect(await call("POST", "magiclink", ["email": "mira@example.org"]).status == 502)
        #expect(await call("GET", "user", bearer: tokens.access).status == 200)
    }

    @Test func `the log shows bodies, and the counters groups and grants`() async throws {
        let tokens = try await signUp()
        _ = await call("POST", "token?grant_type=refresh_token", ["refresh_token": .string(tokens.refresh)])
        let log = try #require(await visitor.get("/sandbox/log").json["requests"]?.array)
        #expect(log.map { $0["endpoint"]?.string } == ["supabase_signup", "supabase_token"])
        #expect(log[1]["document"]?["refresh_token"]?.string == tokens.refresh)
        #expect(log[1]["parameters"]?["grant_type"] == "refresh_token")
        let counters = await visitor.get("/sandbox/counters").json
        #expect(counters["token_requests"]?["refresh_token"] == 1)
        #expect(counters["requests"]?["supabase_signup"] == 1)
        #expect(counters["rotations"] == 1)
    }

    @Test func `an answer that is lost leaves the parent of the active token usable`() async throws {
        await visitor.control([
            "faults": [
                ["endpoint": "supabase_token", "kind": "status", "status": 504, "processed": true, "count": 1]
            ]
        ])
        let tokens = try await signUp()
        let body: JSON = ["refresh_token": .string(tokens.refresh)]
        #expect(await call("POST", "token?grant_type=refresh_token", body).status == 504)
        let second = await call("POST", "token?grant_type=refresh_token", body)
        #expect(second.status == 200)
        #expect(second.fields["sb-auth-refresh-token-reuse"] == "true")
    }

    @Test func `a refresh that is held while a second factor is proved comes too late`() async throws {
        await visitor.control(["supabase": ["configuration": "B", "autoconfirm": true]])
        let tokens = try await signUp()
        let factor = await call("POST", "factors", ["factor_type": "totp"], bearer: tokens.access).json
        let path = "factors/" + (try factor.text("id"))
        let challenge = await call("POST", path + "/challenge", bearer: tokens.access).json
        let secret = try SupabaseTOTP.bytes(ofBase32: #require(factor["totp"]).text("secret"))
        let code = SupabaseTOTP.code(secret, counter: visitor.clock.now / 30)
        let proof: JSON = ["challenge_id": .string(try challenge.text("id")), "code": .string(code)]
        await visitor.control(["faults": [["endpoint": "supabase_token", "kind": "gate", "count": 1]]])
        async let held = call("POST", "token?grant_type=refresh_token", ["refresh_token": .string(tokens.refresh)])
        #expect(await visitor.get("/sandbox/wait", [("endpoint", "supabase_token")]).status == 200)
        let raised = await call("POST", path + "/verify", proof, bearer: tokens.access).json
        await visitor.control(["release": "supabase_token"])
        #expect(await held.json["error_code"] == "refresh_token_already_used")
        let late: JSON = ["refresh_token": .string(try raised.text("refresh_token"))]
        #expect(
            await call("POST", "token?grant_type=refresh_token", late).json["error_code"] == "refresh_token_not_found")
    }

    @Test func `rotated keys end tokens unless the old ones stay published`() async throws {
        await visitor.control(["supabase": ["configuration": "B", "autoconfirm": true]])
        let tokens = try await signUp()
        await visitor.control(["rotate_keys": "keep"])
        #expect(await call("GET", "user", bearer: tokens.access).status == 200)
        let keys = await visitor.get("/auth/v1/.well-known/jwks.json").json["keys"]?.array
        #expect(keys?.count == 2)
        await visitor.control(["rotate_keys": true])
        #expect(await call("GET", "user", bearer: tokens.access).json["error_code"] == "bad_jwt")
    }
}
