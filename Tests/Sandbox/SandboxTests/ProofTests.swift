import Cryptography
import LocalHTTP
import RingbackBase
import Testing

@testable import Sandbox

/// A key of a client, and the proofs that it makes.
private struct Prover {
    let key: PrivateKey
    let visitor: Visitor

    init(_ visitor: Visitor) throws {
        key = try PrivateKey.generate(.p256)
        self.visitor = visitor
    }

    var thumbprint: String {
        let members = JSONObject(key.publicKey.webKey.members.sorted { $0.name < $1.name })
        return Base64URL.encode(Digest.sha256(members.jsonValue.serialized()))
    }

    func proof(
        _ path: String = "/token", _ method: String = "POST", token: String? = nil, nonce: String? = nil,
        _ changeClaims: (inout JSONObject) -> Void = { _ in }, header change: (inout JSONObject) -> Void = { _ in }
    ) throws -> (String, String) {
        var header: JSONObject = ["typ": "dpop+jwt", "alg": "ES256", "jwk": key.publicKey.webKey]
        var claims: JSONObject = [
            "jti": RandomToken.identifier(), "htm": method, "htu": origin + path, "iat": visitor.clock.now,
            "ath": token.map { Base64URL.encode(Digest.sha256($0)) }, "nonce": nonce,
        ]
        change(&header)
        changeClaims(&claims)
        return ("DPoP", try JSONWebToken.signed(header, claims) { try key.sign(message: $0, algorithm: .es256) })
    }

    func exchange(_ code: String, _ fields: [(String, String)]) async -> Answer {
        let form = [
            ("grant_type", "authorization_code"), ("code", code), ("client_id", "ringback-demo"),
            ("redirect_uri", callback), ("code_verifier", verifier),
        ]
        return await visitor.post("/token", form, fields: fields)
    }

    func refresh(_ token: String, _ fields: [(String, String)]) async -> Answer {
        let form = [("grant_type", "refresh_token"), ("client_id", "ringback-demo"), ("refresh_token", token)]
        return await visitor.post("/token", form, fields: fields)
    }

    func signIn() async throws -> Answer {
        await exchange(try await visitor.code(["dpop_jkt": thumbprint]), [try proof()])
    }
}

@Suite struct `The sandbox, given proofs of a key` {
    private let visitor = Visitor.quick { $0.proofs = .required }
    private let prover: Prover

    init() throws { prover = try Prover(visitor) }

    @Test func `says so in its metadata, and not where it is off`() async {
        let place = "/.well-known/openid-configuration"
        #expect(await visitor.get(place).json["dpop_signing_alg_values_supported"] == ["ES256"])
        #expect(await Visitor.quick().get(place).json["dpop_signing_alg_values_supported"] == nil)
    }

    @Test func `binds the code, the tokens and the refreshes to it`() async throws {
        let tokens = try await prover.signIn()
        #expect(tokens.status == 200 && tokens.json["token_type"] == "DPoP")
        let refreshToken = try tokens.json.text("refresh_token")
        #expect(await prover.refresh(refreshToken, []).error == "invalid_dpop_proof")
        let thief = try Prover(visitor)
        #expect(await thief.refresh(refreshToken, [try thief.proof()]).error == "invalid_grant")
        let renewed = await prover.refresh(refreshToken, [try prover.proof()])
        #expect(renewed.status == 200 && renewed.json["token_type"] == "DPoP")
        let code = try await visitor.code(["dpop_jkt": prover.thumbprint])
        #expect(await thief.exchange(code, [try thief.proof()]).error == "invalid_grant")
        #expect(await visitor.authorize().parameter("error") == "invalid_request")
    }

    @Test func `gives userinfo for the token and a proof of its key alone`() async throws {
        let token = try await prover.signIn().json.text("access_token")
        let bound = ("Authorization", "DPoP \(token)")
        let proven = await visitor.get(
            "/userinfo", fields: [bound, try prover.proof("/userinfo", "GET", token: token)])
        #expect(proven.status == 200 && proven.json["sub"] == "alice")
        let thief = try Prover(visitor)
        for fields in [
            [("Authorization", "Bearer \(token)"), try prover.proof("/userinfo", "GET", token: token)], [bound],
            [bound, try prover.proof("/userinfo", "GET")], [bound, try prover.proof("/userinfo", "GET", token: "x")],
            [bound, try thief.proof("/userinfo", "GET", token: token)],
        ] {
            let answer = await visitor.get("/userinfo", fields: fields)
            #expect(answer.status == 401 && answer.fields["WWW-Authenticate"]?.hasPrefix("DPoP ") == true)
        }
    }

    @Test func `takes a proof once, for one request, at its time, with its key`() async throws {
        let refreshToken = try await prover.signIn().json.text("refresh_token")
        let used = try prover.proof()
        let renewed = await prover.refresh(refreshToken, [used])
        let next = try renewed.json.text("refresh_token")
        let now = visitor.clock.now
        let other = try Prover(visitor).key.publicKey.webKey
        let wrong = [
            used, try prover.proof("/par"), try prover.proof("/token?x=1"), try prover.proof("/token", "GET"),
            try prover.proof { $0["iat"] = .integer(now - 61) }, try prover.proof { $0["iat"] = .integer(now + 6) },
            try prover.proof { $0["iat"] = nil }, try prover.proof { $0["jti"] = nil },
            try prover.proof(header: { $0["typ"] = "JWT" }), try prover.proof(header: { $0["jwk"] = nil }),
            try prover.proof(header: { $0["jwk"] = .object(other) }),
            try prover.proof(token: "x"), ("DPoP", "a.b.c"),
        ]
        for field in wrong { #expect(await prover.refresh(next, [field]).error == "invalid_dpop_proof") }
        let two = [try prover.proof(), try prover.proof()]
        #expect(await prover.refresh(next, two).error == "invalid_dpop_proof")
        #expect(await prover.refresh(next, [try prover.proof()]).status == 200)
    }

    @Test func `wants a nonce, for each role its own, that stays or is good once`() async throws {
        for isForOnce in [false, true] {
            await visitor.control(["dpop_nonce": .string(isForOnce ? "once" : "constant")])
            let code = try await visitor.code(["dpop_jkt": prover.thumbprint])
            let first = await prover.exchange(code, [try prover.proof()])
            #expect(first.status == 400 && first.error == "use_dpop_nonce")
            let nonce = try #require(first.fields["DPoP-Nonce"])
            let tokens = await prover.exchange(code, [try prover.proof(nonce: nonce)])
            #expect(tokens.status == 200 && (tokens.fields["DPoP-Nonce"] == nonce) != isForOnce)
            let again = await prover.refresh(try tokens.json.text("refresh_token"), [try prover.proof(nonce: nonce)])
            #expect(again.status == (isForOnce ? 400 : 200))
            let token = try tokens.json.text("access_token")
            let fields = [("Authorization", "DPoP \(token)")]
            let asked = await visitor.get(
                "/userinfo", fields: fields + [try prover.proof("/userinfo", "GET", token: token, nonce: nonce)])
            #expect(asked.status == 401 && asked.fields["WWW-Authenticate"]?.contains("use_dpop_nonce") == true)
            let own = asked.fields["DPoP-Nonce"]
            let answer = await visitor.get(
                "/userinfo", fields: fields + [try prover.proof("/userinfo", "GET", token: token, nonce: own)])
            #expect(answer.status == 200)
        }
    }

    @Test func `binds refresh tokens alone where it is told so`() async throws {
        await visitor.control(["dpop_binds": "refresh_tokens"])
        let tokens = try await prover.signIn()
        #expect(tokens.json["token_type"] == "Bearer")
        #expect(await visitor.userinfo(try tokens.json.text("access_token")).status == 200)
        #expect(await prover.refresh(try tokens.json.text("refresh_token"), []).error == "invalid_dpop_proof")
    }

    @Test func `demands PAR, DPoP and a nonce of everyone by one switch`() async throws {
        await visitor.control(["strict": true])
        #expect(await visitor.authorize(["dpop_jkt": prover.thumbprint]).status == 400)
        let form = [
            ("client_id", "ringback-demo"), ("redirect_uri", callback), ("response_type", "code"),
            ("code_challenge", challenge), ("code_challenge_method", "S256"), ("scope", "openid"),
        ]
        let nonce = await visitor.post("/par", form, fields: [try prover.proof("/par")]).fields["DPoP-Nonce"]
        let field = try prover.proof("/par", nonce: nonce)
        #expect(await visitor.post("/par", form + [("dpop_jkt", "x")], fields: [field]).error == "invalid_dpop_proof")
        let other = await visitor.post("/par", form, fields: [try prover.proof("/par")]).fields["DPoP-Nonce"]
        let pushed = await visitor.post("/par", form, fields: [try prover.proof("/par", nonce: other)])
        let query = [("client_id", "ringback-demo"), ("request_uri", try pushed.json.text("request_uri"))]
        let code = try #require(await visitor.get("/authorize", query).parameter("code"))
        let last = try prover.proof(nonce: pushed.fields["DPoP-Nonce"])
        #expect(await prover.exchange(code, [last]).status == 200)
        await visitor.control(["strict": false])
        #expect(try await visitor.signIn()["token_type"] == "Bearer")
    }

    /// RFC 9449 figure 2 and section 7.1, with the thumbprint of section 6.1.
    @Test func `takes the examples of the RFC`() throws {
        var issuer = Issuer(origin: "https://server.example.com", prefix: "", options: SandboxOptions())
        issuer.settings.proofs = .required
        issuer.settings.endpointURLs["userinfo"] = "https://resource.example.org/protectedresource"
        func request(_ method: String, _ proof: String) -> SandboxRequest {
            let fields = HTTPFields([("DPoP", proof)])
            return SandboxRequest(
                ServerRequest(method: method, target: "/", fields: fields, body: [], peer: .local(uid: 0, pid: 0)),
                path: "/")
        }
        let thumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        #expect(try issuer.provenKey(request("POST", RFC9449.tokenProof), .token, at: 1_562_262_616) == thumbprint)
        let found = try issuer.provenKey(
            request("GET", RFC9449.resourceProof), .userinfo, token: RFC9449.accessToken, at: 1_562_262_618)
        #expect(found == thumbprint)
    }
}

private enum RFC9449 {
    private static let header =
        "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscE"
        + "JoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19"
    static let tokenProof =
        header
        + ".eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIi"
        + "wiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg"
    static let accessToken = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"
    static let resourceProof =
        header
        + ".eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZW"
        + "N0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9"
        + ".2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA"
}
