// What an administrator of a vault's database does, as far as it needs no database: make test-hosts has one.

import RingbackBase
import TestSupport
import Testing

@Suite struct `ringback vault init` {
    private let place = "postgresql://postgres@127.0.0.1:1/vault"

    @Test func `says where nobody listens, and what to do next`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for words in [["init", place, "--owner", "ada"], ["migrate", place], ["status", place]] {
                let said = try await stage.run("ringback", ["vault"] + words)
                #expect(said.status == 1 && said.out.isEmpty, "\(said)")
                #expect(said.err.contains("\(place): no connection can be made."), "\(said)")
                #expect(said.err.contains("See that the server runs"), "\(said)")
            }
        }
    }

    @Test(arguments: [
        ("postgresql://db/vault", "must name a role"),
        ("postgresql://ada:hunter2@127.0.0.1/vault", "must not have a password"),
        ("postgresql://ada@127.0.0.1/vault?password=hunter2", "must not have a password"),
        ("postgresql://ada@db.example.org/vault?sslmode=require", "must have no sslmode"),
        ("postgresql://ada@127.0.0.1/vault?options=x", "the parameter options"),
        ("https://hunter2", "must begin with postgresql://"),
    ])
    func `refuses a URL as a mistake of usage, and shows nothing of it`(url: String, reason: String) async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for words in [["status", url], ["init", url, "--owner", "ada"]] {
                let said = try await stage.run("ringback", ["vault"] + words)
                #expect(said.status == 64 && said.err.contains(reason), "\(said)")
                #expect(!said.err.contains("hunter2") && said.out.isEmpty, "\(said)")
            }
            let said = try await stage.run("ringback", ["vault", "init", place, "--owner", "ada", "--host-url", url])
            #expect(said.status == 64 && said.err.contains("of --host-url") && said.err.contains(reason), "\(said)")
            #expect(!said.err.contains("hunter2"), "\(said)")
        }
    }

    @Test func `needs an owner's name that a database can keep`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for owner in ["", String(repeating: "a", count: 65), "a\nb"] {
                let said = try await stage.run("ringback", ["vault", "init", place, "--owner", owner])
                #expect(said.status == 64, "\(said)")
            }
        }
    }

    @Test func `the daemon's program takes its orders in one form`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for words in [
                ["--database", "drop", "--url", place], ["--database", "facts"], ["--url", place],
                ["--database", "facts", "--url", place, "--owner", "ada"], ["--database", "init", "--url", place],
            ] {
                let said = try await stage.run("ringbackd", words)
                #expect(said.status == 64 && said.out.isEmpty, "\(words): \(said)")
            }
            let said = try await stage.run("ringbackd", ["--database", "facts", "--url", place])
            #expect(said.status == 1 && said.err.isEmpty, "\(said)")
            let report = try JSON(parsing: said.out.utf8)
            #expect(report["problem"]?.string == "no_connection" && report["place"]?.string == place)
        }
    }

    @Test func `a daemon without a database says so, and how it gets one`() async throws {
        try await Stage.play { stage in
            let move = try await stage.run("ringback", ["vault", "move"])
            #expect(move.status == 1 && move.err.contains("on this host alone"), "\(move)")
            #expect(move.err.contains("ringback vault join"), "\(move)")
            let status = try await stage.run("ringback", ["vault", "status"])
            #expect(status.status == 0 && status.out.contains("on this host alone"), "\(status)")
        }
    }
}
