import Testing

@testable import RingbackClient

@Suite(.timeLimit(.minutes(5))) struct `A client with consents` {
    @Test func `lists them and revokes one`() async throws {
        let consent = #"{"client_id":"c","client_name":"Notes","scopes":["email"],"granted_at":"2026-01-02T03:04:05Z"}"#
        let daemon = try FakeDaemon { request in
            request.hasPrefix("GET")
                ? .json(200, #"{"consents":[\#(consent)]}"#) : .json(200, #"{"account":"app","revoked":"c"}"#)
        }
        let broker = daemon.client
        let list = try await broker.consents("app")
        #expect(list.map(\.clientID) == ["c"] && list.first?.clientName == "Notes" && list.first?.clientURI == nil)
        #expect(list.first?.scopes == ["email"] && list.first?.grantedAt?.description == "2026-01-02T03:04:05Z")
        #expect(daemon.requests.last?.hasPrefix("GET /v1/accounts/app/oauth-consents ") == true)
        try await broker.revokeConsent("app", client: "c")
        #expect(daemon.requests.last?.hasPrefix("DELETE /v1/accounts/app/oauth-consents/c ") == true)
    }
}
