import Cryptography
import RingbackBase
import Testing

@testable import OAuth

private struct Recorded: Sendable, CustomTestStringConvertible {
    let preset: String
    let vector: VectorFile
    var testDescription: String { "\(preset)/\(vector.name)" }

    static let all = (ProviderPreset.names + ["apple", "others"]).flatMap { preset in
        VectorFile.all(in: "presets/\(preset)").map { Recorded(preset: preset, vector: $0) }
    }

    static func all(_ answer: String) -> [Recorded] { all.filter { $0.vector["answer"] == answer } }
}

@Suite struct `Answers of the presets' providers` {
    @Test func `each provider's are there, and each is of a kind that is tested`() {
        let kinds: Set = ["metadata", "token", "callback", "userinfo", "revocation", "keys", "claims"]
        #expect(Recorded.all.allSatisfy { kinds.contains($0.vector["answer"] ?? "") })
        for preset in ProviderPreset.names {
            let answers = Recorded.all.filter { $0.preset == preset }
            #expect(answers.count >= 14, "\(preset)")
            #expect(answers.contains { $0.vector.name == "token-first.txt" }, "\(preset)")
            #expect(answers.contains { $0.vector.name == "refresh.txt" }, "\(preset)")
            #expect(answers.count { $0.vector.name.hasPrefix("error-") } >= 4, "\(preset)")
        }
    }

    @Test(arguments: Recorded.all("token"))
    private func `a token answer is read as it says`(recorded: Recorded) throws {
        try recorded.vector.checkTokenAnswer()
        guard let expected = recorded.vector["scope_as_asked"] else { return }
        let tokens = try TokenResponse(reading: recorded.vector.response).tokenSet()
        #expect(tokens.scope(askedFor: expected.split(separator: " ").map(String.init)) == expected)
    }

    @Test(arguments: Recorded.all("metadata"))
    private func `metadata are read as they say`(recorded: Recorded) throws {
        let vector = recorded.vector
        guard vector["expect"] != "invalid" else {
            let error = #expect(throws: OAuthError.self) {
                try ProviderMetadata(parsing: vector.response, issuer: "https://id.example.org")
            }
            guard case .invalid(.metadata, _)? = error else { throw Unreadable() }
            return
        }
        let issuer = try #require(vector["issuer"])
        let metadata = try ProviderMetadata(parsing: vector.response, issuer: issuer)
        #expect(metadata.issuer == issuer)
        #expect(metadata.idTokenIssuer == vector["id_token_issuer"])
        #expect(metadata.authorizationEndpoint == vector["authorization"])
        #expect(metadata.tokenEndpoint == vector["token"])
        #expect(metadata.jwksURI == vector["jwks"])
        #expect(metadata.userinfoEndpoint == vector["userinfo"])
        #expect(metadata.revocationEndpoint == vector["revocation"])
        #expect(metadata.deviceAuthorizationEndpoint == vector["device_authorization"])
        #expect(metadata.endSessionEndpoint == vector["end_session"])
        #expect(metadata.supportsIssuerInResponse == (vector["promises_iss"] == "true"))
        #expect((metadata.codeChallengeMethods == nil) == (vector["s256"] == "unsaid"))
        #expect(!metadata.requiresPushedAuthorization)
        let algorithms = vector["algorithms"]?.split(separator: " ").map(String.init) ?? []
        #expect(Set(metadata.allowedIDTokenAlgorithms.map(\.rawValue)) == Set(algorithms))
        #expect(metadata.unusableMembers.isEmpty)
        try metadata.checkIDTokens()
    }

    @Test func `the documents are those of the presets' issuers`() throws {
        let tenant = "f8cdef31-a31e-4b4a-93e4-5f571e91255a"
        for (preset, name) in [
            (ProviderPreset.google, "google/metadata"), (.microsoft(tenant: "common"), "microsoft/metadata"),
            (.microsoft(tenant: "organizations"), "microsoft/metadata-organizations"),
            (.microsoft(tenant: tenant), "microsoft/metadata-tenant"), (.gitlab(host: "gitlab.com"), "gitlab/metadata"),
            (.gitlab(host: "git.example.org:8443"), "gitlab/metadata-own"),
        ] {
            let bytes = try #require(VectorFile.bytes(of: "presets/\(name).txt"))
            #expect(try preset.source() == .issuer(VectorFile(name: name, bytes: bytes)["issuer"] ?? ""), "\(name)")
        }
    }

    @Test func `a directory's own document is not that of a place that many share, nor the reverse`() throws {
        let metadata = Recorded.all("metadata").filter { $0.preset == "microsoft" && $0.vector["issuer"] != nil }
        for one in metadata {
            for other in metadata where one.vector["id_token_issuer"] != other.vector["id_token_issuer"] {
                #expect(throws: OAuthError.self, "\(one) \(other)") {
                    try ProviderMetadata(parsing: one.vector.response, issuer: other.vector["issuer"] ?? "")
                }
            }
        }
    }

    @Test(arguments: Recorded.all("callback"))
    private func `a callback is read as it says`(recorded: Recorded) throws {
        let vector = recorded.vector
        let query = String(decoding: vector.content, as: UTF8.self).replacing("{state}", with: "s1")
        let response = try AuthorizationResponse(parsingQuery: query)
        #expect(response.state.revealed() == "s1")
        #expect(response.issuer == vector["iss"])
        switch response.outcome {
        case .code(let code):
            #expect(vector["expect"] == "code")
            #expect(code.revealed() == vector["code"])
        case .error(let refusal):
            #expect(vector["expect"] == "refused \(refusal.code)")
            #expect(refusal.message == vector["message"])
        }
    }

    @Test(arguments: Recorded.all("userinfo"))
    private func `userinfo is read as it says`(recorded: Recorded) throws {
        let vector = recorded.vector
        do throws(OAuthError) {
            let dialect: UserinfoDialect = recorded.preset == "github" ? .gitHub : .openID
            let userinfo = try Userinfo(parsing: vector.response, subject: vector["sub"], dialect: dialect)
            #expect(userinfo.claims["preferred_username"]?.string == vector["preferred_username"])
            #expect(vector["expect"] == "userinfo")
            #expect(userinfo.subject == vector["sub"])
        } catch {
            guard case .refused(let refusal) = error else { throw Unreadable() }
            #expect(vector["expect"] == "refused \(refusal.code)")
        }
    }

    @Test(arguments: Recorded.all("revocation"))
    private func `a revocation's answer is read as it says`(recorded: Recorded) throws {
        let vector = recorded.vector
        do throws(OAuthError) {
            #expect("\(try RevocationOutcome(parsing: vector.response))" == vector["expect"])
        } catch {
            guard case .refused(let refusal) = error else { throw Unreadable() }
            #expect(vector["expect"] == "refused \(refusal.code)")
        }
    }

    private func scope(_ scope: String, asked: [String]) throws -> String? {
        let object = JSONObject([.init("access_token", "a"), .init("scope", .string(scope))])
        return try TokenSet(parsing: object, refreshToken: nil).scope(askedFor: asked)
    }

    @Test func `commas part scopes only where no scope that was asked for has one`() throws {
        #expect(try scope("repo,gist", asked: ["repo", "gist"]) == "repo gist")
        #expect(try scope("repo, gist", asked: []) == "repo gist")
        #expect(try scope("a,b c", asked: ["a,b", "c"]) == "a,b c")
        #expect(try scope("openid email", asked: ["openid"]) == "openid email")
        #expect(try scope("", asked: ["repo"]) == "")
        let bare = try TokenSet(parsing: JSONObject([.init("access_token", "a")]), refreshToken: nil)
        #expect(bare.scope(askedFor: ["repo"]) == nil)
    }

    private func metadata(_ algorithms: [String]?, issuer: String? = "https://id.example.org") throws
        -> ProviderMetadata
    {
        var metadata = try ProviderMetadata(
            issuer: issuer, authorizationEndpoint: "https://id.example.org/a",
            tokenEndpoint: "https://id.example.org/t", jwksURI: "https://id.example.org/k")
        metadata.idTokenSigningAlgorithms = algorithms
        return metadata
    }

    @Test(arguments: [["HS256"], ["HS256", "HS512", "none"], [], ["ES256K", "\u{1B}[31m"]])
    func `a provider whose ID tokens prove nothing is refused before anybody signs in`(algorithms: [String]) throws {
        let error = #expect(throws: OAuthError.self) { try metadata(algorithms).checkIDTokens() }
        guard case .misconfigured(let reason)? = error else { throw Unreadable() }
        #expect(reason.contains(algorithms.first ?? "nothing") && !reason.contains("\u{1B}"))
    }

    @Test(arguments: [nil, ["RS256"], ["HS256", "ES256"], ["EdDSA"]])
    func `one that signs with a published key is not`(algorithms: [String]?) throws {
        try metadata(algorithms).checkIDTokens()
        #expect(throws: OAuthError.self) { try metadata(algorithms, issuer: nil).checkIDTokens() }
    }
}

private struct Unreadable: Error {}
