import Glibc
import RingbackBase
import Testing

@Suite struct `kubectl` {
    static let isInstalled = areInstalled("kubectl", "openssl")

    private static let origin = """
        [[origin]]
        url = "https://k8s.example.org:6443/*"
        account = "work"
        kind = "id_token"

        """
    private static let group = "client.authentication.k8s.io"

    private func info(
        version: String = "v1", server: String? = nil, interactive: Bool = false, settings: String = ""
    ) -> [String: String] {
        let cluster = server.map { #","cluster":{"server":"\#($0)"\#(settings)}"# } ?? ""
        return [
            "KUBERNETES_EXEC_INFO":
                #"{"kind":"ExecCredential","apiVersion":"\#(Self.group)/\#(version)","#
                + #""spec":{"interactive":\#(interactive)\#(cluster)}}"#
        ]
    }

    private func digest(of file: String, _ stage: Stage) async throws -> String {
        String(try await stage.run("/usr/bin/sha256sum", [file]).out.prefix(64))
    }

    private func idToken(_ stage: Stage) async throws -> String {
        let session = try await stage.api("GET", "/v1/accounts/work/session?include=id_token")
        return try #require(session["id_token"]?.string)
    }

    @Test func `kubectl-credential gives the token of the cluster's origin or of --account`() async throws {
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origin) { stage in
            let idToken = try await idToken(stage)
            let token = try #require(try await stage.token())
            stage.link(ringbackAs: "kubectl-ringback")
            for (name, arguments, server, expected) in [
                ("ringback", ["kubectl-credential"], "https://k8s.example.org:6443", idToken),
                ("\(stage.directory)/bin/kubectl-ringback", [], "https://k8s.example.org:6443/a", idToken),
                ("ringback", ["kubectl-credential", "--account", "work"], nil, idToken),
                ("\(stage.directory)/bin/kubectl-ringback", ["--account", "work", "--kind", "id_token"], nil, idToken),
                ("ringback", ["kubectl-credential", "--account", "work", "--kind", "access_token"], nil, token),
            ] {
                for version in ["v1", "v1beta1"] {
                    let answer = try await stage.run(
                        name, arguments, environment: info(version: version, server: server), status: 0)
                    #expect(answer.err.isEmpty, "\(answer)")
                    let json = try answer.json
                    #expect(
                        json["apiVersion"]?.string == "\(Self.group)/\(version)" && json["kind"] == "ExecCredential")
                    #expect(json["status"]?["token"]?.string == expected, "\(arguments)")
                    #expect(json["status"]?["expirationTimestamp"]?.string?.hasSuffix("Z") == true, "\(answer)")
                }
            }
            // By hand, and by clients that do not set the variable.
            for environment in [[:], ["KUBERNETES_EXEC_INFO": ""]] {
                try await stage.ringback(
                    "kubectl-credential", "--account", "work", environment: environment, status: 0, prints: idToken)
            }
            let audit = try await stage.api("GET", "/v1/audit")["entries"]?.array ?? []
            #expect(audit.contains { $0["tool"] == "kubectl" && $0["origin"] == "https://k8s.example.org:6443/*" })
        }
    }

    @Test func `kubectl-credential gives no token for another cluster`() async throws {
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origin) { stage in
            for (environment, arguments, words) in [
                (info(server: "https://k8s.example.org"), [], "ringback origin add URL"),
                (info(server: "https://evil.example.org:6443"), [], "ringback origin add URL"),
                (info(), [], "provideClusterInfo"), ([:], [], "is not set"),
                (info(version: "v1alpha1"), ["--account", "work"], "no ExecCredential of version"),
                (["KUBERNETES_EXEC_INFO": "{"], ["--account", "work"], "not valid JSON"),
                (info(), ["--account", "nobody"], "nobody"), (info(), ["--kind", "access_token"], "--account"),
                (info(), ["--account", "work", "--kind", "cookie"], "id_token"),
            ] {
                let refused = try await stage.run(
                    "ringback", ["kubectl-credential"] + arguments, environment: environment)
                #expect(refused.status != 0 && refused.out.isEmpty && refused.err.contains(words), "\(refused)")
            }
        }
    }

    @Test func `kubectl-credential gives no token for TLS settings that the origin does not allow`() async throws {
        let server = "https://k8s.example.org:6443"
        try await Stage.playSignedIn(Stage.twoAccounts + Self.origin) { stage in
            let insecure = info(server: server, settings: #","insecure-skip-tls-verify":true"#)
            let renamed = info(server: server, settings: #","tls-server-name":"k8s""#)
            for (environment, line) in [(insecure, "insecure_skip_tls_verify = true"), (renamed, "tls_server_name")] {
                try await stage.ringback("kubectl-credential", environment: environment, status: 4, out: "", says: line)
            }
            // Without an origin, only what opens the connection to others than the kubeconfig's author is refused.
            let account = ["kubectl-credential", "--account", "work"]
            let open = try await stage.run("ringback", account, environment: insecure, out: "")
            #expect(open.status != 0, "\(open)")
            try await stage.run("ringback", account, environment: renamed, status: 0)
            for path in ["ca.crt", "\(stage.directory)/none", stage.directory] {
                let unreadable = try await stage.ringback(
                    "kubectl-credential",
                    environment: info(server: server, settings: #","certificate-authority":"\#(path)""#))
                #expect(unreadable.status != 0 && unreadable.out.isEmpty, "\(unreadable)")
            }
        }
    }

    @Test func `kubectl-credential waits for a sign-in only if it is interactive and on a terminal`() async throws {
        try await Stage.play(Stage.twoAccounts + Self.origin) { stage in
            try stage.write("#!/bin/sh\n: >\"$HOME/opened\"\n", to: "\(stage.directory)/bin/xdg-open", mode: 0o700)
            let server = "https://k8s.example.org:6443"
            for (arguments, environment) in [
                ([], info(server: server)), ([], info(server: server, interactive: true)),
                (["--account", "work"], info()), (["--account", "work"], info(interactive: true)),
            ] {
                let refused = try await stage.run(
                    "ringback", ["kubectl-credential"] + arguments, environment: environment, status: 3, out: "",
                    says: "ringback login work")
                #expect(!refused.err.contains("is waiting"), "\(refused)")
            }
            let alone = try TerminalProgram(
                ["kubectl-credential"], environment: stage.environment.merging(info(server: server)) { _, new in new })
            #expect(try await alone.end().status == 3)
            #expect(alone.text.contains("ringback login work") && !alone.text.contains("is waiting"), "\(alone.text)")
            #expect(try await stage.api("GET", "/v1/flows")["flows"]?.array?.isEmpty == true)

            for arguments in [[], ["--account", "work"]] {
                let environment = info(server: server, interactive: true)
                let waiting = try TerminalProgram(
                    ["kubectl-credential"] + arguments,
                    environment: stage.environment.merging(environment) { _, new in new })
                try await waiting.shows("kubectl is waiting for work.")
                try await stage.signIn()
                #expect(try await waiting.end().status == 0, "\(waiting.text)")
                #expect(waiting.text.contains("\"token\":\"\(try await idToken(stage))\""), "\(waiting.text)")
                try await stage.ringback("logout", "work", status: 0)
            }
            #expect(unsafe access("\(stage.directory)/home/opened", F_OK) != 0)
        }
    }

    @Test(.enabled(if: isInstalled, "kubectl or openssl is not installed"))
    func `kubectl sends the cluster the token of its plugin`() async throws {
        try await Stage.play { stage in
            let (server, port) = try await stage.startToolServer()
            stage.link(ringbackAs: "kubectl-ringback")
            try await stage.ringback(
                "origin", "add", "https://127.0.0.1:\(port)", "--account", "work", "--kind", "id_token", "--ca-sha256",
                try await digest(of: "\(stage.directory)/server.pem", stage), status: 0)
            let command = try #require(
                try Document(path: "docs/tools.md").lines.first { $0.hasPrefix("kubectl config set-credentials work") })
            func get(_ options: String = "") async throws -> Output {
                let configuration = """
                    {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                     "contexts": [{"name": "c", "context": {"cluster": "k", "user": "work"}}],
                     "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:\(port)",
                       "certificate-authority": "\(stage.directory)/server.pem"}}]}
                    """
                try stage.write(configuration, to: "\(stage.directory)/kubeconfig")
                return try await stage.run(
                    "/bin/sh", ["-c", "\(command) \(options) >/dev/null && exec kubectl get --raw /readyz"],
                    environment: ["KUBECONFIG": "\(stage.directory)/kubeconfig"])
            }
            let signedOut = try await get()
            #expect(signedOut.status != 0 && signedOut.err.contains("ringback login work"), "\(signedOut)")
            try await stage.signIn()
            try await get().expect(0, prints: "ok")
            let idToken = try await idToken(stage)
            _ = try await server.line("the request with the ID token") { $0 == "/readyz Bearer \(idToken)" }
            try await get("--exec-arg=--account=work --exec-arg=--kind=access_token").expect(0)
            let token = try #require(try await stage.token())
            _ = try await server.line("the request with the access token") { $0 == "/readyz Bearer \(token)" }
        }
    }
}
