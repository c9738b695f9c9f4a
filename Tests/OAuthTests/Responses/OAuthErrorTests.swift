import Testing

@testable import OAuth

@Suite struct `OAuth error` {
    @Test(arguments: [
        (200, OAuthError.Remedy.signInAgain), (400, .signInAgain), (401, .signInAgain), (403, .signInAgain),
        (0, .reportToProvider), (404, .reportToProvider), (418, .reportToProvider),
    ])
    func `only the token endpoint's own invalid_grant ends a grant`(status: Int, remedy: OAuthError.Remedy) {
        let error = OAuthError.refused(.init(code: "invalid_grant", message: nil, status: status))
        #expect(error.remedy == remedy)
    }

    @Test(arguments: [
        ("incorrect_client_credentials", OAuthError.Remedy.fixConfiguration),
        ("redirect_uri_mismatch", .fixConfiguration), ("invalid_client", .fixConfiguration),
        ("temporarily_unavailable", .retry(after: nil)), ("bad_verification_code", .reportToProvider),
        ("Invalid_Grant", .reportToProvider), ("invalid_grant ", .reportToProvider), ("", .reportToProvider),
    ])
    func `a word means what it says and nothing like it`(code: String, remedy: OAuthError.Remedy) {
        #expect(OAuthError.refused(.init(code: code, message: nil, status: 400)).remedy == remedy)
    }
}
