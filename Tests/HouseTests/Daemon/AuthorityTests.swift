import Testing

@Suite struct `The system's certificate authorities` {
    private static let bundle = "/etc/ssl/certs/ca-certificates.crt"
    private static let openssl = "/usr/bin/openssl"
    /// Another file can be put over the bundle, for the daemon alone.
    private static let canReplace =
        Stranger.isPossible && FileTree.mode(of: bundle) != nil && FileTree.mode(of: openssl) != nil

    @Test(.enabled(if: canReplace, "needs root, \(openssl) and \(bundle)"))
    func `a reload reads ca_file again`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let (key, certificate) = ("\(stage.directory)/key.pem", "\(stage.directory)/authority.pem")
            try await stage.run(
                Self.openssl,
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
                ], status: 0)
            let server = try stage.start(
                Self.openssl, ["s_server", "-accept", "127.0.0.1:0", "-www", "-key", key, "-cert", certificate])
            let line = try await server.line("the TLS server's port") { $0.hasPrefix("ACCEPT ") }
            let account = """
                [accounts.work]
                issuer = "https://127.0.0.1:\(line.split(separator: ":").last ?? "")"
                client_id = "c"

                """
            try stage.write(configuration: account)
            let authorities = "\(stage.directory)/authorities.pem"
            try stage.write(FileTree.text(of: Self.bundle) ?? "", to: authorities)
            let script = "mount --bind '\(authorities)' \(Self.bundle) && exec \"$@\""
            let ready = stage.notices.count
            _ = try stage.start(
                "/usr/bin/unshare",
                ["--mount", "/bin/sh", "-c", script, "sh", Programs.path("ringbackd"), "--state", stage.state],
                environment: ["NOTIFY_SOCKET": stage.notices.path])
            try await stage.notices.wait(for: "READY=1", after: ready)
            try await stage.api("POST", "/v1/accounts/work/sign-in", status: 503, code: "provider_unreachable")
            // In place, so that the daemon sees it.
            let text = (FileTree.text(of: authorities) ?? "") + (FileTree.text(of: certificate) ?? "")
            try stage.write(text, to: authorities)
            try await stage.ringback("reload", status: 0)
            // The handshake was done: what failed is what the server said then.
            try await stage.api("POST", "/v1/accounts/work/sign-in", status: 502, code: "invalid_provider_response")
        }
    }
}
