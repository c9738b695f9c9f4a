import Glibc
import RingbackBase
import Testing

@Suite struct `Links for running apps` {
    private static let configuration = """
        [accounts.coin]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]
        redirect_uri = "swisscoin://auth-callback"

        [schemes."org.example.notes"]
        command = ["{stage}/bin/notes", "--open", "{url}"]

        """

    /// What the app of the scheme writes down when it is started: its arguments, a line a start.
    private func plantApp(_ stage: Stage) throws {
        try stage.write(
            "#!/bin/sh\nprintf '%s|' \"$@\" >>'\(stage.directory)/started'\necho >>'\(stage.directory)/started'\n",
            to: "\(stage.directory)/bin/notes", mode: 0o700)
    }

    private func starts(_ stage: Stage) -> [String] {
        (FileTree.text(of: "\(stage.directory)/started") ?? "").split(separator: "\n").map(String.init)
    }

    @Test func `an app gets each link that ringback open hands over, and another one takes its place`() async throws {
        try await Stage.play(Self.configuration) { stage in
            let first = try stage.start("ringback", ["links", "swisscoin"])
            try await listening(stage, "swisscoin")
            try await stage.ringback(
                "open", "swisscoin://pay/7?amount=1&to=bob#now", status: 0, out: "Sent to the app.\n")
            _ = try await first.line("the link") { $0 == "swisscoin://pay/7?amount=1&to=bob#now" }
            // What a page may have and a URL may not is escaped on the way.
            try await stage.ringback("open", "swisscoin://pay?f=a|b{c}\"é`^\\<>", status: 0)
            _ = try await first.line("the second") { $0 == "swisscoin://pay?f=a%7Cb%7Bc%7D%22%C3%A9%60%5E%5C%3C%3E" }
            let second = try stage.start("ringback", ["links", "SWISSCOIN", "--json"])
            try await first.end().expect(4, says: "Another program listens")
            try await stage.ringback("open", "swisscoin://pay/8", status: 0)
            // The first link was acknowledged: it does not come again.
            let line = try await second.line("the second link")
            let link = try JSON(parsing: Array(line.utf8))
            #expect(link["url"] == "swisscoin://pay/8" && link["scheme"] == "swisscoin" && link["id"]?.string != nil)
            second.send(SIGINT)
            #expect(try await second.end().status == 0)
            let audit = try await stage.ringback("audit", "--json").out
            #expect(audit.contains("listener_replaced") && !audit.contains("pay/"))
        }
    }

    @Test func `where no app listens it is started, once, and the links wait for it`() async throws {
        try await Stage.play(Self.configuration) { stage in
            try plantApp(stage)
            let hostile = "org.example.notes://open/$(id);x=%22'a'&--flag"
            try await stage.ringback(
                "open", hostile, status: 0, out: "No app listens now; the link is kept for one minute.\n")
            try await stage.eventually("the start") { !starts(stage).isEmpty }
            try await stage.ringback("open", "org.example.notes://open/2", status: 0)
            // The URL is one argument, as it came.
            #expect(starts(stage) == ["--open|\(hostile)|"])
            let app = try stage.start("ringback", ["links", "org.example.notes"])
            _ = try await app.line("the second link") { $0 == "org.example.notes://open/2" }
            #expect(app.output.value.lines == [hostile, "org.example.notes://open/2"])
            let audit = try await stage.ringback("audit", "--json").out
            #expect(audit.contains("application_started") && !audit.contains("open/"))
            #expect(starts(stage).count == 1)
        }
    }

    /// Waits until somebody listens, by the daemon's own word.
    private func listening(_ stage: Stage, _ scheme: String) async throws {
        try await stage.eventually("a listener for \(scheme)") {
            try await stage.api("GET", "/v1/status")["link_listeners"]?.array?.contains(.string(scheme)) == true
        }
    }
}
