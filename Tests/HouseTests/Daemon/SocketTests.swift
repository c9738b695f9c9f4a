import RingbackBase
import Testing

@Suite struct `The socket` {
    @Test(.enabled(if: Stranger.isPossible, Stranger.reason))
    func `SK-01: the socket answers its own user and root only`() async throws {
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
            #expect(try own.json["uid"]?.integer == Int(Stranger.uid), "\(own)")
            let root = try await stage.run("/usr/bin/env", curl)
            #expect(try root.json["uid"]?.integer == 0, "\(root)")
            let third = try await stage.run(asUser: Stranger.namedUID, curl)
            // They get there, and get nothing.
            let way = try await stage.run(
                asUser: Stranger.namedUID, script: "[ -w \"$1\" ]", ordinary.socket)
            #expect(way.status == 0 && third.status != 0 && third.out.isEmpty, "\(way) \(third)")
        }
    }

    @Test func `ADV-01, ADV-06: the socket refuses requests with fields of web pages`() async throws {
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
                    let answer = try await stage.api(method, path, fields: [field], status: 403, code: "policy_denied")
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

    @Test func `SK-10: the socket takes a body of 64 KiB and no larger one`() async throws {
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
}
