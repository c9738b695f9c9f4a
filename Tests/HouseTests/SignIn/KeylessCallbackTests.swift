import RingbackBase
import Testing

@Suite struct `A callback without a flow's key` {
    private static let keyless = Stage.withSchemes + "redirect_flow_key = \"none\"\n"

    @Test func `redirect_flow_key "none" sends the address unchanged, and its code finds the flow`() async throws {
        try await Stage.playSchemes(Self.keyless) { stage in
            try await stage.ringback("scheme", "register", "swisscoin", status: 0)
            let flow = try await stage.begin("app", ["oauth_provider": "github"])
            #expect(flow.redirectURI == "swisscoin://auth-callback")
            let callback = try await stage.callback(of: flow)
            #expect(callback.hasPrefix("swisscoin://auth-callback?") && !callback.contains("flow="))
            try await stage.run("/usr/bin/xdg-open", [callback], environment: ["DISPLAY": ":99"], status: 0)
            #expect(try await stage.ended(flow)["status"] == "completed")
        }
    }
}
