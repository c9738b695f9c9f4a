import Cryptography
import OAuth
import RingbackBase
import Testing

@Suite struct `JSON Web Signature` {
    private static let rfcPayload =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

    @Test func `RFC 7515 A_2, RS256`() throws {
        let modulus = """
            ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yR\
            T-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXB\
            dQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9ia\
            GNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ
            """
        let signature = """
            cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9\
            uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB\
            _eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rq\
            Vt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw
            """
        let keys = try JSONWebKeySet(json: ["keys": [["kty": "RSA", "n": .string(modulus), "e": "AQAB"]]])
        let token = Secret("eyJhbGciOiJSUzI1NiJ9.\(Self.rfcPayload).\(signature)")
        let claims = try JSONWebSignature(parsing: token).verify(with: keys, allowed: [.rs256])
        #expect(claims["iss"] == "joe")
        #expect(claims["exp"] == 1_300_819_380)
        #expect(claims["http://example.com/is_root"] == true)
    }

    @Test func `RFC 7515 A_3, ES256`() throws {
        let keys = try JSONWebKeySet(json: [
            "keys": [
                [
                    "kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
                    "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
                ]
            ]
        ])
        let signature = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
        let token = Secret("eyJhbGciOiJFUzI1NiJ9.\(Self.rfcPayload).\(signature)")
        #expect(try JSONWebSignature(parsing: token).verify(with: keys, allowed: [.es256])["iss"] == "joe")
    }

    @Test func `RFC 8037 A_4, Ed25519: a payload that is no JSON is signed and still refused`() throws {
        let keys = try JSONWebKeySet(json: [
            "keys": [["kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"]]
        ])
        let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
        let token = Secret("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\(signature)")
        let parsed = try JSONWebSignature(parsing: token)
        #expect(failedPart { try parsed.verify(with: keys, allowed: [.edDSA]) } == "payload")
        #expect(!parsed.isKeyMissing(in: keys))
    }

    @Test(arguments: SignatureAlgorithm.allCases)
    func `a token signed by a published key gives its payload`(algorithm: SignatureAlgorithm) throws {
        let mint = try TokenMint(algorithm)
        let parsed = try JSONWebSignature(parsing: try mint.token(["a": 1]))
        #expect(parsed.algorithm == algorithm)
        #expect(parsed.keyID == "k1")
        #expect(parsed.type == "jwt")
        #expect(try parsed.verify(with: mint.keys(), allowed: [algorithm]) == JSONObject([.init("a", 1)]))
        let others = Set(SignatureAlgorithm.allCases).subtracting([algorithm])
        #expect(failedPart { try parsed.verify(with: try mint.keys(), allowed: others) } == "alg")
        #expect(failedPart { try parsed.verify(with: try mint.keys(), allowed: []) } == "alg")
    }

    @Test func `no character of a token may change`() throws {
        let mint = try TokenMint(.es256)
        let keys = try mint.keys()
        let text = try mint.token(["iss": "https://id.example", "sub": "ann"]).revealedBytes()
        for index in text.indices {
            for replacement in [UInt8(ascii: "A"), UInt8(ascii: "_"), text[index] ^ 1] where replacement != text[index]
            {
                var changed = text
                changed[index] = replacement
                #expect(throws: JSONWebSignature.Failure.self) {
                    try JSONWebSignature(parsing: Secret(bytes: changed)).verify(with: keys, allowed: [.es256])
                }
            }
        }
    }

    @Test func `PR-11, ADV-18: a token has three parts and one spelling`() throws {
        let mint = try TokenMint(.es256)
        let good = try mint.token(["a": 1]).revealed()
        let parts = good.split(separator: ".").map(String.init)
        let texts = [
            "", ".", "..", "...", parts[0], "\(parts[0]).\(parts[1])", "\(parts[0]).\(parts[1]).", good + ".",
            "." + good,
            good + "=", " " + good, good + "\n", "\(parts[0])=.\(parts[1]).\(parts[2])", good + ".x.y", "..\(good)",
            "\(parts[0])..\(parts[1]).\(parts[2])", good.replacing(".", with: ","), "eyJhbGciOiJub25lIn0..",
            String(repeating: ".", count: 60_000), String(repeating: ".", count: 1_000_000),
            String(repeating: "A", count: 70_000) + good,
        ]
        for text in texts {
            #expect(throws: JSONWebSignature.Failure.self) {
                try JSONWebSignature(parsing: Secret(text)).verify(with: try mint.keys(), allowed: [.es256])
            }
        }
        #expect(throws: JSONWebSignature.Failure.self) {
            try JSONWebSignature(parsing: Secret(bytes: [0xFF, 0x2E, 0x2E]))
        }
    }

    @Test(arguments: [
        (#"{"alg":"none"}"#, "alg"), (#"{"alg":"None"}"#, "alg"), (#"{"alg":"HS256"}"#, "alg"),
        (#"{"alg":"es256"}"#, "alg"), (#"{"alg":""}"#, "alg"), (#"{"alg":null}"#, "alg"),
        (#"{"alg":["ES256"]}"#, "alg"),
        (#"{"alg":"ES256K"}"#, "alg"), (#"{"alg":"RSA-OAEP"}"#, "alg"), ("{}", "alg"), (#"{"kid":"k1"}"#, "alg"),
        (#"{"alg":"ES256","alg":"ES256"}"#, "header"), (#"{"alg":"none","alg":"ES256"}"#, "header"),
        (#"{"alg":"ES256","\u0061lg":"none"}"#, "header"), ("[]", "header"), ("", "header"), ("null", "header"),
        (#"{"alg":"ES256"} x"#, "header"), (#"{"alg":"ES256","crit":["exp"]}"#, "crit"),
        (#"{"alg":"ES256","crit":[]}"#, "crit"), (#"{"alg":"ES256","crit":null}"#, "crit"),
        (#"{"alg":"ES256","crit":["b64"],"b64":false}"#, "crit"), (#"{"alg":"ES256","kid":1}"#, "kid"),
        (#"{"alg":"ES256","kid":{}}"#, "kid"), (#"{"alg":"ES256","typ":1}"#, "typ"),
    ])
    func `a header that is not plain is refused though the signature holds`(header: String, part: String) throws {
        let mint = try TokenMint(.es256)
        let token = try mint.token(headerText: Array(header.utf8), payload: Array("{}".utf8))
        #expect(failedPart { try JSONWebSignature(parsing: token) } == part)
    }

    @Test(arguments: [
        "{}x", "", "[]", #""text""#, #"{"sub":"a","sub":"b"}"#, #"{"sub":"a","\u0073ub":"b"}"#, "{\"a\":\"\u{1}\"}",
    ])
    func `a payload that is not one plain object is refused though the signature holds`(payload: String) throws {
        let mint = try TokenMint(.es256)
        let token = try mint.token(headerText: mint.header.serialized(), payload: Array(payload.utf8))
        let parsed = try JSONWebSignature(parsing: token)
        #expect(failedPart { try parsed.verify(with: try mint.keys(), allowed: [.es256]) } == "payload")
    }

    @Test func `PR-12: a key in the header is not looked at`() throws {
        let mint = try TokenMint(.es256)
        let attacker = try TokenMint(.es256, kid: "k1")
        for name in ["jwk", "jku", "x5u", "x5c"] {
            let value: JSON = name == "jwk" ? attacker.jwk() : "https://attacker.example/keys"
            let forged = try JSONWebSignature(
                parsing: attacker.token([:], header: attacker.header.setting(name, value)))
            #expect(failedPart { try forged.verify(with: try mint.keys(), allowed: [.es256]) } == "signature")
            let honest = try JSONWebSignature(parsing: mint.token([:], header: mint.header.setting(name, value)))
            #expect(throws: Never.self) { try honest.verify(with: mint.keys(), allowed: [.es256]) }
        }
    }

    @Test func `PR-12, NAT-55: RS256 is not PS256, whichever key is published`() throws {
        let mint = try TokenMint(.rs256)
        let relabelled = try mint.token([:], header: mint.header.setting("alg", "PS256"))
        let parsed = try JSONWebSignature(parsing: relabelled)
        #expect(failedPart { try parsed.verify(with: try mint.keys(), allowed: [.ps256]) } == "signature")
        #expect(failedPart { try parsed.verify(with: try mint.keys(), allowed: [.rs256]) } == "alg")
        let curved = try mint.token([:], header: mint.header.setting("alg", "ES256"))
        #expect(
            failedPart { try JSONWebSignature(parsing: curved).verify(with: try mint.keys(), allowed: [.es256]) }
                == "kid")
    }

    @Test func `a token without kid is tried with every key that fits`() throws {
        let mint = try TokenMint(.es256, kid: nil)
        let keys = try JSONWebKeySet(json: [
            "keys": [
                try TokenMint(.es256).jwk(), try TokenMint(.rs256).jwk(), try TokenMint(.edDSA).jwk(), mint.jwk(),
                try TokenMint(.es256, kid: nil).jwk(),
            ]
        ])
        let parsed = try JSONWebSignature(parsing: mint.token(["a": 1]))
        #expect(try parsed.verify(with: keys, allowed: [.es256])["a"] == 1)
    }

    @Test func `a key is missing where a newer set could help`() throws {
        let old = try TokenMint(.es256, kid: "old")
        let new = try TokenMint(.es256, kid: "new")
        let keys = try old.keys()
        #expect(try JSONWebSignature(parsing: new.token([:])).isKeyMissing(in: keys))
        #expect(try !JSONWebSignature(parsing: old.token([:])).isKeyMissing(in: keys))
        // The named key is there and did not sign this: no other set changes that.
        let forged = try new.token([:], header: old.header)
        #expect(try !JSONWebSignature(parsing: forged).isKeyMissing(in: keys))
        // Without names a rotated key looks like a wrong signature.
        let nameless = try TokenMint(.es256, kid: nil)
        #expect(try JSONWebSignature(parsing: nameless.token([:])).isKeyMissing(in: keys))
        #expect(try !JSONWebSignature(parsing: nameless.token([:])).isKeyMissing(in: nameless.keys()))
        #expect(try JSONWebSignature(parsing: new.token([:])).isKeyMissing(in: nameless.keys()))
        #expect(try JSONWebSignature(parsing: new.token([:])).isKeyMissing(in: JSONWebKeySet(json: ["keys": []])))
    }

    @Test(arguments: [
        ("JWT", "jwt"), ("application/at+jwt", "at+jwt"), ("AT+JWT", "at+jwt"), ("Application/JWT", "jwt"),
    ])
    func `a type is read without letter case and prefix`(typ: String, type: String) throws {
        let mint = try TokenMint(.es256)
        let token = try mint.token([:], header: mint.header.setting("typ", .string(typ)))
        #expect(try JSONWebSignature(parsing: token).type == type)
    }
}

/// The part that a failure names; nil without one.
private func failedPart(_ body: () throws -> some Any) -> String? {
    do {
        _ = try body()
        return nil
    } catch {
        return (error as? JSONWebSignature.Failure)?.part ?? "\(error)"
    }
}
