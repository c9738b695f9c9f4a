import Glibc
import RingbackBase
import Testing

extension `account add --register` {
    @Test func `an account that cannot be written takes its registration back, or says what remains`() async throws {
        try await Stage.play { stage in
            for isDeletable in [true, false] {
                let gate: JSON = ["endpoint": "registration", "kind": "gate", "count": 1]
                let deaf: JSON = ["endpoint": "client_configuration", "kind": "status", "status": 503]
                try await stage.sandbox.control(["faults": isDeletable ? [gate] : [gate, deaf]])
                let adding = try stage.start(
                    "ringback", ["account", "add", "play", "--issuer", stage.sandbox.origin, "--register"])
                try await stage.sandbox.wait("registration")
                // Somebody else takes the file's name meanwhile.
                let other = "[accounts.other]\nissuer = \"\(stage.sandbox.origin)\"\nclient_id = \"x\"\n"
                try stage.write(other, to: "\(stage.dropIns)/play.toml")
                try await stage.sandbox.control(["release": "registration"])
                let ended = try await adding.end().expect(1, out: "", says: "play.toml")
                #expect(FileTree.text(of: "\(stage.dropIns)/play.toml") == other)
                #expect(FileTree.names(in: stage.dropIns) == ["play.toml"])
                expectSealed(stage, ended)
                FileTree.remove("\(stage.dropIns)/play.toml")
                guard !isDeletable else {
                    #expect(ended.err.contains("was deleted again"), "\(ended)")
                    #expect(try await stage.sandbox.counters()["registrations_deleted"] == 1)
                    continue
                }
                #expect(ended.err.contains("stays registered at \(stage.sandbox.origin)"), "\(ended)")
                let target = try #require(ended.err.split(separator: "DELETE ").last?.split(separator: "\n").first)
                try await stage.sandbox.control(["clear": true])
                let deleted = try await stage.api("DELETE", String(target), status: 200)
                #expect(deleted["deleted_at_provider"] == true, "\(deleted)")
                #expect(try await stage.sandbox.counters()["registrations_deleted"] == 2)
            }
        }
    }

    @Test func `needs the daemon, and says what does not go together`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            let none = try await add(stage)
            #expect(none.status == 2 && none.err.contains("ringbackd"), "\(none)")
            let usage: [[String]] = [
                ["--register"], ["--register", "--provider", "github"],
                ["--register", "--issuer", stage.sandbox.origin, "--client-id", "x"],
                ["--register", "--issuer", stage.sandbox.origin, "--client-secret-file", "/x"],
                ["--register", "--issuer", stage.sandbox.origin, "--client-key-file", "/x"],
                ["--register", "--issuer", stage.sandbox.origin, "--initial-access-token-fd", "1"],
                ["--issuer", stage.sandbox.origin, "--client-id", "x", "--initial-access-token-fd", "0"],
            ]
            for arguments in usage {
                try await stage.run("ringback", ["account", "add", "play"] + arguments, status: 64, out: "")
            }
            #expect(FileTree.names(in: stage.dropIns) == [])
            #expect(try await stage.sandbox.counters()["registrations"] == 0)
        }
    }

    @Test func `finds a mistake in the account before the provider has registered anything`() async throws {
        try await Stage.play { stage in
            for (more, status) in [
                (["--redirect-uri", "http://app.example.org/"], Int32(64)), (["--ca-file", "/nowhere/ca.pem"], 64),
                (["--response-mode", "fragment"], 64),
            ] {
                let output = try await add(stage, more)
                #expect(output.status == status && output.out.isEmpty, "\(output)")
            }
            #expect(try await stage.sandbox.counters().requests("registration") == 0)
            let fixed = try await add(
                stage, ["--redirect-uri", "http://127.0.0.1:18400/cb", "--response-mode", "query", "--scope", "openid"])
            #expect(fixed.status == 0, "\(fixed)")
            #expect(try await asked(stage)["redirect_uris"] == ["http://127.0.0.1:18400/cb"])
            #expect(try await asked(stage)["scope"] == "openid")
            let text = FileTree.text(of: "\(stage.dropIns)/play.toml") ?? ""
            #expect(text.contains("response_mode = \"query\""), "\(text)")
        }
    }
}
