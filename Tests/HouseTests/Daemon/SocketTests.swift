import RingbackBase
import Testing

@Suite struct `The socket` {
    @Test(.enabled(if: Stranger.isPossible, Stranger.reason))
    func `SK-01: answers its own user and root, and no third`() async throws {
        guard try await Stranger.canRunTheDaemon() else {
            try Test.cancel("nobody cannot run \(Programs.path("ringbackd")) on this machine")
        }
        try await Stage.play(startsDaemon: false) { stage in
            let ordinary = try await stage.startOrdinaryDaemon(environment: [:])
            FileTree.setMode(0o777, of: "\(stage.directory)/theirs")
            FileTree.setMode(0o777, of: "\(stage.directory)/theirs/run")
            FileTree.setMode(0o666, of: ordinary.socket)
            let curl = [
                "/usr/bin/curl", "-sS", "--max-time", "20", "--unix-socket", ordinary.socket, "http://ringback/v1/peer",
            ]
            let own = try await stage.run(asUser: Stranger.uid, curl)
            #expect(try JSON(parsing: own.out.utf8)["uid"]?.integer == Int(Stranger.uid), "\(own)")
            let root = try await stage.run("/usr/bin/env", curl)
            #expect(try JSON(parsing: root.out.utf8)["uid"]?.integer == 0, "\(root)")
            let third = try await stage.run(asUser: Stranger.namedUID, curl)
            // They get there, and get nothing.
            let way = try await stage.run(asUser: Stranger.namedUID, script: "[ -w \"$1\" ]", ordinary.socket)
            #expect(way.status == 0 && third.status != 0 && third.out.isEmpty, "\(way) \(third)")
        }
    }

    @Test func `ADV-01, ADV-06: answers no web page, on the way of held tokens either`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let fields = [
                ("Origin", "https://evil.example"), ("Origin", "null"), ("Origin", "http://ringback"),
                ("Referer", "https://evil.example/"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"),
                ("Sec-Fetch-Site", "none"), ("Sec-Fetch-User", "?1"), ("sec-fetch-whatever", "x"), ("ORIGIN", ""),
            ]
            for field in fields {
                for (method, path) in [
                    ("GET", "/v1/accounts/work/session"), ("GET", "/v1/status"), ("POST", "/v1/accounts/home/sign-in"),
                    ("OPTIONS", "/v1/status"), ("GET", "/nothing"),
                ] {
                    let answer = try await stage.api(method, path, fields: [field])
                    #expect(answer.status == 403 && answer.code == "policy_denied", "\(field) \(path): \(answer)")
                    #expect(answer.fields.keys.allSatisfy { !$0.hasPrefix("access-control-") })
                }
            }
            #expect(try await stage.account("home")["state"]?.string == "unauthenticated")
            // Any Host is as good as another.
            for host in ["ringback", "localhost", "", "evil.example:1"] {
                let answer = try await stage.raw("GET /v1/status HTTP/1.1\r\nHost: \(host)\r\n\r\n")
                #expect(answer.status == 200, "\(host): \(answer)")
            }
        }
    }

    @Test func `names what is wrong with a body, and starts nothing`() async throws {
        try await Stage.play { stage in
            let deep = String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000)
            let malformed = [
                "{", "}", "[]", "\"browser\"", "1", "null", "nonsense", "{\"method\":}", "{\"method\":\"browser\",}",
                "{\"method\":\"browser\"} x", "{\"method\":\"browser\"}{}", "{'method':'browser'}", "\u{FEFF}{}",
                "{\"method\":\"browser\",\"method\":\"browser\"}", "{\"params\":{\"a\":\"1\",\"a\":\"2\"}}",
                "{\"method\":\"bro\u{1}wser\"}", "{\"params\":\(deep)}", "{\"method\":\"\\ud800\"}", "{method:1}",
            ]
            for body in malformed {
                let answer = try await stage.raw(Stage.request("POST", "/v1/accounts/work/sign-in", body))
                #expect(answer.status == 400 && answer.code == "invalid_request", "\(body.prefix(60)): \(answer)")
                #expect(answer.isProblem && answer["status"]?.integer == 400)
            }
            let wrong = [
                "{\"method\":1}", "{\"scopes\":[\"openid\"]}", "{\"timeout\":\"5\"}", "{\"timeout\":1.5}",
                "{\"timeout\":0}", "{\"timeout\":-1}", "{\"timeout\":1e99}", "{\"timeout\":true}", "{\"params\":[]}",
                "{\"params\":{\"a\":1}}", "{\"params\":{\"a\":null}}", "{\"params\":{\"state\":\"x\"}}",
                "{\"params\":{\"code_challenge_method\":\"plain\"}}", "{\"switch_subject\":\"true\"}",
                "{\"switch_subject\":1}", "{\"method\":{}}",
            ]
            for body in wrong {
                let answer = try await stage.raw(Stage.request("POST", "/v1/accounts/work/sign-in", body))
                #expect(answer.status == 400 && answer.code == "validation_failed", "\(body): \(answer)")
                let field = body.split(separator: "\"")[1]
                #expect(answer["detail"]?.string?.hasPrefix(field) == true, "\(body): \(answer)")
            }
            // Not UTF-8.
            let connection = try stage.connect()
            let latin = Stage.request("POST", "/v1/accounts/work/sign-in", "{\"method\":\"?\"}")
            await connection.send(latin.utf8.map { $0 == UInt8(ascii: "?") ? 0xE9 : $0 })
            #expect(try await connection.answer().code == "invalid_request")
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array == [])
            #expect(try await stage.sandbox.counters().requests("discovery") == 0)
        }
    }

    @Test func `SK-10: takes a body of 64 KiB and not one byte more`() async throws {
        try await Stage.play { stage in
            let largest = "{}" + String(repeating: " ", count: 65_534)
            let taken = try await stage.raw(Stage.request("POST", "/v1/accounts/work/refresh", largest))
            #expect(taken.status == 401, "\(taken)")
            let refused = try await stage.raw(Stage.request("POST", "/v1/accounts/work/refresh", largest + " "))
            #expect(refused.status == 413 && refused.code == "payload_too_large" && refused.isProblem, "\(refused)")
            // The announcement is enough.
            let announced = try await stage.raw(
                "POST /v1/reload HTTP/1.1\r\nHost: ringback\r\nContent-Length: 99999999999\r\n\r\n")
            #expect(announced.status == 413, "\(announced)")
            for type in ["text/plain", "application/x-www-form-urlencoded", "application/json-patch+json", ""] {
                let answer = try await stage.raw(
                    Stage.request("POST", "/v1/accounts/work/refresh", "{}", fields: [("Content-Type", type)]))
                #expect(answer.status == 415 && answer.code == "unsupported_media_type", "\(type): \(answer)")
            }
        }
    }

    @Test func `says which routes and methods there are not`() async throws {
        try await Stage.play { stage in
            let nowhere = [
                "/", "/v1", "/v1/", "/v1/nothing", "/v2/status", "/V1/status", "/v1/status/", "/v1//status",
                "//v1/status",
                "/v1/accounts/", "/v1/accounts/work/", "/v1/accounts/work/nothing", "/v1/flows/", "/v1/../v1/status",
                "/v1/%73tatus", "/v1/exposed-sockets/x/y", "/v1/vault", "/v1/diagnostics/x",
                "/v1/accounts/work/session/x",
            ]
            for path in nowhere {
                let answer = try await stage.api("GET", path)
                #expect(answer.status == 404 && answer.code == "not_found" && answer.isProblem, "\(path): \(answer)")
            }
            for name in ["none", "WORK", "..", "work%00", "-", String(repeating: "a", count: 65), "w%6Frk", "home;x"] {
                for path in ["", "/session"] {
                    let answer = try await stage.api("GET", "/v1/accounts/\(name)\(path)")
                    #expect(answer.status == 404 && answer.code == "account_not_found", "\(name)\(path): \(answer)")
                }
            }
            for (method, path, allowed) in [
                ("POST", "/v1/status", "GET"), ("DELETE", "/v1/accounts/work", "GET"), ("GET", "/v1/reload", "POST"),
                ("PUT", "/v1/accounts/work/session", "DELETE, GET"), ("HEAD", "/v1/status", "GET"),
                ("OPTIONS", "/v1/flows/x", "DELETE, GET"), ("get", "/v1/status", "GET"), ("TRACE", "/v1/peer", "GET"),
            ] {
                let connection = try stage.connect()
                await connection.send(Stage.request(method, path, fields: [("Connection", "close")]))
                let head = AnswerHead(try await connection.read(through: "\r\n\r\n"))
                #expect(head.status == 405 && head.fields["allow"] == allowed, "\(method) \(path): \(head)")
            }
        }
    }
}
