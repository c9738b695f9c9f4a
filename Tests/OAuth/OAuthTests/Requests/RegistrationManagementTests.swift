import RingbackBase
import Testing

@testable import OAuth

@Suite struct `A registration's management` {
    private func answer(_ status: Int, _ body: String = "") -> HTTPResponse {
        HTTPResponse(status: status, body: Secret(body))
    }

    @Test func `DCR-06: deletes with its own token, where the provider said`() throws {
        let request = try #require(
            RegistrationManagement(token: Secret("reg"), uri: "https://id.example.org/r?client_id=1").deletion())
        #expect(request.method == "DELETE" && request.url == "https://id.example.org/r?client_id=1")
        #expect(request.authorization == Secret("Bearer reg") && request.body == nil)
        #expect(RegistrationManagement(token: Secret("reg"), uri: nil).deletion() == nil)
    }

    @Test(arguments: [204, 200, 404, 410]) func `is done when the client is gone`(status: Int) throws {
        try RegistrationManagement.checkDeletion(answer(status, "<html>"))
    }

    @Test(arguments: [(401, "invalid_token"), (403, "access_denied"), (405, "unsupported"), (501, nil)])
    func `is not done when the provider says no`(status: Int, code: String?) {
        let error = #expect(throws: OAuthError.self) { try RegistrationManagement.checkDeletion(answer(status)) }
        if case .refused(let refusal)? = error { #expect(refusal.code == code) } else { #expect(code == nil) }
    }

    @Test(arguments: [302, 400, 429, 500]) func `is not done by an answer that says nothing`(status: Int) {
        #expect(throws: OAuthError.self) { try RegistrationManagement.checkDeletion(answer(status)) }
    }

    @Test(arguments: ["", "a b", "a\nb", "é"]) func `needs a token that can be sent`(token: String) {
        let management = RegistrationManagement(
            token: token, uri: "https://id.example.org/r", issuer: "https://id.example.org")
        #expect(management == nil)
    }

    @Test func `is not taken out of text that may mean another`() {
        let twice = #"{"registration_access_token":"a","registration_access_token":"b"}"#
        #expect(RegistrationManagement(salvagedFrom: Secret(twice), issuer: "https://id.example.org") == nil)
        let inside = #"{"client":{"registration_access_token":"a"},"#
        #expect(RegistrationManagement(salvagedFrom: Secret(inside), issuer: "https://id.example.org") == nil)
        let cut = #"{"registration_client_uri":"https://id.example.org/r","registration_access_token":"a"#
        #expect(RegistrationManagement(salvagedFrom: Secret(cut), issuer: "https://id.example.org") == nil)
    }
}
