import RingbackBase
import Testing

@testable import Sandbox

@Suite struct `Perturbed answers` {
    let visitor = Visitor.quick()

    private func perturb(_ names: String...) async {
        #expect(await visitor.control(["perturb": .array(names.map { .string($0) })]).status == 200)
    }

    /// What the metadata must not say any more, or says wrongly.
    @Test(
        arguments: [
            ("metadata_wrong_issuer", "issuer", .string(origin + "INVALID")),
            ("metadata_only_hs256", "id_token_signing_alg_values_supported", ["HS256"]),
            ("metadata_no_s256", "code_challenge_methods_supported", ["plain"]),
            ("metadata_no_iss_parameter", "authorization_response_iss_parameter_supported", nil),
            ("metadata_no_revocation", "revocation_endpoint", nil), ("metadata_no_userinfo", "userinfo_endpoint", nil),
            (
                "metadata_mtls_aliases", "mtls_endpoint_aliases",
                [
                    "token_endpoint": "http://127.0.0.1:1/token", "userinfo_endpoint": "http://127.0.0.1:1/userinfo",
                    "pushed_authorization_request_endpoint": "http://127.0.0.1:1/par",
                ]
            ),
        ] as [(String, String, JSON?)])
    func `of the metadata`(name: String, member: String, value: JSON?) async {
        await perturb(name)
        let answer = await visitor.get("/.well-known/openid-configuration").json
        #expect(answer[member] == value)
        #expect(answer["token_endpoint"] != nil)
    }

    @Test(
        arguments: [
            ("callback_no_iss", "iss", []), ("callback_wrong_iss", "iss", [origin + "1"]),
            ("callback_no_state", "state", []),
            ("callback_wrong_state", "state", ["the-state1"]),
            ("callback_repeated_state", "state", ["the-state", "the-state"]),
            ("callback_with_error", "error", ["access_denied"]),
            ("callback_with_tokens", "access_token", ["at-from-the-front"]),
        ] as [(String, String, [String])])
    func `of the callback`(name: String, parameter: String, values: [String]) async {
        await perturb(name)
        let answer = await visitor.authorize()
        #expect(answer.callback.filter { $0.name == parameter }.map(\.value) == values)
        #expect(answer.parameter("code") != nil)
    }

    @Test(
        arguments: [
            ("token_no_access_token", "access_token", nil), ("token_no_type", "token_type", nil),
            ("token_wrong_type", "token_type", "mac"), ("token_no_expires_in", "expires_in", nil),
            ("token_string_expires_in", "expires_in", "3600"), ("token_no_refresh_token", "refresh_token", nil),
            ("token_no_id_token", "id_token", nil), ("token_narrower_scope", "scope", "openid"),
            ("token_no_scope", "scope", nil),
            ("token_invalid_grant", "error", "invalid_grant"), ("token_invalid_grant", "access_token", nil),
        ] as [(String, String, JSON?)])
    func `of the token answer`(name: String, member: String, value: JSON?) async throws {
        let code = try await visitor.code()
        await perturb(name)
        #expect(await visitor.exchange(code).json[member] == value)
    }

    @Test func `a refresh without an access token rotates all the same`() async throws {
        let first = try await visitor.signIn().text("refresh_token")
        await visitor.control(["perturb": [["name": "token_no_access_token", "count": 1]]])
        let answer = await visitor.refresh(first)
        #expect(answer.status == 200)
        #expect(answer.json["access_token"] == nil)
        #expect(await visitor.refresh(try answer.json.text("refresh_token")).status == 200)
    }

    @Test func `a refused grant is not used up`() async throws {
        let token = try await visitor.signIn().text("refresh_token")
        await visitor.control(["perturb": [["name": "token_invalid_grant", "count": 1]]])
        #expect(await visitor.refresh(token).error == "invalid_grant")
        #expect(await visitor.refresh(token).status == 200)
    }

    @Test func `rotation can be forced and prevented once`() async throws {
        let first = try await visitor.signIn().text("refresh_token")
        await visitor.control(["perturb": [["name": "token_does_not_rotate", "count": 1]]])
        #expect(await visitor.refresh(first).json["refresh_token"] == nil)
        await visitor.control(["rotation": false, "perturb": [["name": "token_rotates", "count": 1]]])
        let second = try await visitor.refresh(first).json.text("refresh_token")
        #expect(await visitor.refresh(second).json["refresh_token"] == nil)
    }

    @Test func `a wrong verifier can be accepted`() async throws {
        await perturb("token_ignores_pkce")
        #expect(await visitor.exchange(try await visitor.code(), ["code_verifier": nil]).status == 200)
    }

    @Test func `the whole answer can be about somebody else`() async throws {
        await perturb("token_other_subject")
        let tokens = try await visitor.signIn()
        #expect(try TakenApart(tokens.text("id_token")).claims["sub"] == "bob")
        #expect(await visitor.userinfo(try tokens.text("access_token")).json["sub"] == "bob")
    }

    @Test(
        arguments: [
            ("id_token_wrong_issuer", "iss", .string(origin + "1")), ("id_token_no_issuer", "iss", nil),
            ("id_token_no_subject", "sub", nil), ("id_token_other_subject", "sub", "alice-other"),
            ("id_token_wrong_audience", "aud", "ringback-demo1"), ("id_token_no_audience", "aud", nil),
            ("id_token_extra_audience", "aud", ["ringback-demo", "somebody-else"]),
            ("id_token_wrong_azp", "azp", "somebody-else"),
            ("id_token_no_iat", "iat", nil), ("id_token_future_iat", "iat", 1_800_003_600),
            ("id_token_no_exp", "exp", nil),
            ("id_token_expired", "exp", 1_799_996_400), ("id_token_string_exp", "exp", "1800003600"),
            ("id_token_nbf", "nbf", 1_800_000_000), ("id_token_future_nbf", "nbf", 1_800_003_600),
            ("id_token_wrong_nonce", "nonce", "the-nonce1"),
            ("id_token_no_nonce", "nonce", nil), ("id_token_other_auth_time", "auth_time", 1_799_999_940),
            ("id_token_wrong_at_hash", "at_hash", "AAAAAAAAAAAAAAAAAAAAAA"),
        ] as [(String, String, JSON?)])
    func `of an ID token's claims, correctly signed`(name: String, claim: String, value: JSON?) async throws {
        await perturb(name)
        let token = try TakenApart(await visitor.signIn().text("id_token"))
        #expect(token.claims[claim] == value)
        #expect(token.claims["sid"] != nil)
        #expect(try await token.isSigned(with: visitor.get("/jwks").json))
    }

    @Test func `a claim can be there twice`() async throws {
        await perturb("id_token_repeated_claim")
        let token = try TakenApart(await visitor.signIn().text("id_token"))
        // The strict parser refuses it.
        #expect(token.claims == .null)
        #expect(try await token.isSigned(with: visitor.get("/jwks").json))
    }

    @Test func `a signature can be wrong`() async throws {
        await perturb("id_token_wrong_signature")
        let token = try TakenApart(await visitor.signIn().text("id_token"))
        #expect(token.claims["sub"] == "alice")
        #expect(try await !token.isSigned(with: visitor.get("/jwks").json))
    }

    @Test(
        arguments: [
            ("id_token_alg_none", "alg", "none", 0), ("id_token_alg_hs256", "alg", "HS256", 32),
            ("id_token_unknown_kid", "kid", "nobody-knows", 64), ("id_token_typ_at_jwt", "typ", "at+jwt", 64),
            ("id_token_crit", "crit", ["urn:example:must-understand"], 64),
        ] as [(String, String, JSON, Int)])
    func `of an ID token's header`(name: String, member: String, value: JSON, length: Int) async throws {
        await perturb(name)
        let token = try TakenApart(await visitor.signIn().text("id_token"))
        #expect(token.header[member] == value)
        #expect(token.signature.count == length)
    }

    @Test func `an unlisted algorithm signs correctly`() async throws {
        await perturb("id_token_other_algorithm")
        let token = try TakenApart(await visitor.signIn().text("id_token"))
        #expect(token.header["alg"] == "EdDSA")
        #expect(try await token.isSigned(with: visitor.get("/jwks").json))
        let metadata = await visitor.get("/.well-known/openid-configuration").json
        #expect(metadata["id_token_signing_alg_values_supported"] == ["ES256"])
    }

    @Test func `keys can change just before signing`() async throws {
        let before = await visitor.get("/jwks").json
        await visitor.control(["perturb": [["name": "id_token_new_key", "count": 1]]])
        let token = try TakenApart(await visitor.signIn().text("id_token"))
        #expect(try !token.isSigned(with: before))
        #expect(try await token.isSigned(with: visitor.get("/jwks").json))
    }

    @Test func `of userinfo`() async throws {
        let token = try await visitor.signIn().text("access_token")
        await visitor.control(["perturb": [["name": "userinfo_wrong_subject", "count": 1]]])
        #expect(await visitor.userinfo(token).json["sub"] == "aliceinvalid")
        await visitor.control(["perturb": [["name": "userinfo_no_subject", "count": 1]]])
        #expect(await visitor.userinfo(token).json["sub"] == nil)
        #expect(await visitor.userinfo(token).json["sub"] == "alice")
    }

    @Test func `last for as many answers as was said`() async throws {
        await visitor.control(["perturb": [["name": "callback_no_iss", "count": 2]]])
        var issuers: [String?] = []
        for _ in 0..<3 { issuers.append(await visitor.authorize().parameter("iss")) }
        #expect(issuers == [nil, nil, origin])
        await perturb("callback_no_iss")
        #expect(await visitor.authorize().parameter("iss") == nil)
        await visitor.control(["clear": true])
        #expect(await visitor.authorize().parameter("iss") == origin)
    }

    @Test(arguments: Perturbation.all.map(\.name)) func `each can be switched on by its name`(name: String) async {
        await perturb(name)
        #expect(await visitor.get("/sandbox/control").json["perturbations"]?[name] == true)
    }
}
