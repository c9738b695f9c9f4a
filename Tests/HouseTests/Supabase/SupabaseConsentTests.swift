// The OAuth clients that a user has allowed at a project's own OAuth server, by the command line.

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

    @Test func `supabase consents lists the clients that the user has allowed, and revoke-consent revokes one`()
        async throws
    {
        try await Stage.playProject { stage in
            try await stage.signUp()
            try await allow(stage)
            let list = try await stage.ringback("supabase", "consents", "app")
            #expect(list.status == 0 && list.lines.count == 3 && list.out.hasPrefix("CLIENT"), "\(list)")
            #expect(list.out.contains("openid email") && list.out.contains(Self.notes), "\(list)")
            #expect(!list.out.contains("Another"), "\(list)")
            let json = try JSON(parsing: try await stage.ringback("supabase", "consents", "app", "--json").out.utf8)
            #expect(json["consents"]?.array?.first?["client_name"] == "Notes", "\(json)")

            let revoked = try await stage.ringback("supabase", "revoke-consent", "app", Self.notes)
            #expect(revoked.status == 0 && revoked.out == "Revoked the consent for \(Self.notes)\n", "\(revoked)")
            let rest = try await stage.ringback("supabase", "consents", "app")
            #expect(rest.lines.count == 2 && rest.out.contains(Self.other), "\(rest)")
            // The user's own session is not the client's.
            #expect(try await stage.account("app")["state"] == "authenticated")

            let again = try await stage.ringback("supabase", "revoke-consent", "app", Self.notes)
            #expect(again.status == 1 && again.err.contains("See: ringback supabase consents app"), "\(again)")
            let wrong = try await stage.ringback("supabase", "revoke-consent", "app", "x")
            #expect(wrong.status == 64 && wrong.err.contains("not a UUID"), "\(wrong)")
        }
    }

    @Test func `supabase consents without consents, without a session or without an OAuth server says so`() async throws
    {
        try await Stage.playProject { stage in
            let nobody = try await stage.ringback("supabase", "consents", "app")
            #expect(nobody.status == 3, "\(nobody)")
            try await stage.signUp()
            let off = try await stage.ringback("supabase", "consents", "app")
            #expect(off.status == 1 && off.err.contains("feature_disabled"), "\(off)")
            try await stage.setProject(["consents": []])
            let none = try await stage.ringback("supabase", "consents", "app")
            #expect(none.status == 0 && none.out.isEmpty && none.err.contains("allowed no client"), "\(none)")
        }
    }
}
