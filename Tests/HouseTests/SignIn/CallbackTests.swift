import RingbackBase
import TestSupport
import Testing

@Suite struct `A callback` {
    @Test func `NAT-13: a provider that refuses S256 is not asked again without it`() async throws {
        try await Stage.play { stage in
            // Where the sign-in begins, and where the code is redeemed.
            let first = try await stage.begin()
            let refusal = try await Browser.signIn(at: first.authorizationURL)
                .setting("code", to: nil).setting("error", to: "invalid_request")
                .setting("error_description", to: "code_challenge_method")
            #expect(try await Browser.deliver(refusal).answer.location == "/failed")
            #expect(try await stage.sandbox.counters().requests("token") == 0)
            try await stage.sandbox.control([
                "faults": [["endpoint": "token", "kind": "error", "error": "invalid_request", "count": 1]]
            ])
            let second = try await stage.begin()
            let callback = try await Browser.signIn(at: second.authorizationURL)
            #expect(try await Browser.deliver(callback).answer.location == "/failed")
            let requests = try await stage.sandbox.log().filter { $0["endpoint"]?.string == "token" }
            #expect(requests.count == 1, "\(requests)")
            #expect(requests.first?["parameters"]?["code_verifier"] != nil, "\(requests)")
            let third = try await stage.begin()
            for flow in [first, second, third] {
                let url = try LocalURL(flow.authorizationURL)
                #expect(url["code_challenge_method"] == "S256" && url["code_challenge"]?.count == 43, "\(url)")
            }
        }
    }

    /// The inodes of the sockets that listen at a port of 127.0.0.1, as proc(5) writes them.
    private func listeners(at port: Int) -> [String] {
        let digits = String(port, radix: 16, uppercase: true)
        let local = "0100007F:" + String(repeating: "0", count: 4 - digits.count) + digits
        return (FileTree.text(of: "/proc/net/tcp") ?? "").split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            return words.count > 9 && words[1] == local && words[3] == "0A" ? String(words[9]) : nil
        }
    }

    @Test func `LB-08: one socket holds the callback port from its first showing to the callback`() async throws {
        try await Stage.play { stage in
            let flow = try await stage.begin()
            let port = try LocalURL(flow.redirectURI).port
            let first = listeners(at: port)
            #expect(first.count == 1, "\(first)")
            let home = try await stage.begin("home")
            #expect(try LocalURL(home.redirectURI).port == port)
            #expect(try await stage.tcp(port, "GET / HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n").status == 404)
            let (answer, _) = try await Browser.deliver(Browser.signIn(at: flow.authorizationURL))
            #expect(answer.location == "/done", "\(answer)")
            #expect(listeners(at: port) == first)
        }
    }

    @Test
    func `LB-09, LB-07, NAT-05, NAT-09: the callback port listens at the redirect URI's address`() async throws {
        try await Stage.play { stage in
            let port = try LocalURL(try await stage.begin().redirectURI).port
            #expect(ListeningPorts.addresses(of: port) == ["0100007F"])
            #expect(throws: SystemError.self) { try Connection(to: .ipv6(port)) }
            let status = try await stage.api("GET", "/v1/status")
            #expect(status["listeners"] == [.string("127.0.0.1:\(port)")])
        }
    }
}
