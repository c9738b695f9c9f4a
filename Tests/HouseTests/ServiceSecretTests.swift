// Where a service's secrets come from, on machines that nobody logs in to.

import Glibc
import RingbackClient
import StrictJSON
import Testing

@Suite struct `What a service proves itself with` {
    /// True where this user may have a mount of its own: a container may forbid it.
    private static let canMount: Bool = {
        let words = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/tmp"]
        guard let pid = Subprocess.start(words, output: .nothing, errors: .nothing) else { return false }
        return Subprocess.wait(pid) == 0
    }()

    /// A Kubernetes volume is open to everybody (1777), root's, and mounted read-only: nobody can write there.
    @Test(.enabled(if: canMount)) func `has its assertion from a read-only mount that root owns`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            FileTree.makeDirectory("\(stage.directory)/volume")
            try stage.write(
                """
                [accounts.pod]
                issuer = "http://127.0.0.1:1"
                grant = "jwt_bearer"
                assertion_file = "\(stage.directory)/volume/token"
                """, to: stage.configuration)
            let script = """
                set -e
                mount -t tmpfs -o mode=1777 none "$1/volume"
                cd "$1/volume"
                mkdir ..1
                echo a.b.c > ..1/token
                chmod 644 ..1/token
                ln -s ..1 ..data
                ln -s ..data/token token
                "$0" --check-config && exit 1
                mount -o remount,ro "$1/volume"
                exec "$0" --check-config
                """
            let ended = try await stage.run(
                "/usr/bin/unshare", ["-rm", "sh", "-c", script, Programs.path("ringbackd"), stage.directory])
            #expect(ended.status == 0 && ended.out.hasPrefix("pod: oidc, no sign-in"), "\(ended)")
            #expect(ended.err.contains("can be written by others"), "\(ended)")
        }
    }

    @Test func `has its secret from systemd's credentials directory`() async throws {
        let configuration = """
            [accounts.build]
            issuer = "{sandbox}"
            client_id = "robot"
            client_secret_credential = "robot-secret"
            grant = "client_credentials"
            """
        try await Stage.play(configuration, startsDaemon: false) { stage in
            try await stage.sandbox.control(["clients": [["id": "robot", "secret": "robot-hush"]]])
            try await stage.startDaemon()
            let without = try await stage.api("GET", "/v1/accounts/build/session")
            #expect(
                without.status == 400 && without["detail"]?.string?.contains("--credential-fd") == true, "\(without)")
            try await stage.stopDaemon()
            FileTree.makeDirectory("\(stage.directory)/credentials")
            try stage.write("robot-hush\n", to: "\(stage.directory)/credentials/robot-secret", mode: 0o400)
            try await stage.startDaemon(environment: ["CREDENTIALS_DIRECTORY": "\(stage.directory)/credentials"])
            #expect(try await stage.token("build") != nil)
        }
    }
}
