import Glibc
import RingbackBase
import RingbackClient
import TestSupport
import Testing

@Suite struct `What a service proves itself with` {
    /// True where this user may have a mount of its own: a container may forbid it.
    private static let canMount: Bool = {
        let words = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/tmp"]
        guard let pid = Subprocess.start(words, output: .nothing, errors: .nothing) else { return false }
        return Subprocess.wait(pid) == 0
    }()

    private static let lines = """
        [accounts.build]
        issuer = "{sandbox}"
        client_id = "robot"
        grant = "client_credentials"

        """

    @Test func `a service reads its secret from a descriptor that no child gets`() async throws {
        let configuration = Self.lines + "client_secret_credential = \"robot-secret\"\n"
        try await Stage.play(configuration, startsDaemon: false) { stage in
            try await stage.sandbox.control(["clients": [["id": "robot", "secret": "robot-hush"]]])
            try stage.write("robot-hush\n", to: "\(stage.directory)/secret")
            let script = #"exec "$0" --config "$1" --socket "$2" --state "$3" --credential-fd robot-secret=7 7<"$4""#
            let daemon = try stage.start(
                "/bin/sh",
                [
                    "-c", script, Programs.path("ringbackd"), stage.configuration, stage.socket, stage.state,
                    "\(stage.directory)/secret",
                ])
            _ = try await Connection.first(to: .unix(stage.socket))
            for program in [daemon.pid] + Processes.descendants(of: daemon.pid) {
                let open = "/proc/\(program)/fd"
                let targets = FileTree.names(in: open).map { FileTree.target(of: "\(open)/\($0)") }
                #expect(!targets.contains("\(stage.directory)/secret"), "\(targets)")
            }
            // Read once: the file may go.
            unsafe unlink("\(stage.directory)/secret")
            for _ in 0..<2 { #expect(try await stage.ringback("refresh", "build", "--force").status == 0) }
            try await stage.ringback("token", "build", status: 0)
            daemon.send(SIGTERM)
            #expect(try await daemon.end().status == 0)
        }
    }

    /// What Kubernetes and podman mount: readable by everybody, and nobody can write there.
    @Test(.enabled(if: canMount)) func `a service reads secret and assertion from a read-only mount`() async throws {
        let configuration = """
            [accounts.build]
            issuer = "{sandbox}"
            client_id = "robot"
            client_secret_file = "{stage}/volume/robot-secret"
            grant = "client_credentials"

            [accounts.pod]
            issuer = "{sandbox}"
            grant = "token_exchange"
            assertion_file = "{stage}/volume/token"

            [accounts.given]
            issuer = "{sandbox}"
            client_id = "robot"
            client_secret_credential = "robot-secret"
            grant = "client_credentials"

            """
        try await Stage.play(configuration, startsDaemon: false) { stage in
            try await stage.sandbox.control(["clients": [["id": "robot", "secret": "robot-hush"]]])
            FileTree.makeDirectory("\(stage.directory)/volume")
            try stage.write(try await makeAssertion(stage), to: "\(stage.directory)/assertion")
            let script = """
                set -e
                mount -t tmpfs -o mode=1777 none "$1/volume"
                echo robot-hush > "$1/volume/robot-secret"
                cp "$1/assertion" "$1/volume/token"
                chmod 644 "$1/volume/"*
                mount -o remount,ro "$1/volume"
                export CREDENTIALS_DIRECTORY="$1/volume"
                "$0" config check
                exec "$0" agent --config "$1/config/config.toml" -- \
                    sh -c 'for one in build pod given; do "$0" token "$one" || exit; done' "$0"
                """
            let ended = try await stage.run(
                "/usr/bin/unshare", ["-rm", "sh", "-c", script, Programs.path("ringback"), stage.directory], status: 0)
            #expect(ended.lines.count { $0.hasPrefix("at-") } == 3, "\(ended)")
        }
    }

    @Test func `a service reads its client key from the credentials directory`() async throws {
        let configuration = """
            [accounts.build]
            issuer = "{sandbox}"
            client_id = "signs"
            grant = "client_credentials"
            client_key_file = "$CREDENTIALS_DIRECTORY/key"

            """
        let half = #""kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo""#
        let key = "{\(half),\"d\":\"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A\"}\n"
        try await Stage.play(configuration, startsDaemon: false) { stage in
            let keys = try JSON(parsing: Array("{\(half)}".utf8))
            try await stage.sandbox.control(["clients": [["id": "signs", "jwks": ["keys": [keys]]]]])
            let directory = "\(stage.directory)/credentials"
            FileTree.makeDirectory(directory)
            let place = "\(stage.configuration):5: accounts.build.client_key_file: "
            try await stage.startDaemon(environment: ["CREDENTIALS_DIRECTORY": directory])
            try await stage.ringback("token", "build", status: 78, says: "\(place)the file \(directory)/key")
            try await stage.ringback(
                "config", "check", environment: ["CREDENTIALS_DIRECTORY": directory], status: 78, says: place)
            try stage.write("no key\n", to: "\(directory)/key", mode: 0o400)
            try await stage.ringback("refresh", "build", "--force", status: 78, says: "\(place)the credential key ")
            unsafe unlink("\(directory)/key")
            try stage.write(key, to: "\(directory)/key", mode: 0o400)
            try await stage.ringback("refresh", "build", "--force", status: 0)
            #expect(try await stage.token("build") != nil)
            let form = try #require(try await stage.tokenForms().last)
            #expect(form["client_assertion"] != nil && form["client_secret"] == nil, "\(form)")
        }
    }
}
