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

    private struct Desk: Sendable {
        let stage: Stage
        let bus: PrivateBus
        let server: FakeService
        let opened: Mailbox

        var notices: [JSON] { server.notices }
        func notice(_ number: Int) async throws -> JSON { try await server.notice(number) }
        func id(_ number: Int) async throws -> Int { try #require(try await notice(number)["id"]?.integer) }

        /// A program that waits for a session, and causes a sign-in if there is none.
        func caller(_ account: String = "work") async throws -> Connection {
            let connection = try stage.connect()
            await connection.send(
                Stage.request("GET", "/v1/accounts/\(account)/session?sign_in=wait&timeout=60"))
            return connection
        }
    }

    @Test func `twenty waiting programs cause one notice, whose answer opens the page`() async throws {
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

    @Test func `a question of consent is answered by the notice's button`() async throws {
        try await play(ofWork: "consent = \"ask\"") { stage, desk in
            try await stage.signIn()
            #expect(try await desk.notice(1)["summary"]?.string == "Signed in to work")
            let caller = try stage.connect()
            await caller.send(Stage.request("GET", "/v1/accounts/work/session?timeout=60"))
            let notice = try await desk.notice(2)
            #expect(notice["summary"]?.string == "May a program use work?")
            #expect(notice["body"]?.string?.hasPrefix("\"/") == true)
            try await desk.server.order("answer \(try await desk.id(2)) allow_session")
            #expect(try await caller.answer().status == 200)
            #expect(try await stage.api("GET", "/v1/accounts/work/session").status == 200)
            let audit = try await stage.api("GET", "/v1/audit?account=work")["entries"]?.array ?? []
            #expect(audit.contains { $0["event"] == "consent_decided" && $0["answered_by"] == "the notice" })
        }
    }

    @Test func `a notice opens the device page without the code in an argument list`() async throws {
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

    @Test func `notices are shown by a server that starts later`() async throws {
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
}
