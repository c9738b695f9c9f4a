import Cryptography
import OAuth
import RingbackBase

/// A small honest issuer: real keys, real signatures, and whatever header and claims a test asks for.
struct TokenMint: Sendable {
    let key: PrivateKey
    let algorithm: SignatureAlgorithm
    let kid: String?

    /// RSA keys take long to make: one is shared.
    private static let rsa = Result { try PrivateKey.generate(.rsa2048) }

    init(_ algorithm: SignatureAlgorithm, kid: String? = "k1") throws {
        self.algorithm = algorithm
        self.kid = kid
        key =
            switch algorithm {
            case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512: try TokenMint.rsa.get()
            case .es256: try PrivateKey.generate(.p256)
            case .es384: try PrivateKey.generate(.p384)
            case .es512: try PrivateKey.generate(.p521)
            case .edDSA: try PrivateKey.generate(.ed25519)
            }
    }

    var header: JSON {
        var header: JSON = ["alg": .string(algorithm.rawValue), "typ": "JWT"]
        if let kid { header = header.setting("kid", .string(kid)) }
        return header
    }

    func token(_ claims: JSON, header: JSON? = nil) throws -> Secret {
        try token(headerText: (header ?? self.header).serialized(), payload: claims.serialized())
    }

    func token(headerText: [UInt8], payload: [UInt8]) throws -> Secret {
        let signed = "\(Base64URL.encode(headerText)).\(Base64URL.encode(payload))"
        let signature = try key.sign(message: Array(signed.utf8), algorithm: algorithm)
        return Secret("\(signed).\(Base64URL.encode(signature))")
    }

    /// The public key as a JSON Web Key with these members changed.
    func jwk(_ changes: [String: JSON?] = [:]) -> JSON {
        var jwk = TokenMint.jwk(key.publicKey).setting("use", "sig")
        if let kid { jwk = jwk.setting("kid", .string(kid)) }
        for (name, value) in changes { jwk = jwk.setting(name, value) }
        return jwk
    }

    func keys() throws -> JSONWebKeySet { try JSONWebKeySet(json: ["keys": [jwk()]]) }

    static func jwk(_ key: PublicKey) -> JSON {
        func text(_ bytes: [UInt8]) -> JSON { .string(Base64URL.encode(bytes)) }
        switch key.parts {
        case .rsa(let modulus, let exponent): return ["kty": "RSA", "n": text(modulus), "e": text(exponent)]
        case .ellipticCurve(let curve, let x, let y):
            return ["kty": "EC", "crv": .string(curve.rawValue), "x": text(x), "y": text(y)]
        case .ed25519(let x): return ["kty": "OKP", "crv": "Ed25519", "x": text(x)]
        }
    }
}

extension JSON {
    func setting(_ name: String, _ value: JSON?) -> JSON {
        var object = self.object ?? JSONObject()
        object[name] = value
        return .object(object)
    }
}
