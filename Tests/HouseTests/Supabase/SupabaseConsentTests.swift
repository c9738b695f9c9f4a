import RingbackBase
import Testing

@Suite struct `ringback supabase consents` {
    private static let notes = "5d0c2b1e-6c34-4b9e-9f5f-0f1a2b3c4d5e"
    private static let other = "7d0c2b1e-6c34-4b9e-9f5f-0f1a2b3c4d5e"

    private func allow(_ stage: Stage) async throws {
        try await stage.setProject([
            "consents": [
                [
                    "user": "mira@example.org", "client_id": .string(Self.notes), "name": "Notes",
                    "scopes": ["openid", "email"],
                ],
                ["user": "mira@example.org", "client_id": .string(Self.other)],
                ["user": "alice@example.org", "client_id": .string(Self.notes), "name": "Another user's"],
            ]
        ])
    }

    @Test func `supabase consents lists the allowed clients, and revoke-consent revokes one`() async throws {
        try await Stage.playSignedUp { stage in
            try await allow(stage)
            let list = try await stage.ringback(
                "supabase", "consents", "app", status: 0, prints: "openid email", Self.notes)
            #expect(list.lines.count == 3 && list.out.hasPrefix("CLIENT"), "\(list)")
            #expect(!list.out.contains("Another"), "\(list)")
            let json = try JSON(parsing: try await stage.ringback("supabase", "consents", "app", "--json").out.utf8)
            #expect(json["consents"]?.array?.first?["client_name"] == "Notes", "\(json)")

            try await stage.ringback(
                "supabase", "revoke-consent", "app", Self.notes, status: 0,
                out: "Revoked the consent for \(Self.notes)\n")
            let rest = try await stage.ringback("supabase", "consents", "app")
            #expect(rest.lines.count == 2 && rest.out.contains(Self.other), "\(rest)")
            // The user's own session is not the client's.
            #expect(try await stage.account("app")["state"] == "authenticated")

            try await stage.ringback(
                "supabase", "revoke-consent", "app", Self.notes, status: 1, says: "See: ringback supabase consents app")
            try await stage.ringback("supabase", "revoke-consent", "app", "x", status: 64, says: "not a UUID")
        }
    }

    @Test func `supabase consents says that there are none, no session or no OAuth server`() async throws {
        try await Stage.playProject { stage in
            try await stage.ringback("supabase", "consents", "app", status: 3)
            try await stage.signUp()
            try await stage.ringback("supabase", "consents", "app", status: 1, says: "feature_disabled")
            try await stage.setProject(["consents": []])
            try await stage.ringback("supabase", "consents", "app", status: 0, out: "", says: "allowed no client")
        }
    }
}
