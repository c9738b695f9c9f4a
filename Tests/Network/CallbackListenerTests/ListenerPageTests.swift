import LocalHTTP
import Testing

@testable import CallbackListener

private let work = SignInLabel(account: "work", providerHost: "id.example", user: "mira@example.org")

@Suite(.timeLimit(.minutes(5))) struct `The listener's pages` {
    @Test func `a result names account and provider at an address of its own, for every reload`() async throws {
        try await withListener(.done, of: work) { listener, _ in
            let port = try listener.openPort()
            let answer = await Visitor.get("/callback/work?code=c&state=s", at: port)
            let location = try #require(answer.fields["location"])
            #expect(answer.status == 303 && location.hasPrefix("/done/") && location.hasSuffix("#"))
            let path = String(location.dropLast())
            #expect(path.utf8.count == "/done/".utf8.count + 22)
            let page = await Visitor.get(path, at: port)
            #expect(page.status == 200 && page.body.contains("<bdi>work</bdi>") && page.body.contains("id.example"))
            #expect(page.body.contains("You are signed in as <b><bdi>mira@example.org</bdi></b>"))
            #expect(await Visitor.get(path, at: port) == page)
            // A copy of the callback leads to the same page, which so many copies cannot fill the memory with.
            #expect(await Visitor.get("/callback/work?code=c&state=s", at: port).fields["location"] == location)
            // Without the key nothing is told of an account, and a guess is like any unknown address.
            #expect(await Visitor.get("/done", at: port).body.contains("work") == false)
            #expect(await Visitor.get("/done/guess", at: port).status == 404)
            #expect(await Visitor.get("/failed/" + path.dropFirst("/done/".count), at: port).status == 404)
        }
    }

    @Test(arguments: [Page.refused, .wrongIssuer])
    func `a refused response of a pending sign-in has a page that says so, wherever it arrived`(
        told: Page
    ) async throws {
        try await withListener(told, of: work) { listener, _ in
            let port = try listener.openPort()
            for target in ["/callback/work?code=c&state=s", "/elsewhere?code=c&state=s"] {
                let answer = await Visitor.get(target, at: port)
                let path = try #require(answer.fields["location"].map { String($0.dropLast()) })
                let page = await Visitor.get(path, at: port)
                #expect(page.status == 200 && page.body.contains("It still waits."), "\(target)")
                let heading = told == .wrongIssuer ? "Issuer not confirmed" : "Response refused"
                #expect(page.body.contains(heading))
            }
        }
    }

    @Test func `a result is kept as long as its port`() async throws {
        try await withListener(.failed, of: work) { listener, _ in
            let first = try listener.open(CallbackBinding(path: "/callback/a"))
            let port = portOf(first)
            let answer = await Visitor.get("/callback/a?state=s", at: port)
            let path = try #require(answer.fields["location"].map { String($0.dropLast()) })
            listener.close(first)
            #expect(await Visitor.get(path, at: port).body.contains("Sign-in failed"))
        }
        try await withListener(.failed, of: work, linger: .milliseconds(20)) { listener, _ in
            let first = try listener.open(CallbackBinding(path: "/callback/a"))
            let port = portOf(first)
            _ = await Visitor.get("/callback/a?state=s", at: port)
            listener.close(first)
            #expect(await Visitor.sawClosed(port, of: listener))
        }
    }

    @Test func `another user does not see a result, even by its address`() async throws {
        try await withListener(.done, of: work, ownerOf: { _ in 4_711 }) { listener, _ in
            var binding = try CallbackBinding(path: "/callback/a")
            binding.peerUIDs = [4_711]
            let redirectURI = try listener.open(binding)
            let port = portOf(redirectURI)
            let answer = await Visitor.get("/callback/a?state=s", at: port)
            let path = try #require(answer.fields["location"].map { String($0.dropLast()) })
            #expect(await Visitor.get(path, at: port).status == 200)
            // The account's next flow is for browsers of our own user only.
            binding.peerUIDs = []
            _ = try listener.open(binding)
            #expect(await Visitor.get(path, at: port).status == 404)
        }
    }

    @Test func `a late visit of a start address whose sign-in is done is told whose it was`() async throws {
        let listener = LoopbackListener(linger: .seconds(600), visit: { _ in .completed(work) }) { _ in
            CallbackOutcome(nil)
        }
        let running = Task { try await listener.run() }
        let url = try listener.openEntrance(key: "K", beside: "")
        let answer = await Visitor.get("/start/K", at: portOf(url))
        let path = try #require(answer.fields["location"].map { String($0.dropLast()) })
        #expect(await Visitor.get(path, at: portOf(url)).body.contains("<bdi>work</bdi>"))
        running.cancel()
        try await running.value
    }

    @Test func `every page is in the language that the browser asks for`() async throws {
        try await withListener(.denied, of: work) { listener, _ in
            let port = try listener.openPort()
            let russian = "Accept-Language: de-AT, ru-RU;q=0.8, en;q=0.7\r\n"
            let location = await Visitor.get("/callback/work?error=x&state=s", at: port).fields["location"] ?? ""
            let denied = await Visitor.get(String(location.dropLast()), at: port, fields: russian)
            #expect(denied.body.contains("<html lang=\"ru\">") && denied.body.contains("<h1>Вход отклонён</h1>"))
            #expect(denied.fields["content-language"] == "ru")
            let unknown = await Visitor.get("/unknown", at: port, fields: russian)
            #expect(unknown.status == 404 && unknown.body.contains("<html lang=\"ru\">"))
            for field in ["", "Accept-Language: de\r\n", "Accept-Language: ru;q=0\r\n", "Accept-Language: ;;,\r\n"] {
                #expect(await Visitor.get("/done", at: port, fields: field).body.contains("<html lang=\"en\">"))
            }
        }
    }
}
