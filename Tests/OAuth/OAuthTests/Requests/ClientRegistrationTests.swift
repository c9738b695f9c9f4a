import RingbackBase
import Testing

@testable import OAuth

@Suite struct `Client registration` {
    private func authenticated(_ registration: ClientRegistration) -> HTTPRequest {
        .form([("grant_type", "x")], to: "https://id.example.org/token", by: registration)
    }

    @Test func `NAT-36: a public client only names itself, even if it holds a secret`() {
        let request = authenticated(ClientRegistration(clientID: "a b", authentication: .none, secret: Secret("s")))
        #expect(request.body?.revealed() == "grant_type=x&client_id=a+b")
        #expect(request.authorization == nil)
    }

    @Test func `client_secret_post puts both into the form`() {
        let request = authenticated(
            ClientRegistration(clientID: "id", authentication: .clientSecretPost, secret: Secret("p&=+ß")))
        #expect(request.body?.revealed() == "grant_type=x&client_id=id&client_secret=p%26%3D%2B%C3%9F")
        #expect(request.authorization == nil)
    }

    @Test(arguments: [
        ("s6BhdRkqt3", "gX1fBat3bV", "s6BhdRkqt3:gX1fBat3bV"),
        // RFC 6749 section 2.3.1: form-encoded first.
        ("https://app.example:8443", "p:a%s+s d", "https%3A%2F%2Fapp.example%3A8443:p%3Aa%25s%2Bs%20d"),
    ])
    func `OIDF-14: client_secret_basic encodes each part, and the form has neither`(
        id: String, secret: String, pair: String
    ) {
        let request = authenticated(
            ClientRegistration(clientID: id, authentication: .clientSecretBasic, secret: Secret(secret)))
        #expect(request.authorization?.revealed() == "Basic " + Base64.encode(Array(pair.utf8)))
        #expect(request.body?.revealed() == "grant_type=x")
        #expect(!request.fields.contains("Authorization"))
    }

    @Test func `the words are those of the wire`() {
        #expect(
            ClientAuthentication.allCases.map(\.rawValue)
                == ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"])
    }

    @Test func `a registration that needs a secret says whether it has one`() {
        #expect(ClientRegistration(clientID: "id").isComplete)
        #expect(!ClientRegistration(clientID: "id", authentication: .clientSecretBasic).isComplete)
        #expect(!ClientRegistration(clientID: "id", authentication: .clientSecretPost, secret: Secret("")).isComplete)
        #expect(ClientRegistration(clientID: "id", authentication: .clientSecretPost, secret: Secret("s")).isComplete)
    }
}
