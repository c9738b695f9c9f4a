import RingbackBase
import Testing

@testable import OAuth

@Suite struct `A request to end the session at the provider` {
    private func request(
        endpoint: String = "https://id.example.org/logout", hint: String? = nil, loginName: String? = nil,
        redirectURI: String? = nil
    ) -> EndSessionRequest {
        EndSessionRequest(
            endpoint: endpoint, clientID: "me & you", idTokenHint: hint.map { Secret($0) }, logoutHint: loginName,
            redirectURI: redirectURI, state: Secret("s"))
    }

    private func pairs(_ request: EndSessionRequest) throws -> [String: String] {
        let query = try WebURL(parsing: request.url()).query ?? ""
        return Dictionary(try FormEncoding.parse(query).map { ($0.name, $0.value) }) { _, _ in "twice" }
    }

    @Test func `OIDF-40, LOGOUT-01: names client, hint, redirect URI and state`() throws {
        let whole = request(hint: "h.e.j", loginName: "alice", redirectURI: "https://app.example.org/bye?a=b")
        #expect(
            try pairs(whole) == [
                "client_id": "me & you", "id_token_hint": "h.e.j", "state": "s",
                "post_logout_redirect_uri": "https://app.example.org/bye?a=b",
            ])
        #expect(whole.showsIDToken)
    }

    @Test func `names the person otherwise where there is no ID token, and nobody where nobody is known`() throws {
        #expect(
            try pairs(request(loginName: "alice@example.org")) == [
                "client_id": "me & you", "logout_hint": "alice@example.org", "state": "s",
            ])
        #expect(try pairs(request()) == ["client_id": "me & you", "state": "s"])
        #expect(!request().showsIDToken)
    }

    @Test func `keeps the endpoint's own query`() {
        #expect(
            request(endpoint: "https://id.example.org/o?p=1").url().hasPrefix("https://id.example.org/o?p=1&client_id=")
        )
        #expect(request(endpoint: "https://id.example.org/o?").url().hasPrefix("https://id.example.org/o?client_id="))
    }

    @Test func `leaves out an ID token that no server would read`() throws {
        let long = request(hint: String(repeating: "x", count: 8_000))
        #expect(try pairs(long) == ["client_id": "me & you", "state": "s"] && !long.showsIDToken)
    }
}
