import RingbackBase
import Testing

@testable import OAuth

private let issuer = "https://id.example.org"
private let managed = #""registration_access_token":"reg","registration_client_uri":"https://id.example.org/r/1""#

private func response(_ body: String, _ status: Int = 201, truncated: Bool = false) -> HTTPResponse {
    HTTPResponse(
        status: status, fields: HTTPFields([("Content-Type", "application/json")]), body: Secret(body),
        truncation: truncated ? .malformed(host: "id.example.org") : nil)
}

private func read(_ body: String, _ status: Int = 201) throws -> RegistrationResponse {
    try RegistrationResponse(reading: response(body, status), issuer: issuer)
}

private func asked(_ authentication: ClientAuthentication = .none) throws -> ClientRegistrationRequest {
    try ClientRegistrationRequest(
        redirectTemplate: "http://127.0.0.1:{port}/c", scopes: [], authentication: authentication)
}

@Suite struct `A registration's answer` {
    @Test func `DCR-02: gives the client as the provider has it`() throws {
        let answer = try read(
            """
            {"client_id":"c 1","client_secret":"hush","client_secret_expires_at":1900000000,
             "token_endpoint_auth_method":"client_secret_post","redirect_uris":["http://127.0.0.1/c"],\(managed)}
            """)
        #expect(answer.management == RegistrationManagement(token: Secret("reg"), uri: "https://id.example.org/r/1"))
        let client = try answer.client(asked: asked())
        #expect(client.clientID == "c 1" && client.secret == Secret("hush"))
        #expect(client.authentication == .clientSecretPost && client.secretExpiresAt == 1_900_000_000)
        #expect(client.redirectURIs == ["http://127.0.0.1/c"])
    }

    @Test func `may say as little as a client_id, at status 200 too`() throws {
        let answer = try read(#"{"client_id":"c"}"#, 200)
        let client = try answer.client(asked: asked())
        #expect(answer.management == nil && client.secret == nil && client.authentication == .none)
        #expect(client.secretExpiresAt == nil && client.redirectURIs == nil)
        #expect(try answer.client() == client)
    }

    @Test func `an update of a registration has no member that only the provider sets`() throws {
        let members = #""client_secret":"s","client_id_issued_at":1,"client_secret_expires_at":0,"client_name":"n""#
        let answer = try read(#"{"client_id":"c",\#(members),\#(managed)}"#)
        let request = try #require(answer.management.flatMap { answer.update(with: $0) })
        #expect(request.method == "PUT" && request.url == "https://id.example.org/r/1")
        #expect(request.body?.revealed() == #"{"client_id":"c","client_name":"n"}"#)
    }

    @Test(arguments: [
        (#""client_secret":"s""#, ClientAuthentication.clientSecretBasic, true),
        (#""client_secret":"s","token_endpoint_auth_method":"none""#, .none, false),
        (#""client_secret":"","token_endpoint_auth_method":null"#, .none, false),
        (#""client_secret":"","token_endpoint_auth_method":"","redirect_uris":"""#, .none, false),
        (#""client_secret":"s","client_secret_expires_at":0"#, .clientSecretBasic, true),
        // When a secret ends is as cosmetic as a lifetime: no form of it costs the registration.
        (#""client_secret":"s","client_secret_expires_at":"0""#, .clientSecretBasic, true),
        (#""client_secret":"s","client_secret_expires_at":-1"#, .clientSecretBasic, true),
        (#""client_secret":"s","client_secret_expires_at":"soon""#, .clientSecretBasic, true),
        (#""client_secret":"s","client_secret_expires_at":0.5"#, .clientSecretBasic, true),
    ])
    func `DCR-02: says nothing of the way to authenticate, and the standard's rule holds`(
        members: String, way: ClientAuthentication, hasSecret: Bool
    ) throws {
        let client = try read(#"{"client_id":"c",\#(members)}"#).client(asked: asked())
        #expect(client.authentication == way && (client.secret != nil) == hasSecret)
        #expect(client.secretExpiresAt == nil)
    }

    @Test(arguments: [
        "{}", #"{"client_id":""}"#, #"{"client_id":7}"#, #"{"client_id":"a\nb"}"#, #"{"client_id":"é"}"#,
        #"{"client_id":"c","token_endpoint_auth_method":"client_secret_basic"}"#,
        #"{"client_id":"c","token_endpoint_auth_method":"private_key_jwt"}"#,
        #"{"client_id":"c","token_endpoint_auth_method":"tls_client_auth"}"#,
        #"{"client_id":"c","token_endpoint_auth_method":1}"#, #"{"client_id":"c","client_secret":1}"#,
        #"{"client_id":"c","client_secret":"a\r\nb"}"#,
        #"{"client_id":"c","redirect_uris":"http://x"}"#,
        #"{"client_id":"c","redirect_uris":[1]}"#,
    ])
    func `that cannot be used never costs the management token`(body: String) throws {
        let separator = body == "{}" ? "" : ","
        let answer = try read("\(body.dropLast())\(separator)\(managed)}")
        #expect(answer.management?.token == Secret("reg"))
        #expect(throws: OAuthError.self) { try answer.client(asked: asked()) }
    }

    @Test(arguments: [
        #"{"client_id":"c","client_id":"d",\#(managed)}"#, #"{\#(managed),"client_id":"c"} <!-- 3 ms -->"#,
        #"{\#(managed),"client_id":"#, #"{"client_id":"c",\#(managed)"#, "{\(managed),}",
    ])
    func `that is not JSON as we accept it never costs the management token`(body: String) throws {
        for isTruncated in [false, true] {
            let answer = try RegistrationResponse(
                reading: response(body, truncated: isTruncated), issuer: issuer)
            #expect(answer.management?.token == Secret("reg"))
            #expect(answer.management?.uri == "https://id.example.org/r/1")
            #expect(throws: OAuthError.self) { try answer.client(asked: asked()) }
        }
    }

    @Test func `that was cut off is believed in nothing else, however whole it looks`() throws {
        let answer = try RegistrationResponse(
            reading: response(#"{"client_id":"c",\#(managed)}"#, truncated: true), issuer: issuer)
        #expect(answer.management != nil && answer.clientID == nil)
        #expect(throws: OAuthError.self) { try answer.client(asked: asked()) }
    }

    @Test(arguments: [
        "http://id.example.org/r", "https://127.0.0.1/r", "https://10.0.0.1/r", "https://localhost/r", "/r", "",
        "https://id.example.org/r#f", "file:///etc/passwd",
    ])
    func `MD-05: names a place that the token is not sent to, and the token is kept all the same`(uri: String) throws {
        let answer = try read(
            #"{"client_id":"c","registration_access_token":"reg","registration_client_uri":"\#(uri)"}"#)
        #expect(answer.management == RegistrationManagement(token: Secret("reg"), uri: nil))
        #expect(answer.management?.deletion() == nil)
        #expect(try answer.client(asked: asked()).clientID == "c")
    }

    @Test(arguments: [
        (400, #"{"error":"invalid_redirect_uri","error_description":"no"}"#, "invalid_redirect_uri"),
        (400, #"{"error":"invalid_client_metadata"}"#, "invalid_client_metadata"), (401, "", "invalid_token"),
        (401, #"{"error":"invalid_token"}"#, "invalid_token"), (403, "<html>", "access_denied"),
        (403, #"{"msg":"off"}"#, "access_denied"), (401, #"{"detail":"no"}"#, "invalid_token"),
    ])
    func `DCR-03: says no, in the provider's word`(status: Int, body: String, code: String) throws {
        let error = #expect(throws: OAuthError.self) { try read(body, status) }
        guard case .refused(let refusal)? = error else { throw Unexpected(error) }
        #expect(refusal.code == code && refusal.status == status)
    }

    @Test(arguments: [(201, ""), (201, "[]"), (201, "<html>"), (302, ""), (400, "{}"), (404, ""), (201, "null")])
    func `that is none is refused`(status: Int, body: String) {
        #expect(throws: OAuthError.self) { try read(body, status) }
    }

    @Test(arguments: [408, 429, 500, 503]) func `that means later is not a no`(status: Int) throws {
        let error = #expect(throws: OAuthError.self) { try read(#"{"error":"invalid_client_metadata"}"#, status) }
        guard case .unavailable? = error else { throw Unexpected(error) }
    }
}
