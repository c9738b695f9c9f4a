import RingbackBase
import Testing

@testable import OAuth

private let endpoint = "https://id.example.org/token"
private let registration = ClientRegistration(clientID: "cli")

@Suite struct `Token request` {
    @Test func `NAT-49: a code is redeemed with its verifier and redirect URI`() {
        let request = TokenRequest.authorizationCode(
            code: Secret("4/0A b"), verifier: Secret("v~1"), redirectURI: "http://127.0.0.1:1/callback/work",
            registration: registration, endpoint: endpoint)
        #expect(
            request.body?.revealed()
                == "grant_type=authorization_code&code=4%2F0A+b&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcallback%2Fwork"
                + "&code_verifier=v~1&client_id=cli")
        #expect(request.method == "POST")
        #expect(request.url == endpoint)
        #expect(request.fields["Accept"] == "application/json")
        #expect(request.fields["Content-Type"] == "application/x-www-form-urlencoded")
        #expect(request.limits == HTTPLimits(timeout: .seconds(20), maxBody: 262_144))
    }

    @Test func `RT-01: a refresh names no scope unless it downscopes`() {
        let plain = TokenRequest.refresh(token: Secret("r1"), registration: registration, endpoint: endpoint)
        #expect(plain.body?.revealed() == "grant_type=refresh_token&refresh_token=r1&client_id=cli")
        let empty = TokenRequest.refresh(token: Secret("r1"), scope: [], registration: registration, endpoint: endpoint)
        #expect(empty.body == plain.body)
        let downscoped = TokenRequest.refresh(
            token: Secret("r1"), scope: ["email", "calendar"], audience: "api", resource: "https://api.example/",
            registration: registration, endpoint: endpoint)
        #expect(
            downscoped.body?.revealed()
                == "grant_type=refresh_token&refresh_token=r1&scope=email+calendar&audience=api"
                + "&resource=https%3A%2F%2Fapi.example%2F&client_id=cli")
    }

    @Test func `only of a refresh is the beginning of an answer of use`() {
        let refresh = TokenRequest.refresh(token: Secret("r1"), registration: registration, endpoint: endpoint)
        #expect(refresh.keepsPartialBody)
        let code = TokenRequest.authorizationCode(
            code: Secret("c"), verifier: Secret("v"), redirectURI: "app:/cb", registration: registration,
            endpoint: endpoint)
        #expect(!code.keepsPartialBody)
        let revocation = RevocationRequest.build(
            token: Secret("r1"), hint: .refreshToken, registration: registration, endpoint: endpoint)
        #expect(!revocation.keepsPartialBody)
    }

    @Test func `NAT-28: a resource goes with the code too`() {
        let request = TokenRequest.authorizationCode(
            code: Secret("c"), verifier: Secret("v"), redirectURI: "app:/cb", resource: "https://api.example/",
            registration: registration, endpoint: endpoint)
        #expect(request.body?.revealed().hasSuffix("&resource=https%3A%2F%2Fapi.example%2F&client_id=cli") == true)
    }

    @Test func `a request prints no secret`() {
        let request = TokenRequest.refresh(
            token: Secret("hunter2"),
            registration: ClientRegistration(
                clientID: "cli", authentication: .clientSecretBasic, secret: Secret("hunter3")), endpoint: endpoint)
        var text = "\(request)"
        dump(request, to: &text)
        #expect(!text.contains("hunter"))
    }
}
