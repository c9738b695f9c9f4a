import RingbackBase
import Testing

private struct Trick: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// What it may be answered with; nothing at all counts as 0.
    let statuses: Set<Int>
    let make: @Sendable (CallbackPort) throws -> String

    init(_ name: String, _ statuses: Set<Int>, _ make: @escaping @Sendable (CallbackPort) throws -> String) {
        testDescription = name
        self.statuses = statuses
        self.make = make
    }
}

@Suite struct `The callback port` {
    private func expectAllRefused(_ tricks: [Trick]) async throws {
        try await CallbackPort.attack { port in
            for trick in tricks {
                let answer = try await port.send(trick.make(port))
                let name = trick.testDescription
                #expect(trick.statuses.contains(answer.status), "\(name): \(answer)")
                // A genuine state in a request that is refused leads to the page that says why.
                let pages: [String?] = answer.status == 303 ? ["/unknown", "/failed"] : [nil]
                #expect(pages.contains(answer.location), "\(name): \(answer)")
                guard answer.status != 0 else { continue }
                CallbackPort.expectFields(of: answer, to: name)
                let mayHaveText = answer.status == 404
                #expect(mayHaveText || answer.body.isEmpty, "\(name): \(answer)")
            }
        }
    }

    /// ADV-01, ADV-02, ADV-05, ADV-07.
    @Test func `LB-01: the callback port answers only to the host of the redirect URI`() async throws {
        let names: [@Sendable (CallbackPort) -> String] = [
            { "evil.example:\($0.number)" }, { "localhost:\($0.number)" }, { _ in "127.0.0.1" },
            { "127.1:\($0.number)" }, { "0.0.0.0:\($0.number)" }, { "127.0.0.1.evil:\($0.number)" },
            { "[::1]:\($0.number)" }, { "127.0.0.1:\($0.number)." }, { "127.0.0.1.:\($0.number)" },
            { "127.0.0.1:0\($0.number)" }, { "x@127.0.0.1:\($0.number)" }, { "127.0.0.1:\($0.number + 1)" },
            { "127.0.0.1:\($0.number)/" }, { "127.0.0.1:\($0.number), evil.example" }, { _ in "" },
            { "2130706433:\($0.number)" }, { "0x7f.0.0.1:\($0.number)" }, { _ in "ringback" },
        ]
        var tricks = names.enumerated().map { index, name in
            Trick("name \(index)", [421]) { $0.request(host: name($0)) }
        }
        tricks += [
            Trick("two Host fields", [400]) { $0.request(fields: [("Host", $0.genuine.authority)]) },
            Trick("another Host first", [400]) {
                $0.request(host: "evil.example", fields: [("Host", $0.genuine.authority)])
            },
            Trick("no Host", [400]) { "GET \($0.genuine.target) HTTP/1.1\r\n\r\n" },
            Trick("no Host, HTTP/1.0", [421]) { "GET \($0.genuine.target) HTTP/1.0\r\n\r\n" },
            Trick("absolute form with another authority", [421]) {
                $0.request("GET", "http://evil.example\($0.genuine.target)")
            },
            Trick("X-Forwarded-Host", [421]) {
                $0.request(host: "evil.example", fields: [("X-Forwarded-Host", $0.genuine.authority)])
            },
            Trick("a fold", [400]) {
                "GET \($0.genuine.target) HTTP/1.1\r\nHost: evil.example\r\n \($0.genuine.authority)\r\n\r\n"
            },
        ]
        try await expectAllRefused(tricks)
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

    @Test func `LB-02, LB-26, LB-29, NAT-56: the callback port accepts navigations only`() async throws {
        let kinds: [[(String, String)]] = [
            [("Sec-Fetch-Mode", "cors"), ("Sec-Fetch-Dest", "empty"), ("Origin", "https://evil.example")],
            [("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")],
            [("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "script")],
            [("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "style")],
            [("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "empty")],
            [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")],
            [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "frame")],
            [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "object")],
            [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "embed")],
            [("Sec-Fetch-Mode", "same-origin")], [("Sec-Fetch-Mode", "websocket")], [("Sec-Fetch-Dest", "worker")],
            [("Sec-Fetch-Mode", "")], [("sec-fetch-mode", "navigate"), ("SEC-FETCH-MODE", "cors")],
            [("Sec-Purpose", "prefetch")], [("Sec-Purpose", "prefetch;prerender")], [("Purpose", "prefetch")],
            [("X-Purpose", "preview")], [("X-Moz", "prefetch")], [("Service-Worker", "script")],
        ]
        try await expectAllRefused(kinds.map { fields in Trick("\(fields)", [404]) { $0.request(fields: fields) } })
    }
}
