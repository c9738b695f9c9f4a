import Testing

/// Names that resolve to an address outside at first and to this machine afterwards, asked of a real resolver
/// (Tests/Programs/dns_rebinding.py).
@Suite(.enabled(if: NetworkNamespace.isPossible, NetworkNamespace.reason))
struct `The names of an MCP server and of its issuer` {
    @Test func `lead to no local service, however they resolve later`() async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let place = "\(stage.directory)/names"
            FileTree.makeDirectory(place)
            let run = try await NetworkNamespace.run("dns_rebinding.py", Programs.directory, place, on: stage)
            #expect(run.status == 0, "\(run)")
            let seen = run.lines
            for expected in [
                // The walk looks each name up once, though its requests go to different ports.
                "honest-page true", #"honest-lookups {"id": 1, "mcp": 1}"#, #"honest-end "completed""#,
                #"honest-tokens ["198.51.100.2"]"#,
                // The issuer's name leads inside from the second lookup on: the walk is not touched by it, the token
                // request is refused.
                "issuer-page true", #"issuer-lookups {"id": 1, "mcp": 1}"#, #"issuer-end "provider_unreachable""#,
                "issuer-tokens []",
                // The same for the server's own name.
                "server-page true", #"server-lookups {"mcp": 1}"#, #"server-end "provider_unreachable""#,
                "server-tokens []",
                #"inside-page "provider_unreachable""#, #"private-page "provider_unreachable""#,
                // A server in a private network may name an issuer in one.
                "network-page true", #"network-end "completed""#, #"network-tokens ["10.1.2.3"]"#,
                // The bridges: after the sign-in the server's name leads inside.
                #"moved-end "completed""#, #"honest-servers ["198.51.100.2"]"#, "moved-servers []",
            ] {
                #expect(seen.contains(expected), "\(expected): \(run)")
            }
            #expect(seen.contains { $0.hasPrefix("moved-bridge") && $0.contains("leads to this machine") }, "\(run)")
            for name in ["honest", "issuer", "server", "inside", "private", "network", "moved"] {
                #expect(seen.contains("\(name)-inside []") && seen.contains("\(name)-private []"), "\(run)")
            }
        }
    }
}
