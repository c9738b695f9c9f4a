// What else of the configuration names an account that is removed.

import Glibc
import StrictJSON
import Testing

@Suite struct `What names an account that is removed` {
    private static let more = """
        # The first comment stays.
        [[expose]]
        name = "ci" # this too
        accounts = [
            "home", # and this
            # work has a line of its own
            "work",
            "play",
        ]
        ttl = "8h"

        [[file]]
        path = "{stage}/home-token"
        account = "home"

        # Of the account that goes.
        [[file]]
        path = "{stage}/work-token"
        account = "work"

        [[expose]]
        name = "box"
        account = "work"

        [[expose]]
        name = "last"
        accounts = ["play", "work"] # both

        # The end stays.

        """

    private static let left = """
        # The first comment stays.
        [[expose]]
        name = "ci" # this too
        accounts = [
            "home", # and this
            # work has a line of its own
            "play",
        ]
        ttl = "8h"

        [[file]]
        path = "{stage}/home-token"
        account = "home"

        # Of the account that goes.

        [[expose]]
        name = "last"
        accounts = ["play"] # both

        # The end stays.

        """

    private static func text(_ text: String, _ stage: Stage) -> String {
        text.replacing("{stage}", with: stage.directory)
    }

    /// Three accounts with files of their own; a person is signed in to `work`.
    private static func play(_ configuration: String, _ test: (Stage) async throws -> Void) async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            #expect(unsafe mkdir(stage.dropIns, 0o700) == 0)
            for name in ["work", "home", "play"] {
                let account = "issuer = \"\(stage.sandbox.origin)\"\nclient_id = \"ringback-demo\"\n"
                try stage.write("[accounts.\(name)]\n\(account)", to: "\(stage.dropIns)/\(name).toml")
            }
            try stage.write(configuration: configuration)
            try await stage.startDaemon()
            try await stage.signIn()
            try await test(stage)
        }
    }

    @Test func `goes with it, is shown before it is asked for, and everything else stays byte for byte`() async throws {
        try await Self.play(Self.more) { stage in
            #expect(FileTree.text(of: stage.configuration) == Self.text(Self.more, stage))
            let asked = try stage.terminal("account", "remove", "work")
            try await asked.shows("The file \(stage.directory)/work-token is not kept any more.")
            try await asked.shows("The restricted socket ci no longer serves this account. It still serves home, play.")
            try await asked.shows("The restricted socket box is removed: it has no other account.")
            try await asked.shows("Sign out of work and remove the account")
            asked.type("n")
            #expect(try await asked.end().status == 4)
            #expect(FileTree.text(of: stage.configuration) == Self.text(Self.more, stage))
            #expect(try await stage.token() != nil)

            let removed = try await stage.ringback("account", "remove", "work", "--yes", "--json")
            #expect(removed.status == 0, "\(removed)")
            let document = try JSON(parsing: removed.out.utf8)
            #expect(document["files"] == [.string("\(stage.directory)/work-token")], "\(removed)")
            #expect(
                document["expose_tables"] == [
                    ["name": "ci", "removed": false, "accounts": ["home", "play"]],
                    ["name": "box", "removed": true, "accounts": []],
                    ["name": "last", "removed": false, "accounts": ["play"]],
                ], "\(removed)")
            #expect(FileTree.text(of: stage.configuration) == Self.text(Self.left, stage))
            #expect(try await stage.ringback("config", "check").status == 0)
            let sockets = try await stage.ringback("expose", "list")
            #expect(sockets.out.contains("ci") && !sockets.out.contains("box"), "\(sockets)")
            #expect(FileTree.text(of: "\(stage.directory)/work-token") == nil)
        }
    }

    @Test func `is said where nobody was asked, and the session may be kept`() async throws {
        try await Self.play("[[expose]]\nname = \"ci\"\naccounts = ['work', 'home']\n") { stage in
            let removed = try await stage.ringback("account", "remove", "work", "--yes", "--keep-session")
            #expect(removed.status == 0, "\(removed)")
            #expect(
                removed.out.contains("The restricted socket ci no longer serves this account. It still serves home."),
                "\(removed)")
            #expect(FileTree.text(of: stage.configuration) == "[[expose]]\nname = \"ci\"\naccounts = ['home']\n")
        }
    }

    @Test func `keeps the account and its session where it is in a form that no command changes`() async throws {
        let text = "expose = [{ name = \"ci\", accounts = [\"work\", \"home\"] }]\n"
        try await Self.play(text) { stage in
            let refused = try await stage.ringback("account", "remove", "work", "--yes")
            #expect(refused.status == 1 && refused.err.contains("Nothing was removed"), "\(refused)")
            #expect(refused.err.contains("config.toml, line 1"), "\(refused)")
            #expect(FileTree.text(of: stage.configuration) == text)
            #expect(try await stage.token() != nil)
        }
    }
}
