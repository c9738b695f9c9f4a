import Cryptography
import OAuth
import RingbackBase
import Testing

@Suite struct `JSON Web Key set` {
    @Test(arguments: SignatureAlgorithm.allCases)
    func `a published key is the key that signs`(algorithm: SignatureAlgorithm) throws {
        let mint = try TokenMint(algorithm)
        let keys = try mint.keys()
        #expect(keys.keys.map(\.publicKey) == [mint.key.publicKey])
        #expect(keys.keys.first?.keyID == "k1")
        #expect(keys.candidates(kid: "k1", algorithm: algorithm).count == 1)
        #expect(keys.candidates(kid: nil, algorithm: algorithm).count == 1)
    }

    @Test func `the set of a certification suite keeps its six usable keys`() throws {
        let point = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        let rsa = try TokenMint(.rs256)
        let keys = try JSONWebKeySet(json: [
            "keys": [
                rsa.jwk(["kid": "r1"]), rsa.jwk(["kid": "r2"]), try TokenMint(.es256).jwk(["kid": "e1"]),
                try TokenMint(.es256).jwk(["kid": "e2"]), try TokenMint(.edDSA).jwk(["kid": "o1"]),
                try TokenMint(.es384).jwk(["kid": "e3"]),
                ["kty": "EC", "crv": "secp256k1", "use": "sig", "x": .string(point), "y": .string(point)],
                rsa.jwk(["use": "enc"]), try TokenMint(.es256).jwk(["use": "enc", "alg": "ECDH-ES"]),
                ["kty": "oct", "k": "c2VjcmV0"], ["kty": "AKP", "alg": "ML-DSA-44", "pub": "AAAA"],
                ["kty": "OKP", "crv": "X25519", "x": .string(point)],
            ]
        ])
        #expect(keys.keys.compactMap(\.keyID) == ["r1", "r2", "e1", "e2", "o1", "e3"])
    }

    @Test(
        arguments: [
            ["kty": nil], ["kty": "rsa"], ["kty": 3], ["n": nil], ["e": nil], ["n": ""], ["e": ""], ["n": 5],
            ["n": "AQAB"],
            ["e": "AQ"], ["e": "AAAAAQAAAAE"], ["use": "enc"], ["use": ["sig"]],
            ["key_ops": ["sign"]], ["key_ops": []], ["key_ops": "verify"], ["alg": "RSA-OAEP"], ["alg": "ES256"],
            ["alg": "HS256"], ["alg": "none"], ["alg": 256], ["kid": 7], ["kid": ["k1"]], ["d": "AQAB"], ["k": "AQAB"],
        ] as [[String: JSON?]])
    func `a key that is broken or not for us is left out, and only it`(changes: [String: JSON?]) throws {
        let good = try TokenMint(.es256, kid: "good")
        let keys = try JSONWebKeySet(json: ["keys": [try TokenMint(.rs256).jwk(changes), good.jwk()]])
        #expect(keys.keys.map(\.keyID) == ["good"])
    }

    @Test(
        arguments: [["x": "AAAA"], ["x": nil], ["y": nil], ["crv": "P-384"], ["crv": "secp256k1"], ["crv": nil]]
            as [[String: JSON?]])
    func `a point that is broken is left out`(changes: [String: JSON?]) throws {
        let keys = try JSONWebKeySet(json: ["keys": [try TokenMint(.es256).jwk(changes)]])
        #expect(keys.keys.isEmpty)
    }

    @Test(
        arguments: [
            ["use": nil], ["use": .null, "key_ops": .null, "alg": .null, "kid": .null], ["key_ops": ["verify"]],
            ["key_ops": ["sign", "verify"]], ["alg": "RS256"], ["x5c": ["MIIB"], "x5t": "AAAA", "unknown": [1]],
        ] as [[String: JSON?]])
    func `a key with other members than the usual stays`(changes: [String: JSON?]) throws {
        let keys = try JSONWebKeySet(json: ["keys": [try TokenMint(.rs256).jwk(changes)]])
        #expect(keys.candidates(kid: nil, algorithm: .rs256).count == 1)
    }

    @Test(arguments: [[], "keys", ["keys": nil], ["keys": [:]], ["key": []], nil, ["keys": "none"]] as [JSON])
    func `what is no key set is refused`(json: JSON) {
        #expect(throws: OAuthError.self) { try JSONWebKeySet(json: json) }
    }

    @Test func `entries that are no objects are left out`() throws {
        let good = try TokenMint(.es256).jwk()
        #expect(try JSONWebKeySet(json: ["keys": [1, "k", nil, [], [good], good]]).keys.count == 1)
        #expect(try JSONWebKeySet(json: ["keys": []]).keys.isEmpty)
    }

    @Test func `a hundred keys are taken, more are refused`() throws {
        let key = try TokenMint(.es256).jwk()
        #expect(try JSONWebKeySet(json: ["keys": .array(.init(repeating: key, count: 100))]).keys.count == 100)
        #expect(throws: OAuthError.self) {
            try JSONWebKeySet(json: ["keys": .array(.init(repeating: key, count: 101))])
        }
    }

    @Test func `a key with an algorithm serves that one only`() throws {
        let mint = try TokenMint(.rs256)
        let keys = try JSONWebKeySet(json: ["keys": [mint.jwk(["alg": "PS256"])]])
        #expect(keys.candidates(kid: "k1", algorithm: .rs256).isEmpty)
        #expect(keys.candidates(kid: "k1", algorithm: .ps256).count == 1)
    }

    @Test func `the numbers of a key may be in standard base64, padded, or without leading zeros`() throws {
        for algorithm in [SignatureAlgorithm.rs256, .es256, .edDSA] {
            let mint = try TokenMint(algorithm)
            guard case .object(var key) = mint.jwk() else { return }
            key["use"] = ""
            key["key_ops"] = .null
            for name in ["n", "e", "x", "y"] {
                guard let text = key[name]?.string, let bytes = Base64URL.decode(text) else { continue }
                // An RSA library writes a byte for the sign, and the coordinates have no fixed length elsewhere.
                key[name] = .string(Base64.encode(name == "x" && algorithm == .edDSA ? bytes : [0] + bytes))
            }
            #expect(try JSONWebKeySet(json: ["keys": [.object(key)]]).keys.map(\.publicKey) == [mint.key.publicKey])
        }
    }

    @Test func `a kid chooses its key and no other`() throws {
        let first = try TokenMint(.es256, kid: "a")
        let second = try TokenMint(.es256, kid: "b")
        let keys = try JSONWebKeySet(json: ["keys": [first.jwk(), second.jwk()]])
        #expect(keys.candidates(kid: "b", algorithm: .es256).map(\.publicKey) == [second.key.publicKey])
        #expect(keys.candidates(kid: "B", algorithm: .es256).isEmpty)
        #expect(keys.candidates(kid: "", algorithm: .es256).isEmpty)
        #expect(keys.candidates(kid: "../../etc/passwd", algorithm: .es256).isEmpty)
        #expect(keys.candidates(kid: "b", algorithm: .rs256).isEmpty)
        #expect(keys.candidates(kid: nil, algorithm: .es256).count == 2)
    }

    @Test func `kids are compared byte by byte`() throws {
        let keys = try JSONWebKeySet(json: ["keys": [try TokenMint(.es256, kid: "K\u{E9}").jwk()]])
        #expect(keys.candidates(kid: "K\u{E9}", algorithm: .es256).count == 1)
        #expect(keys.candidates(kid: "Ke\u{301}", algorithm: .es256).isEmpty)
    }

    @Test func `a nameless key serves any name if it is the only one that fits`() throws {
        let nameless = try TokenMint(.es256, kid: nil)
        let rsa = try TokenMint(.rs256, kid: "r")
        let alone = try JSONWebKeySet(json: ["keys": [nameless.jwk(), rsa.jwk()]])
        #expect(alone.candidates(kid: "new", algorithm: .es256).count == 1)
        let beside = try JSONWebKeySet(json: ["keys": [nameless.jwk(), try TokenMint(.es256, kid: "b").jwk()]])
        #expect(beside.candidates(kid: "new", algorithm: .es256).isEmpty)
        let two = try JSONWebKeySet(json: ["keys": [nameless.jwk(), try TokenMint(.es256, kid: nil).jwk()]])
        #expect(two.candidates(kid: "new", algorithm: .es256).isEmpty)
        #expect(two.candidates(kid: nil, algorithm: .es256).count == 2)
    }

    @Test func `an answer is read strictly`() throws {
        let set: JSON = ["keys": [try TokenMint(.es256).jwk()]]
        func read(_ status: Int, _ body: String, _ fields: HTTPFields = HTTPFields()) throws -> JSONWebKeySet {
            try JSONWebKeySet(parsing: HTTPResponse(status: status, fields: fields, body: Secret(body)))
        }
        #expect(try read(200, set.text).keys.count == 1)
        #expect(throws: OAuthError.unavailable(.keys, status: 503, retryAfter: 7)) {
            try read(503, set.text, HTTPFields([("Retry-After", "7")]))
        }
        for status in [201, 204, 302, 400, 404] {
            #expect(throws: OAuthError.self) { try read(status, set.text) }
        }
        let bodies = [
            "", "<html>", "\u{FEFF}\u{FEFF}" + set.text, set.text + "x", "[]", #"{"keys":[],"keys":[]}"#,
            #"{"keys":[]}"# + String(repeating: " ", count: 256 * 1024),
        ]
        for body in bodies {
            #expect(throws: OAuthError.self) { try read(200, body) }
        }
    }
}
