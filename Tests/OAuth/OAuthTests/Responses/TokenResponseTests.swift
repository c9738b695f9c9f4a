import RingbackBase
import Testing

@testable import OAuth

private let vectors = VectorFile.all(in: "token-answers")

private func answer(_ json: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, fields: HTTPFields([("Content-Type", "application/json")]), body: Secret(json))
}

@Suite struct `Token answer` {
    @Test func `the vectors are there`() { #expect(vectors.count >= 150) }

    @Test(arguments: vectors) func `an answer is read as its vector says`(vector: VectorFile) throws {
        try vector.checkTokenAnswer()
    }

    @Test(
        arguments: [
            ("", nil), (#","expires_in":0"#, nil), (#","expires_in":-1"#, nil), (#","expires_in":-1e300"#, nil),
            (#","expires_in":-0.5"#, nil), (#","expires_in":0.5"#, nil), (#","expires_in":"0""#, nil),
            (#","expires_in":1e308"#, 31_536_000), (#","expires_in":1e999"#, 31_536_000),
            (#","expires_in":2147483648"#, 31_536_000), (#","expires_in":9223372036854775807"#, 31_536_000),
            (#","expires_in":9223372036854775808"#, 31_536_000), (#","expires_in":-9223372036854775808"#, nil),
            (#","expires_in":"3600""#, 3600), (#","expires_in":"3600.5""#, 3600), (#","expires_in":3600.5"#, 3600),
            (#","expires_in":"-1""#, nil), (#","expires_in":"1e400""#, 31_536_000), (#","expires_in":null"#, nil),
            (#","expires_in":"""#, nil), (#","expires_in":"nan""#, nil), (#","expires_in":"inf""#, nil),
            (#","expires_in":"0x10""#, nil), (#","expires_in":"soon""#, nil), (#","expires_in":" 3600""#, nil),
            (#","expires_in":true"#, nil), (#","expires_in":[3600]"#, nil), (#","expires_in":{}"#, nil),
            (#","expires_in":"1111111111111111111111111111111111""#, nil), (#","expires_in":"٣""#, nil),
        ] as [(String, Int?)])
    func `PR-09, RT-06: no lifetime traps or costs a session`(member: String, seconds: Int?) throws {
        let answer = try TokenResponse(
            reading: answer(#"{"access_token":"a","token_type":"Bearer","refresh_token":"r""# + member + "}"))
        #expect(answer.refreshToken == Secret("r"))
        #expect(try answer.tokenSet().expiresIn == seconds)
    }

    @Test(
        arguments: [
            (#"" openid   email\n""#, "openid email"), (#""openid,email""#, "openid,email"), (#""""#, ""), ("[]", ""),
            (#"["openid",1,"email"]"#, "openid email"), (#""öpenid""#, nil), (#""a\u0000b""#, nil), ("1", nil),
            ("{}", nil),
        ] as [(String, String?)])
    func `scopes are one text with one space between`(json: String, scope: String?) throws {
        let answer = try TokenResponse(
            reading: answer(#"{"access_token":"a","token_type":"Bearer","scope":\#(json)}"#))
        #expect(try answer.tokenSet().scope == scope)
    }

    @Test(
        arguments: [
            ("null", nil), (#""""#, nil), ("1", nil), ("[\"r\"]", nil), (#""a b""#, "a b"), (#""a\nb""#, nil),
            (#""é""#, nil),
        ] as [(String, String?)])
    func `SK-12, ADV-12: a refresh token is printable text or not there`(json: String, token: String?) throws {
        let answer = try TokenResponse(
            reading: answer(#"{"access_token":"a","token_type":"Bearer","refresh_token":\#(json)}"#))
        #expect(answer.refreshToken?.revealed() == token)
        #expect(try answer.tokenSet().refreshToken?.revealed() == token)
    }

    @Test func `tokens of 64 KiB are read, longer ones are not`() throws {
        let longest = String(repeating: "t", count: 65_536)
        let whole = try TokenResponse(
            reading: answer(
                #"{"access_token":"\#(longest)","token_type":"Bearer","refresh_token":"\#(longest)","id_token":"x"}"#))
        #expect(try whole.tokenSet().accessToken.count == 65_536)
        #expect(whole.refreshToken?.count == 65_536)
        let tooLong = try TokenResponse(
            reading: answer(#"{"access_token":"\#(longest)t","token_type":"Bearer","refresh_token":"\#(longest)t"}"#))
        #expect(tooLong.refreshToken == nil)
        #expect(throws: OAuthError.self) { try tooLong.tokenSet() }
    }

    private static func jwt(_ claims: String) -> String { "e30.\(Base64URL.encode(claims.utf8)).s" }

    @Test(
        arguments: [
            ("a", #""expires_in":60,"expires_at":2000000900"#, 60), ("a", #""expires_at":2000000900"#, 900),
            ("a", #""expires_at":"2000000900""#, 900), ("a", #""expires_at":2000000900000"#, 900),
            ("a", #""expires_at":"2033-05-18T03:48:20Z""#, 900), ("a", #""expires_on":"2000000900""#, 900),
            ("a", #""expires_in":0,"expires_at":2000000900.5"#, 900), ("a", #""expires_at":1"#, nil),
            ("a", #""expires_at":"soon""#, nil), ("a", #""expires_at":1e300"#, nil), ("a", #""x":1"#, nil),
            ("a", #""expires_at":200000000000"#, 31_536_000),
            (jwt(#"{"exp":2000000600}"#), #""expires_in":0"#, 600), (jwt(#"{"exp":2000000600}"#), #""x":1"#, 600),
            (jwt(#"{"exp":2000000600.9,"iat":2000000000}"#), #""expires_in":null"#, 600),
            // The provider's clock is ahead, behind; the token was issued before.
            (jwt(#"{"exp":2000009600,"iat":2000009000}"#), #""x":1"#, 600),
            (jwt(#"{"exp":1999990600,"iat":1999990000}"#), #""x":1"#, 600),
            (jwt(#"{"exp":2000000100,"iat":1999999000}"#), #""x":1"#, 100),
            (jwt(#"{"exp":1999990600}"#), #""x":1"#, nil), (jwt(#"{"exp":1,"iat":2}"#), #""x":1"#, nil),
            (jwt(#"{"iat":2000000000}"#), #""x":1"#, nil), (jwt("[]"), #""x":1"#, nil), ("a.!.b", #""x":1"#, nil),
        ] as [(String, String, Int?)])
    func `a lifetime that expires_in does not state is taken from expires_at or from the token's claims`(
        token: String, member: String, seconds: Int?
    ) throws {
        let tokens = try TokenResponse(reading: answer(#"{"access_token":"\#(token)",\#(member)}"#)).tokenSet()
        #expect(tokens.lifetime(now: 2_000_000_000) == seconds)
    }

    @Test(arguments: [#""mac""#, #""N_A""#, "1", #"["Bearer"]"#, #""Bearer x""#])
    func `NAT-45: a token of a type that is not understood is not used`(type: String) throws {
        let answer = try TokenResponse(reading: answer(#"{"access_token":"a","token_type":\#(type)}"#))
        #expect(throws: OAuthError.self) { try answer.tokenSet() }
    }

    @Test(
        arguments: [408, 425, 429, 500, 501, 502, 503, 504, 511, 599], [#"{"error":"invalid_grant"}"#, "", "<html>"])
    func `RT-03: a status that means later is never a no`(status: Int, body: String) {
        // A provider that fails may say why: that is no proof of anything, and shown.
        let saysWhy = status >= 500 && body.hasPrefix("{")
        let error: OAuthError =
            saysWhy
            ? .failing(.init(code: "invalid_grant", message: nil, status: status), retryAfter: nil)
            : .unavailable(.token, status: status, retryAfter: nil)
        #expect(throws: error) { try TokenResponse(reading: answer(body, status: status)) }
    }

    @Test(arguments: [301, 302, 303, 307, 308]) func `PR-03: a redirect is refused whatever it carries`(status: Int) {
        #expect(throws: OAuthError.invalid(.token, reason: "a redirect, which is not followed (HTTP \(status))")) {
            try TokenResponse(reading: answer(#"{"access_token":"a","token_type":"Bearer"}"#, status: status))
        }
    }

    @Test func `a failed answer gives no refresh token`() {
        #expect(throws: OAuthError.self) {
            try TokenResponse(reading: answer(#"{"refresh_token":"r2"}"#, status: 400))
        }
    }

    @Test func `an answer prints no secret`() throws {
        let answer = try TokenResponse(
            reading: answer(
                #"{"access_token":"hunter1","token_type":"Bearer","refresh_token":"hunter2","id_token":"hunter3"}"#))
        var text = "\(answer) \(try answer.tokenSet())"
        dump(answer, to: &text)
        #expect(!text.contains("hunter"))
    }
}
