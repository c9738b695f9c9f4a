// Notices as a person meets them: a notification server of the tests' own on a bus of the stage's own, and an opener of
// web pages that writes down what it is to open.

import Glibc
import RingbackBase
import Testing

@Suite struct `Notices on the desktop` {
    private static let configuration = """
        [accounts.work]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]

        [accounts.coin]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]
        redirect_uri = "swisscoin://auth-callback"

        """

    private func play(
        _ added: String = "", ofWork line: String = "", environment: [String: String] = [:],
        _ test: (Stage, Desk) async throws -> Void
    ) async throws {
        let arguments = ["--redirect-uri", "swisscoin://auth-callback"]
        let configuration = Self.configuration.replacing("[accounts.coin]", with: "\(line)\n[accounts.coin]") + added
        try await Stage.play(configuration, sandboxArguments: arguments, startsDaemon: false) { stage in
            let bus = try await PrivateBus(stage)
            let server = try await bus.fake("notifications")
            let opened = try Mailbox(path: "\(stage.directory)/pages")
            try stage.write(
                "#!/bin/sh\nprintf '%s\\n' \"$1 $XDG_ACTIVATION_TOKEN\" >'\(opened.path)'\n",
                to: "\(stage.directory)/bin/xdg-open", mode: 0o700)
            try await stage.startDaemon(environment: bus.session.merging(environment) { $1 })
            try await test(stage, Desk(stage: stage, bus: bus, server: server, opened: opened))
        }
    }

    /// The desktop of a stage.
    private struct Desk: Sendable {
        let stage: Stage
        let bus: PrivateBus
        let server: FakeService
        let opened: Mailbox

        var notices: [JSON] { server.notices }
        func notice(_ number: Int) async throws -> JSON { try await server.notice(number) }
        func id(_ number: Int) async throws -> Int { try #require(try await notice(number)["id"]?.integer) }

        func awaitClosing(_ id: Int) async throws {
            _ = try await server.program.line("a notice that is taken away") { $0 == "closed \(id)" }
        }

        /// A program that waits for a session, and causes a sign-in if there is none.
        func caller(_ account: String = "work") async throws -> Connection {
            let connection = try stage.connect()
            await connection.send(
                Stage.request("GET", "/v1/accounts/\(account)/session?sign_in=wait&timeout=60"))
            return connection
        }
    }

    @Test func `programs in the background cause one, and its answer opens the page`() async throws {
        try await play { stage, desk in
            let monitor = try await desk.bus.monitor()
            var callers: [Connection] = []
            for _ in 0..<20 { callers.append(try await desk.caller()) }
            let notice = try await desk.notice(1)
            #expect(notice["summary"]?.string == "Sign in to work" && notice["app"]?.string == "Ringback")
            #expect(notice["actions"]?.array?.map(\.string) == ["default", "Sign in", "sign_in", "Sign in"])
            #expect(notice["hints"]?["desktop-entry"]?.string == "ringback-callback")
            try await desk.server.order("answer \(try await desk.id(1)) sign_in from-the-compositor")
            let words = try await desk.opened.line().split(separator: " ").map(String.init)
            let flows = try await stage.api("GET", "/v1/flows")["flows"]?.array ?? []
            #expect(flows.count == 1 && flows.first?["open_urls"]?.array?.last?["url"]?.string == words.first)
            #expect(words.last == "from-the-compositor")
            _ = try await Browser.deliver(Browser.signIn(at: try #require(words.first)))
            for caller in callers { #expect(try await caller.answer().status == 200) }
            // Where the question stood, it says who came.
            let second = try await desk.notice(2)
            #expect(second["summary"]?.string == "Signed in to work")
            #expect(second["body"]?.string == "As alice@example.org." && second["actions"]?.array == [])
            #expect(desk.notices.count == 2)
            // Nothing that was shown is worth anything to somebody who reads over the shoulder.
            let token = try #require(try await stage.token())
            let state = try #require(words.first?.split(separator: "state=").last?.prefix { $0 != "&" })
            for secret in [token, String(state), "http://"] { #expect(!monitor.seen.contains(secret), "\(secret)") }
        }
    }

    @Test func `one that was dismissed is not shown again soon`() async throws {
        try await play { stage, desk in
            let first = try await desk.caller()
            try await desk.server.order("close \(try await desk.id(1)) 2")
            let second = try await desk.caller()
            // Another account's comes: the one of this account would have come before it.
            let third = try await desk.caller("coin")
            #expect(try await desk.notice(2)["summary"]?.string == "Sign in to coin")
            // The person comes by themselves.
            let flow = try await stage.begin()
            _ = try await Browser.deliver(Browser.signIn(at: flow.authorizationURL))
            for caller in [first, second] { #expect(try await caller.answer().status == 200) }
            #expect(try await desk.notice(3)["summary"]?.string == "Signed in to work")
            withExtendedLifetime(third) {}
        }
    }

    @Test func `says that a server refuses the tokens, after the second one in a row`() async throws {
        let origin = "[[origin]]\nurl = \"https://git.example.org/*\"\naccount = \"work\"\n"
        try await play(origin) { stage, desk in
            try await stage.signIn()
            _ = try await desk.notice(1)
            let server = "protocol=https\nhost=git.example.org\n"
            for number in 1...2 {
                let given = try await stage.ringback("git-credential", "get", stdin: server)
                let password = try #require(given.lines.first { $0.hasPrefix("password=") })
                #expect(desk.notices.count == 1, "\(number)")
                let refused = try await stage.ringback(
                    "git-credential", "erase", stdin: server + "username=oauth2\n\(password)\n")
                #expect(refused.status == 0, "\(refused)")
            }
            let notice = try await desk.notice(2)
            #expect(notice["summary"]?.string == "A server refuses the tokens of work", "\(notice)")
            #expect(notice["body"]?.string?.contains("git.example.org") == true && notice["actions"] == [])
        }
    }

    @Test func `goes when the person says no, and nobody asks again for a while`() async throws {
        try await play { stage, desk in
            let caller = try await desk.caller()
            let id = try await desk.id(1)
            let flow = try await stage.begin()
            _ = try await Browser.deliver(Browser.deny(at: flow.authorizationURL))
            #expect(try await caller.answer().status == 403)
            try await desk.awaitClosing(id)
            #expect(try await desk.caller().answer().code == "sign_in_required")
            #expect(desk.notices.count == 1)
        }
    }

    @Test func `somebody who has asked for the sign-in is not asked`() async throws {
        try await play { stage, desk in
            let flow = try await stage.begin()
            let caller = try await desk.caller()
            let other = try await desk.caller("coin")
            #expect(try await desk.notice(1)["summary"]?.string == "Sign in to coin")
            _ = try await Browser.deliver(Browser.signIn(at: flow.authorizationURL))
            #expect(try await caller.answer().status == 200)
            withExtendedLifetime(other) {}
        }
    }

    @Test func `tells in Russian that the provider ended a session, and begins a sign-in when asked`() async throws {
        try await play(environment: ["LANG": "ru_RU.UTF-8"]) { stage, desk in
            try await stage.signIn()
            #expect(try await desk.notice(1)["summary"]?.string == "Выполнен вход в work")
            try await stage.sandbox.control([
                "faults": [["endpoint": "token", "kind": "error", "error": "invalid_grant", "count": 1]]
            ])
            _ = try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true])
            let notice = try await desk.notice(2)
            #expect(notice["summary"]?.string == "Сеанс work закончился")
            #expect(notice["replaces"] == notice["id"])
            #expect(try await stage.account()["flow"] == nil)
            try await desk.server.order("answer \(try await desk.id(2)) default")
            let page = try await desk.opened.line().split(separator: " ").first.map(String.init)
            _ = try await Browser.deliver(Browser.signIn(at: try #require(page)))
            #expect(try await desk.notice(3)["summary"]?.string == "Выполнен вход в work")
        }
    }

    @Test func `leads to the page for another device without the code in an argument list`() async throws {
        try await play { stage, desk in
            try await stage.signIn()
            _ = try await desk.notice(1)
            try await stage.sandbox.control([
                "faults": [["endpoint": "token", "kind": "error", "error": "invalid_grant", "count": 1]]
            ])
            _ = try await stage.api("POST", "/v1/accounts/work/refresh", ["force": true])
            #expect(try await desk.notice(2)["summary"]?.string == "The session of work has ended")
            let flow = try await stage.api("POST", "/v1/accounts/work/sign-in", ["method": "device"])
            let (code, page) = (flow["user_code"]?.string ?? "", flow["verification_uri_complete"]?.string ?? "")
            #expect(!code.isEmpty && page.contains(code) && flow["open_url"] == nil)
            try await desk.server.order("answer \(try await desk.id(2)) default")
            let words = try await desk.opened.line()
            #expect(words.contains("/start/") && !words.contains(code), "\(words)")
            let opened = try LocalURL(try #require(words.split(separator: " ").first.map(String.init)))
            let answer = try await Browser.load(opened)
            #expect(answer.status == 303 && answer.location == page, "\(answer)")
            #expect(try await Browser.load(opened).status == 410)
            let consent = try await Browser.load(
                LocalURL(page), form: "user_code=\(code)&user=alice&decision=allow")
            #expect(consent.status == 200, "\(consent)")
            let ended = try await stage.api(
                "GET", "/v1/flows/\(flow["id"]?.string ?? "")?wait=40", within: Bound.seconds(60))
            #expect(ended["status"] == "completed", "\(ended)")
        }
    }

    @Test func `tells of a session's end before it comes, and a sign-in takes the notice away`() async throws {
        try await play(ofWork: "session_warnings = [3599]") { stage, desk in
            try await stage.sandbox.control(["refresh_token_lifetime": 3600, "refresh_expires_in": true])
            try await stage.signIn()
            #expect(try await desk.notice(1)["summary"]?.string == "Signed in to work")
            let notice = try await desk.notice(2)
            #expect(notice["summary"]?.string == "The session of work is ending", "\(notice)")
            #expect(notice["body"]?.string?.hasPrefix("It ends at ") == true)
            try await stage.signIn()
            try await desk.awaitClosing(try await desk.id(2))
            #expect(try await desk.notice(3)["summary"]?.string == "Signed in to work")
        }
    }

    @Test func `tells whoever came by a link what came of it`() async throws {
        try await play { stage, desk in
            let flow = try await stage.begin("coin")
            let callback = try await Browser.location(after: "user=alice&decision=allow", at: flow.authorizationURL)
            let open = try await stage.ringback("open", callback)
            #expect(open.status == 0, "\(open)")
            #expect(try await desk.notice(1)["body"]?.string == "As alice@example.org.")
            // The link again, by whatever way.
            let again = try await stage.api("POST", "/v1/callbacks", ["url": .string(callback), "notify": true])
            #expect(again.status == 200 || again.status == 410, "\(again)")
            #expect(again["notified"]?.bool == true)
            let refused = try await stage.begin("coin", ["switch_subject": true])
            let no = try await Browser.location(after: "user=alice&decision=deny", at: refused.authorizationURL)
            let answer = try await stage.api("POST", "/v1/callbacks", ["url": .string(no), "notify": true])
            #expect(answer["flow"]?["status"]?.string == "failed" && answer["notified"]?.bool == true, "\(answer)")
            try await stage.eventually("a notice of the no") {
                desk.notices.last?["summary"]?.string == "Not signed in to coin"
            }
            let quiet = try await stage.api("POST", "/v1/callbacks", ["url": .string(no)])
            #expect(quiet.status != 200 || quiet["notified"] == nil)
        }
    }

    @Test func `are shown by a server that comes later, and by one that takes its place`() async throws {
        try await Stage.play(Self.configuration, startsDaemon: false) { stage in
            let bus = try await PrivateBus(stage)
            try await stage.startDaemon(environment: bus.session)
            let callback = try await stage.api(
                "POST", "/v1/callbacks", ["url": "swisscoin://auth-callback?state=x&code=y", "notify": true])
            #expect(callback.code == "invalid_callback" && callback["notified"]?.bool == false, "\(callback)")
            let caller = try stage.connect()
            await caller.send(Stage.request("GET", "/v1/accounts/work/session?sign_in=wait&timeout=60"))
            try await stage.eventually("a flow") {
                try await stage.api("GET", "/v1/flows")["flows"]?.array?.isEmpty == false
            }
            let first = try await bus.fake("notifications")
            _ = try await first.program.line("the notice") { $0.contains("Sign in to work") }
            first.program.send(SIGKILL)
            _ = try await first.program.end()
            let second = try await bus.fake("notifications")
            _ = try await second.program.line("the notice") { $0.contains("Sign in to work") }
            // The daemon takes its question along when it ends.
            #expect(try await stage.stopDaemon().status == 0)
            _ = try await second.program.line("its end") { $0.hasPrefix("closed ") }
        }
    }

    @Test func `are none where the configuration says so, until it says otherwise`() async throws {
        try await play("[notifications]\nenabled = false\n") { stage, desk in
            let caller = try await desk.caller()
            let answer = try await stage.api(
                "POST", "/v1/callbacks", ["url": "swisscoin://auth-callback?state=x&code=y", "notify": true])
            #expect(answer["notified"]?.bool == false)
            #expect(desk.notices.isEmpty)
            try stage.write(configuration: Self.configuration)
            #expect(try await stage.ringback("reload").status == 0)
            let other = try await desk.caller()
            #expect(try await desk.notice(1)["summary"]?.string == "Sign in to work")
            withExtendedLifetime((caller, other)) {}
        }
    }

    @Test func `are checked as a part of the configuration`() async throws {
        try await Stage.play("[notifications]\nenabeld = true\n", startsDaemon: false) { stage in
            let check = try await stage.ringback("config", "check")
            #expect(check.status == 78 && (check.out + check.err).contains("enabled"), "\(check)")
        }
    }

    @Test func `are no trouble where there is no bus`() async throws {
        try await Stage.play(Self.configuration) { stage in
            let answer = try await stage.api(
                "POST", "/v1/callbacks", ["url": "swisscoin://auth-callback?state=x&code=y", "notify": true])
            #expect(answer.code == "invalid_callback" && answer["notified"]?.bool == false)
            try await stage.signIn()
            #expect(stage.daemon?.errors.value.text.contains("otice") == false)
        }
    }
}
