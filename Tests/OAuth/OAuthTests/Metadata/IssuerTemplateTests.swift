import RingbackBase
import Testing

@testable import OAuth

private let template = "https://login.microsoftonline.com/{tenantid}/v2.0"
private let directory = "72f988bf-86f1-41af-91ab-2d7cd011db47"

private func stated(_ issuer: String) -> HTTPResponse {
    HTTPResponse(
        status: 200,
        body: Secret(
            """
            {"issuer":"\(issuer)","authorization_endpoint":"https://login.microsoftonline.com/common/oauth2/v2.0/a",\
            "token_endpoint":"https://login.microsoftonline.com/common/oauth2/v2.0/token",\
            "jwks_uri":"https://login.microsoftonline.com/common/discovery/v2.0/keys"}
            """))
}

@Suite struct `Issuer template` {
    @Test(arguments: ["common", "organizations", "consumers"])
    func `a place that directories share may state it`(alias: String) throws {
        let configured = "https://login.microsoftonline.com/\(alias)/v2.0"
        let metadata = try ProviderMetadata(parsing: stated(template), issuer: configured)
        #expect(metadata.issuer == configured)
        #expect(metadata.idTokenIssuer == template)
    }

    @Test func `a directory of its own states its issuer and no template`() throws {
        let configured = "https://login.microsoftonline.com/\(directory)/v2.0"
        #expect(try ProviderMetadata(parsing: stated(configured), issuer: configured).idTokenIssuer == configured)
        #expect(throws: OAuthError.self) { try ProviderMetadata(parsing: stated(template), issuer: configured) }
        // An alias speaks for all directories, so it cannot speak for one.
        let common = "https://login.microsoftonline.com/common/v2.0"
        #expect(throws: OAuthError.self) { try ProviderMetadata(parsing: stated(configured), issuer: common) }
    }

    @Test(arguments: [
        ("https://{tenantid}.example.org/v2.0", "https://common.example.org/v2.0"),
        ("https://{tenantid}/v2.0", "https://common/v2.0"),
        ("https://login.example.org/{tenantid}/v2.0", "https://login.microsoftonline.com/common/v2.0"),
        ("https://login.example.org/a{tenantid}", "https://login.example.org/acommon"),
        ("https://login.example.org/{tenantid}a", "https://login.example.org/commona"),
        ("https://login.example.org/{tenantid}/{tenantid}", "https://login.example.org/common/common"),
        ("https://login.example.org/{tenant}/v2.0", "https://login.example.org/common/v2.0"),
        ("https://login.example.org/{tenantid}", "https://login.example.org/other"),
        ("{tenantid}", "https://login.example.org/common"),
    ])
    func `MD-02: a template is a whole segment in the path of the same place`(text: String, configured: String) {
        let reason = IssuerDifference.sentence(stated: text, configured: configured)
        #expect(throws: OAuthError.invalid(.metadata, reason: reason)) {
            try ProviderMetadata(parsing: stated(text), issuer: configured)
        }
    }

    @Test(arguments: [
        (directory, true), (directory.uppercased(), true), ("", false), ("common", false), ("{tenantid}", false),
        ("72f988bf-86f1-41af-91ab-2d7cd011db4", false), ("72f988bf-86f1-41af-91ab-2d7cd011db47/x", false),
        ("72f988bf86f141af91ab2d7cd011db47", false), ("72f988bf-86f1-41af-91ab-2d7cd011db4g", false),
        ("72f988bf-86f1-41af-91ab-2d7cd011db4\u{FF17}", false),
    ])
    func `it admits a directory's id and nothing else`(name: String, isAdmitted: Bool) {
        let issuer = "https://login.microsoftonline.com/\(name)/v2.0"
        #expect(IssuerTemplate.admits(issuer, expected: template, tenant: nil) == isAdmitted)
        #expect(IssuerTemplate.admits(issuer, expected: template, tenant: name) == isAdmitted)
        #expect(!IssuerTemplate.admits(issuer, expected: template, tenant: ""))
        #expect(!IssuerTemplate.admits(issuer, expected: template, tenant: name + "0"))
    }

    @Test func `without a template bytes are compared`() {
        #expect(IssuerTemplate.admits("https://a.example", expected: "https://a.example", tenant: nil))
        #expect(IssuerTemplate.admits("https://a.example", expected: "https://a.example", tenant: "ignored"))
        #expect(!IssuerTemplate.admits("https://a.example/", expected: "https://a.example", tenant: nil))
        #expect(!IssuerTemplate.admits("https://a.example/\u{212A}", expected: "https://a.example/K", tenant: nil))
    }

    @Test func `a callback may name any directory`() throws {
        func check(_ issuer: String) throws -> Bool {
            let query = "code=c&state=s&iss=" + FormEncoding.escape(issuer)
            return try AuthorizationResponse(parsingQuery: query).check(issuer: template, isAdvertised: true)
        }
        #expect(try check("https://login.microsoftonline.com/\(directory)/v2.0"))
        #expect(try !check("https://login.microsoftonline.com/common/v2.0"))
        #expect(try !check("https://evil.example/\(directory)/v2.0"))
    }
}
