import LocalHTTP
import RingbackBase
import Testing

@testable import Sandbox

@Suite(.timeLimit(.minutes(1))) struct `Faults` {
    let visitor = Visitor.quick()

    private func fault(_ kind: String, _ members: (String, JSON)...) async {
        var fault = JSONObject([.init("endpoint", "token"), .init("kind", .string(kind)), .init("count", 1)])
        for (name, value) in members { fault[name] = value }
        #expect(await visitor.control(["faults": [.object(fault)]]).status == 200)
    }

    @Test func `a status comes as often as was said, and changes nothing`() async throws {
        let token = try await visitor.signIn().text("refresh_token")
        await fault("status", ("status", 503), ("retry_after", 7), ("count", 2))
        for _ in 0..<2 {
            let answer = await visitor.refresh(token)
            #expect(answer.status == 503)
            #expect(answer.fields["Retry-After"] == "7")
        }
        #expect(await visitor.refresh(token).status == 200)
        #expect(await visitor.counter("reuse_detections") == 0)
    }

    @Test func `an answer can be lost after the request took effect`() async throws {
        let token = try await visitor.signIn().text("refresh_token")
        await fault("status", ("status", 500), ("processed", true))
        #expect(await visitor.refresh(token).status == 500)
        #expect(await visitor.counter("rotations") == 1)
        #expect(await visitor.refresh(token).error == "invalid_grant")
    }

    @Test func `a rotation is counted as answered only if its answer goes out whole`() async throws {
        let token = try await visitor.signIn().text("refresh_token")
        #expect(await visitor.counter("rotations_answered") == 0)
        let second = try await visitor.refresh(token).json.text("refresh_token")
        #expect(await visitor.counter("rotations_answered") == 1)
        await fault("truncated")
        _ = await visitor.refresh(second)
        #expect(await visitor.counter("rotations") == 2)
        #expect(await visitor.counter("rotations_answered") == 1)
    }

    @Test func `a fault can concern one grant only`() async throws {
        await fault("status", ("status", 429), ("grant_type", "refresh_token"))
        let tokens = try await visitor.signIn()
        #expect(await visitor.refresh(try tokens.text("refresh_token")).status == 429)
    }

    @Test func `answers can be pages, redirects, empty or errors`() async throws {
        let token = try await visitor.signIn().text("refresh_token")
        await fault("html")
        let page = await visitor.refresh(token)
        #expect(page.status == 200)
        #expect(page.text.hasPrefix("<!DOCTYPE html>"))
        await fault("redirect", ("to", "http://127.0.0.1:9/token"))
        let redirect = await visitor.refresh(token)
        #expect(redirect.status == 307)
        #expect(redirect.location == "http://127.0.0.1:9/token")
        await fault("empty")
        let empty = await visitor.refresh(token)
        #expect(empty.status == 400)
        #expect(empty.body.isEmpty)
        await fault("error", ("error", "temporarily_unavailable"))
        #expect(await visitor.refresh(token).error == "temporarily_unavailable")
        #expect(await visitor.refresh(token).status == 200)
    }

    @Test func `answers can be broken JSON that took effect`() async throws {
        for kind in ["invalid_json", "duplicate_members"] {
            let token = try await visitor.signIn().text("refresh_token")
            await fault(kind)
            let answer = await visitor.refresh(token)
            #expect(answer.status == 200)
            #expect(answer.text.contains("refresh_token"))
            #expect(throws: JSONError.self) { try JSON(parsing: answer.body) }
            #expect(await visitor.refresh(token).error == "invalid_grant")
        }
    }

    @Test func `answers can be too large`() async throws {
        await fault("oversize", ("bytes", 3_000_000))
        let answer = try await visitor.signIn()
        #expect(answer["access_token"] != nil)
        #expect(answer["padding"]?.string?.utf8.count == 3_000_000)
    }

    @Test func `answers can end before they said they would`() async throws {
        let code = try await visitor.code()
        await fault("truncated")
        let peer = Peer.network(client: [127, 0, 0, 1], clientPort: 1, server: [127, 0, 0, 1], serverPort: 8080)
        let form =
            "grant_type=authorization_code&client_id=ringback-demo&code=\(code)&code_verifier=\(verifier)"
            + "&redirect_uri=\(callback)"
        let response = await visitor.site.respond(
            to: ServerRequest(
                method: "POST", target: "/token",
                fields: .init([("Content-Type", "application/x-www-form-urlencoded")]), body: Array(form.utf8),
                peer: peer))
        guard case .stream(let stream) = response.body else {
            Issue.record("not a stream")
            return
        }
        var sent = 0
        for await bytes in stream { sent += bytes.count }
        #expect(sent > 0)
        #expect(try #require(response.fields["Content-Length"].flatMap { Int($0) }) > sent)
    }

    @Test func `a gate holds requests until it is opened`() async throws {
        let token = try await visitor.signIn().text("refresh_token")
        await fault("gate")
        let visitor = visitor
        await withTaskGroup(of: Answer.self) { group in
            group.addTask { await visitor.refresh(token) }
            let waiting = await visitor.get("/sandbox/wait", [("endpoint", "token"), ("count", "1")])
            #expect(waiting.status == 200)
            #expect(waiting.json["waiting"] == 1)
            #expect(await visitor.counter("refreshes") == 0)
            await visitor.control(["release": "userinfo"])
            #expect(await visitor.get("/sandbox/control").json["waiting"]?["token"] == 1)
            await visitor.control(["release": "token"])
            #expect(await group.next()?.status == 200)
        }
        #expect(await visitor.counter("refreshes") == 1)
    }

    @Test func `a gate opens for some before others`() async throws {
        await visitor.control(["faults": [["endpoint": "jwks", "kind": "gate"]]])
        let visitor = visitor
        await withTaskGroup(of: Int.self) { group in
            for _ in 0..<3 { group.addTask { await visitor.get("/jwks").status } }
            _ = await visitor.get("/sandbox/wait", [("endpoint", "jwks"), ("count", "3")])
            await visitor.control(["release": ["endpoint": "jwks", "count": 2]])
            #expect(await group.next() == 200)
            #expect(await group.next() == 200)
            #expect(await visitor.get("/sandbox/control").json["waiting"]?["jwks"] == 1)
            await visitor.control(["release": true])
            #expect(await group.next() == 200)
        }
    }

    @Test func `behind a gate another fault can wait`() async throws {
        let token = try await visitor.signIn().text("refresh_token")
        await fault("gate")
        await fault("status", ("status", 502))
        let visitor = visitor
        await withTaskGroup(of: Int.self) { group in
            group.addTask { await visitor.refresh(token).status }
            _ = await visitor.get("/sandbox/wait", [("endpoint", "token")])
            await visitor.control(["release": true])
            #expect(await group.next() == 502)
        }
        #expect(await visitor.refresh(token).status == 200)
    }

    @Test func `a hang ends when the client goes, and has no effect`() async throws {
        let token = try await visitor.signIn().text("refresh_token")
        await fault("hang")
        let visitor = visitor
        await withTaskGroup(of: Int.self) { group in
            group.addTask { await visitor.refresh(token).status }
            _ = await visitor.get("/sandbox/wait", [("endpoint", "token")])
            await visitor.control(["release": true])
            #expect(await visitor.get("/sandbox/control").json["waiting"]?["token"] == 1)
            group.cancelAll()
            #expect(await group.next() == 503)
        }
        #expect(await visitor.get("/sandbox/control").json["waiting"]?["token"] == 0)
        #expect(await visitor.refresh(token).status == 200)
    }

    @Test func `clearing lets everybody go`() async throws {
        await fault("hang", ("endpoint", "userinfo"))
        let visitor = visitor
        await withTaskGroup(of: Int.self) { group in
            group.addTask { await visitor.userinfo("x").status }
            _ = await visitor.get("/sandbox/wait", [("endpoint", "userinfo")])
            await visitor.control(["clear": true])
            #expect(await group.next() == 503)
        }
    }

    @Test func `a request that was processed first can be held`() async throws {
        let token = try await visitor.signIn().text("refresh_token")
        await fault("gate", ("processed", true))
        let visitor = visitor
        await withTaskGroup(of: Answer.self) { group in
            group.addTask { await visitor.refresh(token) }
            _ = await visitor.get("/sandbox/wait", [("endpoint", "token")])
            #expect(await visitor.counter("rotations") == 1)
            await visitor.control(["release": true])
            #expect(await group.next()?.json["refresh_token"] != nil)
        }
    }
}
