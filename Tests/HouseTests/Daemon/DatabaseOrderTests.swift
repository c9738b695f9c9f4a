// What an administrator of a vault's database does, as far as it needs no database: make test-hosts has one.

import RingbackBase
import Testing

@Suite struct `ringback vault init` {
    private let place = "postgresql://postgres@127.0.0.1:1/vault"

    @Test func `says where nobody listens, and what to do next`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for words in [["init", place, "--owner", "ada"], ["migrate", place], ["status", place]] {
                try await stage.run(
                    "ringback", ["vault"] + words, status: 1, out: "", says: "\(place): no connection can be made.",
                    "See that the server runs")
            }
        }
    }

    private static let refusals = [
        ("postgresql://db/vault", "must name a role"),
        ("postgresql://ada:hunter2@127.0.0.1/vault", "must not have a password"),
        ("postgresql://ada@127.0.0.1/vault?password=hunter2", "must not have a password"),
        ("postgresql://ada@db.example.org/vault?sslmode=require", "must have no sslmode"),
        ("postgresql://ada@127.0.0.1/vault?options=x", "the parameter options"),
        ("https://hunter2", "must begin with postgresql://"),
    ]

    @Test func `refuses a URL as a mistake of usage, and shows nothing of it`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for (url, reason) in Self.refusals {
                for words in [["status", url], ["init", url, "--owner", "ada"]] {
                    let said = try await stage.run("ringback", ["vault"] + words, status: 64, out: "", says: reason)
                    #expect(!said.err.contains("hunter2"), "\(said)")
                }
                let said = try await stage.ringback(
                    "vault", "init", place, "--owner", "ada", "--host-url", url, status: 64, says: "of --host-url",
                    reason)
                #expect(!said.err.contains("hunter2"), "\(said)")
            }
        }
    }

    @Test func `needs an owner's name that a database can keep`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for owner in ["", String(repeating: "a", count: 65), "a\nb"] {
                try await stage.ringback("vault", "init", place, "--owner", owner, status: 64)
            }
        }
    }

    @Test func `the daemon's program takes its orders in one form`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            for words in [
                ["--database", "drop", "--url", place], ["--database", "facts"], ["--url", place],
                ["--database", "facts", "--url", place, "--owner", "ada"], ["--database", "init", "--url", place],
            ] {
                try await stage.run("ringbackd", words, status: 64, out: "")
            }
            let said = try await stage.run("ringbackd", ["--database", "facts", "--url", place], status: 1)
            #expect(said.err.isEmpty, "\(said)")
            let report = try said.json
            #expect(report["problem"]?.string == "no_connection" && report["place"]?.string == place)
        }
    }

    @Test func `a daemon without a database says so, and how it gets one`() async throws {
        try await Stage.play { stage in
            try await stage.ringback("vault", "move", status: 1, says: "on this host alone", "ringback vault join")
            try await stage.ringback("vault", "status", status: 0, prints: "on this host alone")
        }
    }
}
