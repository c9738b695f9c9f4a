import Testing

@testable import OAuth

private let tenant = "72f988bf-86f1-41af-91ab-2d7cd011db47"

@Suite struct `Provider presets` {
    @Test(
        arguments: [
            ("google", nil, nil, "https://accounts.google.com"),
            ("microsoft", tenant, nil, "https://login.microsoftonline.com/\(tenant)/v2.0"),
            ("microsoft", tenant.uppercased(), nil, "https://login.microsoftonline.com/\(tenant)/v2.0"),
            ("microsoft", "common", nil, "https://login.microsoftonline.com/common/v2.0"),
            ("microsoft", "Organizations", nil, "https://login.microsoftonline.com/organizations/v2.0"),
            (
                "microsoft", "consumers", nil,
                "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0"
            ),
            ("gitlab", nil, nil, "https://gitlab.com"),
            ("gitlab", nil, "git.example.org:8443", "https://git.example.org:8443"),
        ] as [(String, String?, String?, String)])
    func `a preset with discovery knows its issuer`(
        name: String, tenant: String?, host: String?, issuer: String
    ) throws {
        let preset = try ProviderPreset(name: name, tenant: tenant, host: host)
        #expect(preset.name == name)
        #expect(try preset.source() == .issuer(issuer))
        #expect(try ProviderMetadata.discoveryRequests(issuer: issuer).count == 2)
    }

    @Test func `GitHub's endpoints are known`() throws {
        guard case .endpoints(let metadata) = try ProviderPreset(name: "github").source()
        else { throw Unexpected("no endpoints") }
        #expect(metadata.authorizationEndpoint == "https://github.com/login/oauth/authorize")
        #expect(metadata.tokenEndpoint == "https://github.com/login/oauth/access_token")
        #expect(metadata.revocationEndpoint == nil && metadata.issuer == nil && metadata.jwksURI == nil)
        #expect(metadata.userinfoEndpoint == "https://api.github.com/user" && metadata.userinfoDialect == .gitHub)
    }

    @Test(
        arguments: [
            ("microsoft", nil, nil), ("microsoft", "", nil), ("microsoft", "commons", nil),
            ("microsoft", "contoso.onmicrosoft.com", nil), ("microsoft", tenant + "/..", nil), ("google", tenant, nil),
            ("github", nil, "github.example.org"), ("gitlab", nil, ""), ("gitlab", nil, "git.example.org/path"),
            ("gitlab", nil, "a@b"), ("gitlab", nil, "git.example.org?x"), ("Google", nil, nil), ("supabase", nil, nil),
        ] as [(String, String?, String?)])
    func `what does not fit is a mistake of the configuration`(name: String, tenant: String?, host: String?) throws {
        let failure = #expect(throws: OAuthError.self) { try ProviderPreset(name: name, tenant: tenant, host: host) }
        guard case .misconfigured? = failure else { throw Unexpected(failure) }
    }

    @Test func `every name is a preset, and its own parameters are not reserved`() throws {
        for name in ProviderPreset.names {
            let preset = try ProviderPreset(name: name, tenant: name == "microsoft" ? tenant : nil)
            #expect(preset.name == name)
            #expect(preset.clientAuthentication(hasSecret: false) == ClientAuthentication.none)
            #expect(preset.clientAuthentication(hasSecret: true) == .clientSecretPost)
            for (parameter, _) in preset.authorizationParameters {
                #expect(!AuthorizationRequest.reservedParameters.contains(parameter))
            }
        }
        #expect(ProviderPreset.names == ProviderPreset.names.sorted())
    }

    @Test func `Google is asked for offline access, Microsoft is called back at localhost`() throws {
        let parameters = ProviderPreset.google.authorizationParameters
        #expect(parameters.count == 1 && parameters[0] == ("access_type", "offline"))
        #expect(ProviderPreset.google.redirectURI == nil)
        #expect(ProviderPreset.microsoft(tenant: tenant).redirectURI == "http://localhost:{port}")
    }
}
