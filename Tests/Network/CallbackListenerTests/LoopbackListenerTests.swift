import Glibc
import LocalHTTP
import SignInPage
import Synchronization
import TestSupport
import Testing

@testable import CallbackListener

@Suite(.timeLimit(.minutes(5))) struct `The loopback listener` {
    @Test func `NAT-35, NAT-33, LB-25: a callback is delivered and ends at the last page`() async throws {
        try await withListener { listener, deliveries in
            let port = try listener.openPort()
            let answer = await Visitor.get("/callback/work?code=c%2B1&state=s", at: port)
            #expect(answer.status == 303)
            // The empty fragment takes the place of the one that the browser may have.
            #expect(answer.fields["location"] == "/done#")
            #expect(answer.body.isEmpty)
            #expect(deliveries.urls == ["http://127.0.0.1:\(port)/callback/work?code=c%2B1&state=s"])
            let done = await Visitor.get("/done", at: port)
            #expect(done.status == 200)
            #expect(done.body.contains("You can close this tab"))
        }
    }

    @Test func `a sign-in that failed ends at the other page`() async throws {
        try await withListener(.failed) { listener, _ in
            let port = try listener.openPort()
            #expect(await Visitor.get("/callback/work?error=x&state=s", at: port).fields["location"] == "/failed#")
            #expect(await Visitor.get("/failed", at: port).body.contains("Sign-in failed"))
        }
    }

    @Test func `a form is delivered with its body`() async throws {
        try await withListener { listener, deliveries in
            let port = try listener.openPort(acceptsPost: true)
            let answer = await Visitor.send(
                """
                POST /callback/work HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nOrigin: https://id.example\r
                Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 14\r\n\r\ncode=c&state=s
                """, to: port)
            #expect(answer.status == 303)
            #expect(deliveries.forms == ["code=c&state=s"])
        }
    }

    @Test func `LB-05, NAT-32: whatever is not a callback gets one and the same answer`() async throws {
        try await withListener(nil) { listener, _ in
            let port = try listener.openPort()
            let guess = await Visitor.get("/callback/work?state=guess", at: port)
            // Away from the address that may hold a code.
            #expect(guess.status == 303 && guess.fields["location"] == "/unknown#" && guess.body.isEmpty)
            let unknown = await Visitor.get("/unknown", at: port)
            #expect(unknown.status == 404)
            #expect(await Visitor.get("/other?state=guess", at: port) == guess)
            #expect(await Visitor.get("/callback/work", at: port) == guess)
            for path in ["/", "/favicon.ico", "/callback", "/callback/work/", "/authorize", "/robots.txt"] {
                #expect(await Visitor.get(path, at: port) == unknown)
            }
        }
    }

    @Test func `NAT-46, NAT-57: every answer forbids what a page could be used for`() async throws {
        try await withListener { listener, _ in
            let port = try listener.openPort(acceptsPost: true)
            let host = "Host: 127.0.0.1:\(port)\r\n"
            let path = "/callback/work"
            let requests = [
                (303, "GET \(path) HTTP/1.1\r\n\(host)\r\n"), (200, "GET /done HTTP/1.1\r\n\(host)\r\n"),
                (200, "GET /failed HTTP/1.1\r\n\(host)\r\n"), (404, "GET /x HTTP/1.1\r\n\(host)\r\n"),
                (405, "OPTIONS \(path) HTTP/1.1\r\n\(host)\r\n"), (421, "GET \(path) HTTP/1.1\r\nHost: evil\r\n\r\n"),
                (415, "POST \(path) HTTP/1.1\r\n\(host)Content-Length: 0\r\n\r\n"),
                (400, "GET \(path) HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n"),
                (400, "GET \(path) HTTP/1.1\r\n\(host)Upgrade: websocket\r\n\r\n"),
                (400, "POST \(path) HTTP/1.1\r\n\(host)Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx"),
                (400, "\u{16}\u{3}\u{1} junk\r\n\r\n"),
                (431, "GET /\(String(repeating: "x", count: 66_000)) HTTP/1.1\r\n\(host)\r\n"),
                (
                    413,
                    "POST \(path) HTTP/1.1\r\n\(host)Content-Length: 65537\r\n\r\n"
                        + String(repeating: "x", count: 65_537)
                ),
            ]
            for (status, text) in requests {
                let answer = await Visitor.send(text, to: port)
                #expect(answer.status == status, "\(text.prefix(60))")
                #expect(
                    answer.fields["content-security-policy"]
                        == "default-src 'none'; style-src '\(PageStyle.source)'; frame-ancestors 'none'; "
                        + "form-action 'none'; base-uri 'none'")
                #expect(answer.fields["cache-control"] == "no-store")
                #expect(answer.fields["referrer-policy"] == "no-referrer")
                #expect(answer.fields["x-content-type-options"] == "nosniff")
                #expect(answer.fields["x-frame-options"] == "DENY")
                #expect(answer.fields["connection"] == "close")
                #expect(!answer.fields.keys.contains { $0.hasPrefix("access-control") })
                #expect(!answer.body.contains("<script"))
            }
        }
    }

    @Test func `LB-30: no answer sets a cookie`() async throws {
        try await withListener { listener, _ in
            let port = try listener.openPort()
            let callback = "/callback/work?code=c&state=s"
            for (path, status) in [(callback, 303), ("/done", 200), ("/failed", 200), ("/noted", 200), ("/x", 404)] {
                let answer = await Visitor.get(path, at: port)
                #expect(answer.status == status)
                #expect(!answer.fields.keys.contains("set-cookie"))
            }
        }
    }

    @Test func `LB-23, LB-24, NAT-24: nothing that was sent comes back, as text or as an address`() async throws {
        try await withListener(.failed) { listener, _ in
            let port = try listener.openPort()
            let plain = await Visitor.get("/failed", at: port)
            #expect(await Visitor.get("/failed?error_description=%3Cscript%3E", at: port) == plain)
            for query in [
                "error=%3Cscript%3E&state=//evil.example",
                "state=s&redirect_uri=https://evil.example&next=//evil.example",
                "state=s&url=%0d%0aLocation:%20https://evil.example&return_to=/%5Cevil.example",
            ] {
                let answer = await Visitor.get("/callback/work?\(query)", at: port)
                #expect(answer.fields["location"] == "/failed#", "\(query)")
                #expect(!answer.text.contains("script") && !answer.text.contains("evil"), "\(query)")
                let page = await Visitor.get("/failed?\(query)", at: port)
                #expect(page.fields["location"] == nil && page.fields["refresh"] == nil, "\(query)")
            }
        }
    }

    @Test func `the cookies of every other program at this address are read over`() async throws {
        try await withListener { listener, deliveries in
            let port = try listener.openPort()
            let cookies = "Cookie: " + String(repeating: "name=value; ", count: 5_000) + "\r\n"
            #expect(await Visitor.get("/callback/work?code=c&state=s", at: port, fields: cookies).status == 303)
            #expect(deliveries.urls.count == 1)
        }
    }

    @Test func `an address that a program opens leads on once, on the redirect URI's port`() async throws {
        let visits = Mutex<[EntranceVisit]>([])
        let visit: LoopbackListener.Visit = { visit in
            let isFirst = visits.withLock { visits in
                visits.append(visit)
                return visits.count == 1
            }
            return isFirst ? .redirected(to: "https://id.example/authorize?state=s") : .spent
        }
        let listener = LoopbackListener(linger: .seconds(600), visit: visit) { _ in CallbackOutcome(nil) }
        let running = Task { try await listener.run() }
        let redirectURI = try listener.open(CallbackBinding(path: "/callback/work"))
        let url = try listener.openEntrance(key: "K", beside: redirectURI)
        #expect(url == "http://127.0.0.1:\(portOf(redirectURI))/start/K")
        let first = await Visitor.get("/start/K", at: portOf(url))
        #expect(first.status == 303 && first.fields["location"] == "https://id.example/authorize?state=s")
        let second = await Visitor.get("/start/K", at: portOf(url))
        #expect(second.status == 410 && second.body.contains("works once") && !second.text.contains("id.example"))
        #expect(visits.withLock { $0 } == [.opened(key: "K"), .opened(key: "K")])
        // Beside what does not come here it has a port of its own, which is shared.
        let other = try listener.openEntrance(key: "L", beside: "com.example:/callback")
        #expect(other == "http://127.0.0.1:\(portOf(redirectURI))/start/L")
        for address in [redirectURI, url, other] { listener.close(address) }
        running.cancel()
        try await running.value
    }

    @Test func `LB-19: one request per connection`() async throws {
        try await withListener(nil) { listener, deliveries in
            let port = try listener.openPort()
            let request = "GET /callback/work?n=1 HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n"
            let answer = await Visitor.send(request + request, to: port)
            #expect(answer.text.ranges(of: "HTTP/1.1 ").count == 1)
            #expect(deliveries.urls.count == 1)
        }
    }

    @Test func `another user's connection counts for nothing`() async throws {
        try await withListener(ownerOf: { _ in getuid() + 1 }) { listener, deliveries in
            let port = try listener.openPort()
            #expect(await Visitor.get("/callback/work?code=c&state=s", at: port).status == 404)
            #expect(await Visitor.get("/done", at: port).status == 404)
            #expect(deliveries.urls.isEmpty)
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can act as somebody else"))
    func `LB-10: the kernel's word on who connects is taken, also when they are gone at once`() async throws {
        try await withListener { listener, deliveries in
            let port = try listener.openPort()
            let request = "GET /callback/work?code=c&state=s HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n"
            let answer = await Visitor.asNobody {
                guard let socket = Visitor.connected(to: port) else { return Answer("") }
                defer { close(socket) }
                _ = sendAll(Array(request.utf8), to: socket)
                return Answer(Visitor.readAll(socket))
            }
            #expect(answer.status == 404)
            for _ in 0..<50 {
                await Visitor.asNobody {
                    guard let socket = Visitor.connected(to: port) else { return }
                    _ = sendAll(Array(request.utf8), to: socket)
                    close(socket)
                }
            }
            #expect(deliveries.urls.isEmpty)
            #expect(await Visitor.send(request, to: port).status == 303)
            #expect(deliveries.urls.count == 1)
        }
    }

    @Test func `LB-16: a genuine callback gets through a crowd that says nothing`() async throws {
        try await withListener { listener, _ in
            let port = try listener.openPort()
            let crowd = (0..<200).compactMap { _ in Visitor.connected(to: port) }
            defer { for socket in crowd { close(socket) } }
            for socket in crowd { _ = sendAll(Array("GET /".utf8), to: socket) }
            #expect(await Visitor.get("/callback/work?code=c&state=s", at: port).status == 303)
            // It did not wait for the crowd's time to run out: some of the crowd still may speak.
            #expect(crowd.contains { Visitor.isOpen($0) })
        }
    }
}
