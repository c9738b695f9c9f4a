// A Supabase project of which no callback carries a flow's key: the scheme alone leads to the flow.

import RingbackBase
import Testing

@Suite struct `A callback without a flow's key` {
    private static let keyless = Stage.withSchemes + "redirect_flow_key = \"none\"\n"

    @Test func `redirect_flow_key "none" sends the address unchanged, and its code finds the flow`() async throws {
        try await Stage.playSchemes(Self.keyless) { stage in
            #expect(try await stage.ringback("scheme", "register", "swisscoin").status == 0)
            let flow = try await stage.begin("app", ["oauth_provider": "github"])
            #expect(flow.redirectURI == "swisscoin://auth-callback")
            let callback = try await stage.callback(of: flow)
            #expect(callback.hasPrefix("swisscoin://auth-callback?") && !callback.contains("flow="))
            let opened = try await stage.run("/usr/bin/xdg-open", [callback], environment: ["DISPLAY": ":99"])
            #expect(opened.status == 0, "\(opened)")
            #expect(try await stage.ended(flow)["status"] == "completed")
        }
    }

    @Test func `that comes twice within five seconds gets the first result, whichever sign-in is pending by then`()
        async throws
    {
        try await Stage.playSchemes(Self.keyless) { stage in
            let flow = try await stage.begin("app", ["oauth_provider": "github"])
            let callback = try await stage.callback(of: flow)
            #expect(!callback.contains("flow="), "\(callback)")
            let first = try await stage.ringback("open", callback, "--json")
            #expect(first.status == 0, "\(first)")
            let next = try await stage.begin("app", ["oauth_provider": "github"])
            let second = try await stage.ringback("open", callback, "--json")
            #expect(second.status == 0, "\(second)")
            for output in [first, second] {
                let document = try JSON(parsing: output.out.utf8)["flow"]
                #expect(document?["id"]?.string == flow.id && document?["status"] == "completed", "\(output)")
            }
            let exchanges = try await stage.sandbox.counters(issuer: "/supabase").tokenRequests("pkce")
            #expect(exchanges == 1)
            // Seven seconds, by the daemon's own clock: another flow's deadline.
            let clock = try await stage.begin("work", ["timeout": 7])
            #expect(try await stage.ended(clock)["status"] == "expired")
            let late = try await stage.ringback("open", callback)
            #expect(late.status != 0 && late.out.isEmpty, "\(late)")
            #expect(try await stage.api("GET", "/v1/flows/\(next.id)")["status"] == "pending")
        }
    }
}
