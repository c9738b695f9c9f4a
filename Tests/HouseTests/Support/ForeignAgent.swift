import Glibc
import RingbackBase
import Testing

/// oidc-agent with an account at the sandbox, for the tests that compare with it and take its account over.
struct ForeignAgent {
    static let isInstalled = areInstalled("oidc-agent", "oidc-gen", "oidc-token")
    static let passphrase = "correct horse"
    static let secret = "s3cret"

    let environment: [String: String]
    private let pid: Int32

    /// Starts the agent and makes the account `mine`, with a session of alice at the sandbox.
    init(on stage: Stage) async throws {
        try await stage.sandbox.control(["clients": [["id": "ringback-demo", "secret": .string(Self.secret)]]])
        unsafe mkdir("\(stage.directory)/oidc-agent", 0o700)
        var environment = ["OIDC_CONFIG_DIR": "\(stage.directory)/oidc-agent", "TMPDIR": stage.directory]
        let started = try await stage.run("/usr/bin/oidc-agent", [], environment: environment)
        for command in started.out.split(whereSeparator: { $0 == ";" || $0 == "\n" }) {
            let parts = command.drop { $0 == " " }.split(separator: "=", maxSplits: 1).map(String.init)
            if parts.count == 2 { environment[parts[0]] = parts[1] }
        }
        guard let pid = environment["OIDCD_PID"].flatMap({ Int32($0) }) else {
            throw Late(what: "an agent, not \(started)")
        }
        (self.environment, self.pid) = (environment, pid)
        do {
            let made = try await stage.run(
                "/usr/bin/oidc-gen",
                [
                    "--manual", "--prompt=none", "--confirm-default", "--flow=refresh",
                    "--pw-cmd=echo \(Self.passphrase)", "--issuer=\(stage.sandbox.origin)",
                    "--client-id=ringback-demo", "--client-secret=\(Self.secret)",
                    "--rt=\(try await Self.refreshToken(on: stage))", "--redirect-uri=http://localhost:8080",
                    "--scope=openid email offline_access", "mine",
                ], environment: environment)
            guard made.status == 0 else { throw Late(what: "an account of oidc-agent, not \(made)") }
        } catch {
            stop()
            throw error
        }
    }

    /// Ends the agent, and removes the folder of its socket, which is below `/tmp`.
    func stop() {
        kill(pid, SIGTERM)
        guard let socket = environment["OIDC_SOCK"], socket.hasPrefix("/tmp/oidc-"),
            let slash = socket.lastIndex(of: "/")
        else { return }
        FileTree.remove(String(socket[..<slash]))
    }

    /// A refresh token that another program got, by a sign-in of its own. The PKCE values are those of RFC 7636
    /// appendix B.
    static func refreshToken(on stage: Stage) async throws -> String {
        let metadata = try await stage.sandbox.request("GET", "/.well-known/openid-configuration").json
        guard let page = metadata["authorization_endpoint"]?.string, let tokens = metadata["token_endpoint"]?.string
        else { throw Late(what: "metadata, not \(metadata)") }
        let callback = try await Browser.signIn(
            at: page + "?response_type=code&client_id=ringback-demo&redirect_uri=http://127.0.0.1:1/cb&state=other"
                + "&scope=openid%20email%20offline_access&code_challenge_method=S256"
                + "&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
        let form =
            "grant_type=authorization_code&client_id=ringback-demo&client_secret=\(secret)&code=\(callback["code"] ?? "")"
            + "&redirect_uri=http://127.0.0.1:1/cb&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        let answer = try await Browser.load(try LocalURL(tokens), form: form, fields: [])
        guard let token = answer["refresh_token"]?.string else { throw Late(what: "a refresh token, not \(answer)") }
        return token
    }
}
