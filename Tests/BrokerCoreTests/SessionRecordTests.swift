import Secrets
import StrictJSON
import Testing

@testable import BrokerCore

@Suite struct `A session's record` {
    private let session = Session(
        refreshToken: Secret("r1"), successor: Secret("r2"),
        identity: Session.Identity(
            token: Secret("id"), expiresAt: 5, lifetime: 4, audience: ["a", "b"], authenticationTime: 1,
            authorizedParty: "a", nonce: Secret("n")),
        subject: "alice", user: JSONObject([.init("email", "a@example.org"), .init("name", "Алиса")]), scope: "openid",
        issuer: "https://id.example", tokenEndpointOrigin: "https://id.example", signedInAt: 3,
        tokens: [
            .own: AccessToken(value: Secret("t1"), type: "Bearer", scope: "openid", expiresAt: 9, lifetime: 8),
            TokenKey(scopes: ["b", "a"], audience: "aud", resource: "res"):
                AccessToken(value: Secret("t2"), type: "Bearer", scope: nil, expiresAt: nil, lifetime: nil),
        ])

    @Test func `holds the whole session`() {
        #expect(SessionRecord.decode(SessionRecord.encode(session)) == session)
        var bare = session
        bare.refreshToken = nil
        bare.successor = nil
        bare.identity = nil
        bare.subject = nil
        bare.user = nil
        bare.scope = nil
        bare.tokens = [:]
        #expect(SessionRecord.decode(SessionRecord.encode(bare)) == bare)
    }

    @Test(arguments: [
        "", "null", "[]", "{}", #"{"version":1}"#, #"{"version":"1","issuer":"i"}"#,
        #"{"version":2,"issuer":"i","token_endpoint_origin":"o","signed_in_at":1}"#,
        #"{"version":1,"issuer":"i","token_endpoint_origin":"o","signed_in_at":1,"tokens":[{}]}"#,
    ])
    func `that is damaged or newer is not read`(text: String) {
        #expect(SessionRecord.decode(Secret(text)) == nil)
    }

    @Test func `shows no secret when it is printed`() {
        var text = ""
        dump(session, to: &text)
        text += "\(session) \(String(reflecting: session))"
        for secret in ["r1", "r2", "t1", "t2"] { #expect(!text.contains("\"\(secret)\"")) }
        #expect(text.contains("<secret>"))
    }
}

@Suite struct `A token's key` {
    @Test func `knows scopes as a set`() {
        #expect(TokenKey(scopes: ["b", "a", "b"]) == TokenKey(scopes: ["a", "b"]))
        #expect(TokenKey(scopes: []) == .own)
        #expect(TokenKey(audience: "x") != TokenKey(resource: "x"))
    }
}
