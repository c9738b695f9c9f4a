import RingbackBase
import Testing

@Suite struct `The description of events` {
    private static let configuration =
        Stage.twoAccounts + """

            [schemes.notes]
            command = ["/bin/true", "{url}"]

            """

    private func names(_ events: [JSON]) -> Set<String> { Set(events.compactMap { $0["event"]?.string }) }

    @Test func `is what a daemon sends of sessions, links and sign-ins`() async throws {
        try await Stage.play(Self.configuration) { stage in
            let events = try await stage.listen(to: "/v1/events")
            let telemetry = try await stage.listen(to: "/v1/events?telemetry=true")
            let links = try await stage.listen(to: "/v1/deep-links?scheme=notes")

            // The event comes 600 seconds before the end.
            try await stage.sandbox.control(["refresh_expires_in": true, "refresh_token_lifetime": 603])
            try await stage.signIn()
            _ = try await events.next("session_ending")
            let refresh = "/v1/accounts/work/refresh"
            #expect(try await stage.api("POST", refresh, ["force": true]).status == 200)
            let fault: JSON = ["endpoint": "token", "kind": "status", "status": 503, "count": 1]
            try await stage.sandbox.control(["faults": .array([fault])])
            #expect(try await stage.api("POST", refresh, ["force": true]).status == 503)
            let denied = try await Browser.deny(at: try await stage.begin("home").authorizationURL)
            #expect(try await stage.api("POST", "/v1/callbacks", ["url": .string(denied.text)]).status == 200)
            let flow = try await stage.begin("home").id
            #expect(try await stage.api("DELETE", "/v1/flows/\(flow)").status == 200)
            try await stage.ringback("open", "notes://one", status: 0)
            _ = try await links.next("deep_link")
            _ = try await stage.listen(to: "/v1/deep-links?scheme=notes")
            _ = try await links.next("listener_replaced")
            #expect(try await stage.api("DELETE", "/v1/accounts/work/session").status == 200)

            let told = names(try await events.upTo("signed_out"))
            #expect(
                told.isSuperset(of: [
                    "token_refreshed", "refresh_failed", "sign_in_failed", "deep_link", "listener_replaced",
                    "signed_out",
                ]), "\(told)")
            let steps = names(try await telemetry.upTo("auth_cancelled"))
            #expect(
                steps.isSuperset(of: [
                    "auth_method_selected", "auth_started", "auth_completed", "auth_failed", "auth_cancelled",
                    "token_refresh_attempted", "token_refresh_failed",
                ]), "\(steps)")
        }
    }

    @Test func `is what a daemon sends when a link's scheme is taken from the configuration`() async throws {
        try await Stage.play(Self.configuration) { stage in
            let links = try await stage.listen(to: "/v1/deep-links?scheme=notes")
            try stage.write(configuration: Stage.twoAccounts)
            #expect(try await stage.api("POST", "/v1/reload").status == 200)
            _ = try await links.next("dropped")
        }
    }

    @Test func `is what a daemon sends of a user at a project`() async throws {
        try await Stage.playProject { stage in
            let events = try await stage.listen(to: "/v1/events?account=app")
            let telemetry = try await stage.listen(to: "/v1/events?telemetry=true")
            try await stage.signUp()
            #expect(try await stage.api("PATCH", "/v1/accounts/app/user", ["data": ["name": "Mira"]]).status == 200)
            try await stage.ringback("logout", "app")
            let reset = try stage.terminal("supabase", "reset-password", "app", "--email", "mira@example.org")
            try await reset.shows("sends another): ")
            reset.type(try await stage.code())
            try await reset.shows("empty to choose it later): ")
            reset.type("")
            #expect(try await reset.end().status == 0)
            let phone = try await stage.api(
                "POST", "/v1/accounts/app/factors", ["factor_type": "phone", "phone": "+4915112345678"], status: 201)
            let factor = "/v1/accounts/app/factors/\(phone["id"]?.string ?? "")"
            let challenge = try await stage.api("POST", "\(factor)/challenge", [:])
            let proof: JSON = [
                "challenge_id": challenge["id"] ?? "", "code": .string(try await stage.code("messages")),
            ]
            #expect(try await stage.api("POST", "\(factor)/verify", proof).status == 200)
            let told = names(try await events.upTo("mfa_challenge_verified"))
            #expect(
                told.isSuperset(of: [
                    "initial_session", "signed_in", "user_updated", "signed_out", "password_recovery",
                    "mfa_challenge_verified",
                ]), "\(told)")
            try await stage.ringback("logout", "app")
            for provider in ["github", "apple"] {
                try await stage.ringback(
                    "login", "app", "--with", provider, environment: Browser.environment, status: 0)
                try await stage.ringback("logout", "app")
            }
            _ = try await telemetry.next("account_linked")
        }
    }
}
