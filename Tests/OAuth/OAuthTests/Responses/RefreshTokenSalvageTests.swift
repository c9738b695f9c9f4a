import RingbackBase
import Testing

@testable import OAuth

private func salvaged(_ text: String) -> String? { RefreshTokenSalvage.token(in: Secret(text))?.revealed() }

/// The cases are in Tests/Vectors/token-answers; here is what needs many of them.
@Suite struct `Salvage of a refresh token` {
    private let whole =
        #"{"access_token":"a1","expires_in":3600,"user":{"id":["u1",null]},"refresh_token":"r-2/\"x\"","scope":"a"}"#

    @Test func `an answer cut anywhere gives the whole token or none`() throws {
        let token = #"r-2/"x""#
        let end = try #require(whole.firstRange(of: #""r-2/\"x\"""#)?.upperBound)
        let enough = whole.utf8.distance(from: whole.startIndex, to: end)
        for count in 0...whole.utf8.count {
            let cut = String(decoding: whole.utf8.prefix(count), as: UTF8.self)
            #expect(salvaged(cut) == (count >= enough ? token : nil), "\(count) bytes")
            let answer = try? TokenResponse(reading: HTTPResponse(status: 200, body: Secret(cut)))
            #expect(answer?.refreshToken?.revealed() == (count >= enough ? token : nil), "\(count) bytes")
            if count < whole.utf8.count { #expect((try? answer?.tokenSet()) == nil) }
        }
    }

    private func cut(_ text: String, status: Int = 200, type: String = "application/json") -> HTTPResponse {
        HTTPResponse(
            status: status, fields: HTTPFields([("Content-Type", type)]), body: Secret(text),
            truncation: .malformed(host: "id.example.org"))
    }

    @Test func `PR-17: what was cut off on the way gives its refresh token at most, even if it looks whole`() throws {
        let token = #"r-2/"x""#
        let end = try #require(whole.firstRange(of: #""r-2/\"x\""#)?.upperBound)
        let enough = whole.utf8.distance(from: whole.startIndex, to: end) + 1
        for count in 0...whole.utf8.count {
            let response = cut(String(decoding: whole.utf8.prefix(count), as: UTF8.self))
            let answer = try? TokenResponse(reading: response)
            #expect(answer?.refreshToken?.revealed() == (count >= enough ? token : nil), "\(count) bytes")
            #expect((try? answer?.tokenSet()) == nil, "\(count) bytes")
        }
        // The same, but good as a whole.
        let good = #"{"access_token":"a1","token_type":"Bearer","refresh_token":"r2"}"#
        let complete = try TokenResponse(reading: HTTPResponse(status: 200, body: Secret(good)))
        #expect(try complete.tokenSet().accessToken == Secret("a1"))
        let answer = try TokenResponse(reading: cut(good))
        #expect(answer.refreshToken == Secret("r2"))
        #expect(throws: OAuthError.invalid(.token, reason: "the response was truncated")) {
            try answer.tokenSet()
        }
    }

    @Test func `a form that was cut off gives a token that is followed by another name`() {
        let whole = "access_token=a1&refresh_token=r%2F2&scope=&token_type=bearer"
        let enough = "access_token=a1&refresh_token=r%2F2&".utf8.count
        let type = "application/x-www-form-urlencoded"
        for count in 0...whole.utf8.count {
            let answer = try? TokenResponse(reading: cut(String(whole.prefix(count)), type: type))
            #expect(answer?.refreshToken?.revealed() == (count >= enough ? "r/2" : nil), "\(count) bytes")
            #expect((try? answer?.tokenSet()) == nil, "\(count) bytes")
        }
        for text in [
            "refresh_token=a&refresh_token=b&x", "refresh_token=%zz&x", "refresh_token=&x", "&", "",
            "refresh_token=a&refresh_token=b", "refresh_token=a&refresh_token=", "refresh_token=a&refresh_token",
            "refresh_token=a&refresh%5Ftoken=%", "refresh_token=a&x=1&%72efresh_token=b",
        ] {
            #expect((try? TokenResponse(reading: cut(text, type: type))) == nil)
        }
    }

    @Test(arguments: [200, 400]) func `half a no is no no`(status: Int) {
        #expect(throws: OAuthError.invalid(.token, reason: "the response was truncated")) {
            try TokenResponse(reading: cut(#"{"error":"invalid_grant"}"#, status: status))
        }
    }

    @Test func `no other answer is read that was cut off`() throws {
        let claims = cut(#"{"sub":"alice","keys":[],"issuer":"https://id.example.org"}"#)
        #expect(throws: OAuthError.invalid(.userinfo, reason: "the response was truncated")) {
            try Userinfo(parsing: claims, subject: nil)
        }
        #expect(throws: OAuthError.invalid(.metadata, reason: "the response was truncated")) {
            try ProviderMetadata(parsing: claims, issuer: "https://id.example.org")
        }
        #expect(throws: OAuthError.invalid(.keys, reason: "the response was truncated")) {
            try JSONWebKeySet(parsing: claims)
        }
        #expect(throws: OAuthError.invalid(.revocation, reason: "the response was truncated")) {
            try RevocationOutcome(parsing: claims)
        }
        #expect(Userinfo.signedToken(in: cut("ey.ey.ey", type: "application/jwt")) == nil)
    }

    @Test func `no byte changed before the token makes another one`() throws {
        let token = #"r-2/"x""#
        let start = try #require(whole.firstRange(of: #""r-2"#)?.lowerBound)
        let bytes = Array(whole.utf8)
        for index in 0..<whole.utf8.distance(from: whole.startIndex, to: start) {
            for byte in Array("\"\\{}[],: x".utf8) + [0x00, 0xFF] {
                var changed = bytes
                changed[index] = byte
                // Cut at the end too, so that it is this reader that decides.
                let found = RefreshTokenSalvage.token(in: Secret(bytes: changed.dropLast()))?.revealed()
                #expect(found == nil || found == token, "byte \(index) as \(byte)")
            }
        }
    }

    @Test func `no depth, number or length of values is too much`() {
        let deep = String(repeating: "[", count: 50_000) + String(repeating: "]", count: 50_000)
        let many = "[" + String(repeating: "0,", count: 50_000) + "0]"
        let long = "\"" + String(repeating: "\\\"", count: 50_000) + "\""
        for value in [deep, many, long] {
            #expect(salvaged(#"{"x":\#(value),"refresh_token":"r2","y":\#(value)"#) == "r2")
            #expect(salvaged(#"{"x":\#(value.dropLast())"#) == nil)
        }
    }

    @Test func `a token too long to be one is none`() {
        let longest = String(repeating: "r", count: 65_536)
        #expect(salvaged(#"{"refresh_token":"\#(longest)","x"#) == longest)
        #expect(salvaged(#"{"refresh_token":"\#(longest)r","x"#) == nil)
    }

    @Test func `an answer with more values than are read keeps its token`() throws {
        let values = String(repeating: "0,", count: 20_001) + "0"
        let body = #"{"access_token":"a1","token_type":"Bearer","refresh_token":"r2","x":[\#(values)]}"#
        let answer = try TokenResponse(reading: HTTPResponse(status: 200, body: Secret(body)))
        #expect(answer.refreshToken == Secret("r2"))
        #expect(throws: OAuthError.self) { try answer.tokenSet() }
    }

    @Test(arguments: [400, 401, 403, 404]) func `an answer that is no success is not searched`(status: Int) {
        #expect(throws: OAuthError.self) {
            try TokenResponse(reading: HTTPResponse(status: status, body: Secret(#"{"refresh_token":"r2","x"#)))
        }
    }
}
