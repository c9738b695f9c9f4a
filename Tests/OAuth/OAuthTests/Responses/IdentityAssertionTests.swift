import RingbackBase
import Testing

@testable import OAuth

@Suite struct `An identity assertion` {
    private static let type = "urn:ietf:params:oauth:token-type:id-jag"
    private static let now = 1_700_000_000

    private func response(_ members: JSONObject, without name: String? = nil, status: Int = 200) -> HTTPResponse {
        var object: JSONObject = [
            "access_token": "one.two.three", "issued_token_type": Self.type, "token_type": "N_A",
            "expires_in": 300,
        ]
        for member in members.members { object[member.name] = member.value }
        if let name { object[name] = nil }
        return HTTPResponse(
            status: status, fields: HTTPFields([("Content-Type", "application/json")]),
            body: Secret(bytes: JSON.object(object).serialized()))
    }

    private func token(_ claims: JSON) -> String {
        "e30.\(Base64URL.encode(claims.serialized())).c2ln"
    }

    private func lifetime(_ members: JSONObject, without name: String? = nil) throws -> Int {
        try IdentityAssertion(parsing: response(members, without: name), now: Self.now).lifetime
    }

    @Test func `is asked for with what proves the sign-in, its audience, and its resource`() throws {
        let request = TokenRequest.identityAssertion(
            of: Secret("id.to.ken"), type: .idToken, scope: ["a", "b"], audience: "https://as.example/x",
            resource: "https://mcp.example/mcp",
            registration: ClientRegistration(clientID: "c", authentication: .none), endpoint: "https://id.example/token"
        )
        let pairs = try FormEncoding.parse(request.body?.revealedBytes() ?? [])
        #expect(
            Dictionary(pairs.map { ($0.name, $0.value) }) { $1 } == [
                "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": "id.to.ken",
                "subject_token_type": "urn:ietf:params:oauth:token-type:id_token", "requested_token_type": Self.type,
                "scope": "a b", "audience": "https://as.example/x", "resource": "https://mcp.example/mcp",
                "client_id": "c",
            ])
    }

    @Test func `is taken as it came, until the earliest stated end`() throws {
        let found = try IdentityAssertion(parsing: response([:]), now: Self.now)
        #expect(found.text == Secret("one.two.three") && found.lifetime == 300)
        let signed = token(["exp": .integer(Self.now + 120), "iat": .integer(Self.now)])
        #expect(try lifetime(["access_token": signed]) == 120)
        #expect(try lifetime(["access_token": signed], without: "expires_in") == 120)
        // Our clock is an hour ahead: the time between its issue and its end is what counts.
        let old = token(["exp": .integer(Self.now - 3_300), "iat": .integer(Self.now - 3_600)])
        #expect(try lifetime(["access_token": old], without: "expires_in") == 300)
    }

    @Test(arguments: [
        ("issued_token_type", JSON.string("urn:ietf:params:oauth:token-type:access_token")),
        ("token_type", "Bearer"), ("access_token", "two words"), ("access_token", ""), ("expires_in", 0),
    ]) func `is nothing else`(name: String, value: JSON) {
        let wrong = response(JSONObject([.init(name, value)]))
        #expect(throws: OAuthError.self) { try IdentityAssertion(parsing: wrong, now: Self.now) }
    }

    @Test(arguments: ["issued_token_type", "token_type", "access_token", "expires_in"])
    func `states what it is, and its end`(name: String) {
        #expect(throws: OAuthError.self) {
            try IdentityAssertion(parsing: response([:], without: name), now: Self.now)
        }
    }

    @Test func `may need a stronger sign-in`() {
        func demand(_ body: String) -> StepUpDemand? { StepUpDemand(in: HTTPResponse(status: 400, body: Secret(body))) }
        let error = #""error":"insufficient_user_authentication""#
        let whole = demand("{\(error),\"acr_values\":\"urn:mfa phr\",\"max_age\":\"60\"}")
        #expect(whole?.acrValues == "urn:mfa phr" && whole?.maxAge == 60)
        let bare = demand("{\(error)}")
        #expect(bare != nil && bare?.acrValues == nil && bare?.maxAge == nil)
        // It becomes a parameter of a URL, and a part of a command.
        #expect(demand("{\(error),\"acr_values\":\"a\\u001b\\\"\"}")?.acrValues == nil)
        #expect(demand(#"{"error":"invalid_grant","max_age":1}"#) == nil && demand("") == nil)
    }
}
