import RingbackBase

@testable import Cryptography
@testable import OAuth

/// Key sets: every key that is taken verifies with one kind of signature, and says the same when it is written again.
enum KeySetLaw {
    static func check(_ bytes: [UInt8]) throws {
        let response = HTTPResponse(status: 200, body: Secret(bytes: bytes))
        guard let set = try? JSONWebKeySet(parsing: response) else { return }
        let entries = try JSON(parsing: bytes)["keys"]?.array ?? []
        try hold("there are at most 100 keys", entries.count <= 100)
        let usable = entries.compactMap(\.object).filter { $0["d"] == nil && $0["k"] == nil }
        try hold("no key comes from nowhere, and no published secret serves", set.keys.count <= usable.count)
        let token = Array("header.payload".utf8)
        for key in set.keys {
            let fitting = SignatureAlgorithm.allCases.filter(key.publicKey.fits)
            try hold("a key fits an algorithm", !fitting.isEmpty)
            if let algorithm = key.algorithm { try hold("it fits its own", fitting.contains(algorithm)) }
            let again = try JSONWebKeySet(json: ["keys": [jwk(key)]])
            try hold("what is written is read as the same", again.keys == [key])
            for algorithm in SignatureAlgorithm.allCases {
                let found = set.candidates(kid: key.keyID, algorithm: algorithm)
                let isFor = fitting.contains(algorithm) && (key.algorithm ?? algorithm) == algorithm
                try hold("a key is found for its algorithms alone", found.contains(key) == isFor)
                for signature in [[], [UInt8](repeating: 0, count: 64)] {
                    try hold(
                        "nothing is no signature",
                        !key.publicKey.verify(signature: signature, message: token, algorithm: algorithm))
                }
            }
        }
    }

    static func jwk(_ key: JSONWebKeySet.Key) -> JSON {
        var object = jwk(key.publicKey)
        object["kid"] = key.keyID.map { .string($0) }
        object["alg"] = key.algorithm.map { .string($0.rawValue) }
        object["issuer"] = key.issuer.map { .string($0) }
        return .object(object)
    }

    static func jwk(_ key: PublicKey) -> JSONObject {
        func text(_ bytes: [UInt8]) -> JSON { .string(Base64URL.encode(bytes)) }
        let members: JSON =
            switch key.parts {
            case .rsa(let modulus, let exponent): ["kty": "RSA", "n": text(modulus), "e": text(exponent)]
            case .ellipticCurve(let curve, let x, let y):
                ["kty": "EC", "crv": .string(curve.rawValue), "x": text(x), "y": text(y)]
            case .ed25519(let x): ["kty": "OKP", "crv": "Ed25519", "x": text(x)]
            }
        return members.object ?? JSONObject()
    }
}

/// Signed tokens as text: one spelling each, and none is believed without a key.
enum SignedTokenLaw {
    static func check(_ bytes: [UInt8]) throws {
        let secret = Secret(bytes: bytes)
        let nobody = try JSONWebKeySet(json: ["keys": []])
        let somebody = try IDTokenLaw.issuer
        let expected = IDTokenExpectations(
            issuer: "https://id.example.org", clientID: "ringback", now: 1_800_000_000,
            allowedAlgorithms: Set(SignatureAlgorithm.allCases))
        for keys in [nobody, try somebody.keys()] {
            try hold("nobody's token is believed by nobody", !isBelieved(secret, keys, expected))
        }
        guard let token = try? JSONWebSignature(parsing: secret) else {
            try hold("for what is no token no key is missing", !IDToken.isKeyMissing(for: secret, in: nobody))
            return
        }
        try hold("a token has an end", bytes.count <= JSONWebSignature.maxLength)
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        try hold("a token has three parts", parts.count == 3)
        for part in parts {
            try hold(
                "a part has one spelling",
                Base64URL.decode(part).map { Base64URL.encodeToBytes($0) == Array(part) } ?? false)
        }
        let header = try JSON(parsing: Base64URL.decode(parts[0]) ?? [])
        try hold(
            "the algorithm is the header's", header["alg"]?.string.flatMap(SignatureAlgorithm.init) == token.algorithm)
        try hold("the name of the key is the header's", header["kid"]?.string == token.keyID)
        try hold("no extension is passed over", header["crit"] == nil)
        try hold("without keys one is missing", token.isKeyMissing(in: nobody))
        for byte in [UInt8(ascii: "="), 0x0A, UInt8(ascii: ".")] {
            try hold("nothing may follow", (try? JSONWebSignature(parsing: Secret(bytes: bytes + [byte]))) == nil)
        }
    }

    private static func isBelieved(_ token: Secret, _ keys: JSONWebKeySet, _ expected: IDTokenExpectations) -> Bool {
        (try? IDToken.verify(token, keys: keys, expecting: expected)) != nil
    }
}

/// ID tokens with a signature that holds. The first line of an input is the header, the rest are the claims: an issuer
/// of our own signs both, so that every check behind the signature is reached.
enum IDTokenLaw {
    /// Makes tokens that are signed, whatever is in them.
    struct Issuer: Sendable {
        let key: PrivateKey

        func keys() throws -> JSONWebKeySet {
            try JSONWebKeySet(json: ["keys": [.object(KeySetLaw.jwk(key.publicKey))]])
        }

        func token(_ header: [UInt8], _ claims: [UInt8]) throws -> [UInt8] {
            let signed = Base64URL.encodeToBytes(header) + [UInt8(ascii: ".")] + Base64URL.encodeToBytes(claims)
            let signature = try key.sign(message: signed, algorithm: .edDSA)
            return signed + [UInt8(ascii: ".")] + Base64URL.encodeToBytes(signature)
        }
    }

    private static let made = Result { Issuer(key: try PrivateKey.generate(.ed25519)) }
    static var issuer: Issuer {
        get throws { try made.get() }
    }

    private static let now = 1_800_000_000
    private static let name = "https://id.example.org/realms/main"

    static func check(_ bytes: [UInt8]) throws {
        let (line, payload) = bytes.headLineAndRest
        let header = line.isEmpty ? Array(#"{"alg":"EdDSA"}"#.utf8) : Array(line.utf8)
        let token = try issuer.token(header, payload)
        let access = Secret("access")
        let expected = IDTokenExpectations(
            issuer: name, clientID: "ringback", nonce: Secret("n-0S6_WzA2Mj"), now: now, leeway: 120,
            accessToken: access, code: nil, allowedAlgorithms: [.edDSA], maxAge: nil)
        guard let idToken = try? IDToken.verify(Secret(bytes: token), keys: issuer.keys(), expecting: expected) else {
            return
        }
        try checkClaims(idToken, JSON(parsing: payload), access)
        try checkForgeries(of: token, expected)
        let head = try JSON(parsing: header)
        try hold("no extension is passed over", head["crit"] == nil)
        try hold("an access token is no ID token", head["typ"]?.string?.lowercased().hasSuffix("+jwt") != true)
    }

    private static func checkClaims(_ idToken: IDToken, _ claims: JSON, _ access: Secret) throws {
        func bytes(_ claim: String) -> [UInt8]? { claims[claim]?.string.map { Array($0.utf8) } }
        try hold("the issuer is ours", bytes("iss") == Array(name.utf8))
        try hold("the subject is there", bytes("sub") == Array(idToken.subject.utf8))
        try hold("a subject is 1 to 255 bytes", (1...255).contains(idToken.subject.utf8.count))
        let audience = claims["aud"]?.array?.compactMap(\.string) ?? [claims["aud"]?.string].compactMap(\.self)
        try hold("the token is for us", audience.contains { $0.utf8.elementsEqual("ringback".utf8) })
        let isShared = !audience.allSatisfy { $0.utf8.elementsEqual("ringback".utf8) }
        let party = bytes("azp")
        try hold("of several audiences it is ours", !isShared || party == Array("ringback".utf8))
        try hold("it was issued to us", party == nil || party == Array("ringback".utf8))
        try hold("it has not expired", idToken.expiresAt + 120 > now)
        try hold("it was issued before", idToken.issuedAt <= now + 120 && idToken.issuedAt >= 0)
        try hold("it is of this sign-in", bytes("nonce") == Array("n-0S6_WzA2Mj".utf8))
        let half = Base64URL.encode(Digest.sha512(access).prefix(32))
        try hold("it belongs to the access token", (bytes("at_hash") ?? Array(half.utf8)) == Array(half.utf8))
        if let notBefore = claims["nbf"]?.integer { try hold("it is valid already", notBefore <= now + 120) }
    }

    private static func checkForgeries(of token: [UInt8], _ expected: IDTokenExpectations) throws {
        let keys = try issuer.keys()
        for index in stride(from: 0, to: token.count, by: max(1, token.count / 8)) {
            var forged = token
            forged[index] = forged[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let believed = try? IDToken.verify(Secret(bytes: forged), keys: keys, expecting: expected)
            try hold("no change is believed", believed == nil)
        }
        let stranger = try JSONWebKeySet(json: ["keys": []])
        let believed = try? IDToken.verify(Secret(bytes: token), keys: stranger, expecting: expected)
        try hold("without a key it is nobody's", believed == nil)
    }
}

/// Private keys of clients, as PEM or JSON Web Key: what is taken signs, and its own public half says so.
enum ClientKeyLaw {
    static func check(_ bytes: [UInt8]) throws {
        let text = Secret(bytes: bytes)
        guard let key = try? ClientKey(parsing: text) else { return }
        try hold("a key is read alike twice", ClientKey(parsing: text) == key)
        let metadata = try ProviderMetadata(
            issuer: "https://id.example.org", authorizationEndpoint: "https://id.example.org/authorize",
            tokenEndpoint: "https://id.example.org/token")
        let assertion = try ClientAssertion(key: key, metadata: metadata, now: 1_800_000_000)
        guard let token = assertion.text(clientID: "ringback") else { throw LawBroken(law: "a key signs") }
        let signature = try JSONWebSignature(parsing: token)
        let set = try JSONWebKeySet(json: ["keys": [try publicHalf(of: bytes)]])
        let algorithms = Set(SignatureAlgorithm.allCases)
        let claims = try signature.verify(with: set, allowed: algorithms)
        try hold(
            "what is signed is about the client",
            claims["iss"]?.string == "ringback" && claims["sub"]?.string == "ringback")
        try hold("it is for one audience", claims["aud"]?.string == "https://id.example.org")
        for named in ["k1", "another"] {
            if let again = try? ClientKey(parsing: text, keyID: named) {
                let name = try JSONWebSignature(
                    parsing: ClientAssertion(key: again, metadata: metadata, now: 0).text(clientID: "c") ?? Secret(""))
                try hold("a key has one name", name.keyID == named && (signature.keyID ?? named) == named)
            }
        }
    }

    private static func publicHalf(of bytes: [UInt8]) throws -> JSON {
        if let object = (try? JSON(parsing: bytes))?.object {
            let hidden: Set<String> = ["d", "p", "q", "dp", "dq", "qi", "key_ops"]
            return .object(JSONObject(object.members.filter { !hidden.contains($0.name) }))
        }
        return .object(KeySetLaw.jwk(try PrivateKey(pem: Secret(bytes: bytes)).publicKey))
    }
}
