import RingbackBase
import Testing

/// `account add` has the daemon ask the provider before anything is written.
@Suite struct `account add asks the provider` {
    private struct Mistake: Sendable {
        let arguments: String
        let status: Int32
        let words: [String]
    }

    /// `{sandbox}` is the sandbox's origin, `{port}` its port.
    private static let mistakes: [Mistake] = [
        Mistake(
            arguments: "--issuer https://id.exmple.invalid --client-id ringback", status: 5,
            words: ["id.exmple.invalid cannot be reached: the name could not be resolved", "Look at --issuer."]),
        Mistake(
            arguments: "--issuer http://127.0.0.1:1 --client-id ringback", status: 5,
            words: ["127.0.0.1:1 cannot be reached: the connection was refused", "Look at --issuer."]),
        Mistake(
            arguments: "--issuer {sandbox}/ --client-id ringback", status: 78,
            words: [
                "127.0.0.1:{port} ", "the configured one has a slash at the end", "Use --issuer {sandbox} instead.",
            ]),
        Mistake(
            arguments: "--issuer {sandbox}/nowhere --client-id ringback", status: 78,
            words: ["HTTP 404", "it is the URL before /.well-known/openid-configuration"]),
        Mistake(
            arguments: "--issuer https://127.0.0.1:{port} --client-id ringback", status: 5,
            words: [
                "The server at 127.0.0.1:{port} does not speak TLS",
                "Try --issuer http://127.0.0.1:{port} instead.",
            ]),
        Mistake(
            arguments: "--issuer http://localhost:{port} --client-id ringback", status: 78,
            words: [
                "“http://127.0.0.1:{port}”", "“http://localhost:{port}”",
                "Use --issuer http://127.0.0.1:{port} instead.",
            ]),
        Mistake(
            arguments: "--issuer {sandbox}/.well-known/openid-configuration --client-id ringback", status: 64,
            words: ["the issuer is the part before /.well-known/"]),
        Mistake(
            arguments: "--issuer http://id.example.org --client-id ringback", status: 64,
            words: ["--issuer: the issuer is not an https URL"]),
        Mistake(
            arguments: "--provider supabase --url {sandbox}/supabase --api-key sb_publishable_wrong", status: 78,
            words: ["does not accept the api_key (HTTP 401)", "Look at --api-key."]),
        Mistake(
            arguments: "--provider supabase --url {sandbox}/supabase", status: 64,
            words: ["--api-key: is missing: provider = \"supabase\" needs it"]),
        Mistake(
            arguments: "--provider supabase --api-key sb_publishable_sandbox", status: 64,
            words: ["--url: is missing"]),
        Mistake(arguments: "--issuer {sandbox}", status: 64, words: ["--client-id: is missing: the id that"]),
        Mistake(
            arguments: "--provider supabase --url {sandbox}/nowhere --api-key sb_publishable_sandbox", status: 78,
            words: ["is not a Supabase Auth server (HTTP 404)", "Look at --url."]),
        Mistake(
            arguments: "--authorization-endpoint {sandbox}/authorize --token-endpoint http://127.0.0.1:1/token "
                + "--client-id ringback", status: 5,
            words: ["127.0.0.1:1 cannot be reached", "Look at --token-endpoint."]),
        Mistake(
            arguments: "--authorization-endpoint http://127.0.0.1:1/authorize --token-endpoint {sandbox}/token "
                + "--client-id ringback", status: 5,
            words: ["127.0.0.1:1 cannot be reached", "Look at --authorization-endpoint."]),
        Mistake(
            arguments: "--authorization-endpoint {sandbox}/authorize --token-endpoint {sandbox}/nowhere "
                + "--client-id ringback", status: 78,
            words: ["no token endpoint at this URL (HTTP 404)", "Look at --token-endpoint."]),
    ]

    @Test func `account add names a wrong option after asking the provider, and writes nothing`() async throws {
        try await Stage.play { stage in
            let origin = stage.sandbox.origin
            let port = String(origin.split(separator: ":").last ?? "")
            let filled = { (text: String) in text.replacing("{sandbox}", with: origin).replacing("{port}", with: port) }
            for mistake in Self.mistakes {
                let arguments = filled(mistake.arguments).split(separator: " ").map(String.init)
                let output = try await stage.run(
                    "ringback", ["account", "add", "play"] + arguments, status: mistake.status, out: "")
                for words in mistake.words { #expect(output.err.contains(filled(words)), "\(arguments): \(output)") }
                #expect(
                    !output.err.contains("config check") && !output.err.contains(".toml:"), "\(arguments): \(output)")
                #expect(FileTree.names(in: stage.dropIns) == [])
            }
            let offline = try await stage.ringback(
                "account", "add", "play", "--issuer", "http://127.0.0.1:1", "--client-id", "x", "--offline", "--json",
                status: 0)
            #expect(try offline.json["provider_asked"] == false)
            let good = try await stage.ringback(
                "account", "add", "good", "--issuer", "\(origin)/tenant-b", "--client-id", "ringback-demo", "--json",
                status: 0)
            let document = try good.json
            #expect(document["provider_asked"] == true)
            #expect(document["checks"]?.array?.contains { $0["check"] == "discovery" && $0["level"] == "ok" } == true)
        }
    }

    @Test func `account add without a daemon says that the provider was not asked`() async throws {
        try await Stage.play(startsDaemon: false) { stage in
            try await stage.ringback(
                "account", "add", "play", "--issuer", "http://127.0.0.1:1", "--client-id", "x", status: 0,
                says: "the provider was not asked", "ringback doctor play")
        }
    }

    @Test func `account add asks no provider through a restricted socket`() async throws {
        try await Stage.playSignedIn { stage in
            let exposed = try await stage.ringback("expose", "guest", "--account", "work", "--json")
            let socket = try #require(try exposed.json["socket"]?.string, "\(exposed)")
            let requests = try await stage.sandbox.counters().requests("discovery")
            try await stage.ringback(
                "account", "add", "play", "--issuer", stage.sandbox.origin, "--client-id", "x", "--socket", socket,
                status: 4)
            #expect(FileTree.names(in: stage.dropIns) == [])
            #expect(try await stage.sandbox.counters().requests("discovery") == requests)
        }
    }
}
