import Testing

@Suite struct `A mistake in what is typed` {
    private static let unknownAccounts = [
        "audit --account nobody", "login nobody", "token nobody", "token nobody --json", "token nobody --kind id_token",
        "session nobody", "claims nobody", "refresh nobody", "logout nobody", "logout nobody --no-browser",
        "doctor nobody", "use nobody", "account remove nobody --yes", "account edit nobody", "exec nobody -- true",
        "verify nobody", "resend nobody", "expose x --account nobody",
        "scheme register org.example.b --account nobody", "supabase user nobody", "supabase rpc nobody f",
        "supabase invoke nobody f",
        "supabase link nobody github", "supabase factors nobody", "supabase identities nobody",
        "supabase verify-factor nobody", "supabase reset-password nobody --email a@example.org",
        "supabase update-user nobody --email a@example.org", "migrate-user nobody", "env nobody", "events nobody",
    ]

    private static let unknownValues = [
        "login work --method nonsense", "token work --format nonsense", "token work --kind nonsense",
        "token work --min-valid x", "token --origin nonsense", "logout work --scope nonsense", "audit --limit x",
        "account add b --provider nonsense --client-id x", "account add B --issuer https://b.example --client-id x",
        "vault rekey --key-source nonsense", "vault invite --lasting 30s", "expose bad!name --account work",
        "expose x --account work --ttl nonsense",
        "login work --callback-port 99999", "origin add nonsense --account work", "login work --timeout x",
        "nonsense",
    ]

    @Test func `unknown accounts and values are usage errors for every verb`() async throws {
        try await Stage.play { stage in
            for line in Self.unknownAccounts + Self.unknownValues {
                let output = try await stage.run(
                    "ringback", line.split(separator: " ").map(String.init), stdin: "", status: 64, out: "")
                #expect(!output.err.isEmpty, "\(line): \(output)")
            }
        }
    }

    @Test func `verify and resend name no codes for a provider that sends none`() async throws {
        try await Stage.play { stage in
            for verb in ["verify", "resend"] {
                let output = try await stage.ringback(
                    verb, "work", stdin: "", status: 1, says: "sends no codes", "ringback login work")
                #expect(!output.err.contains("otp"), "\(output)")
            }
        }
    }
}
