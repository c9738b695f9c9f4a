import Cryptography
import RingbackBase

/// Signs ID tokens with a real key.
struct TokenMint: Sendable {
    let key: PrivateKey
    let kid: String

    init(kid: String = "k1") throws {
        key = try PrivateKey.generate(.p256)
        self.kid = kid
    }

    func token(_ claims: JSON) throws -> String {
        let header: JSON = ["alg": "ES256", "kid": .string(kid), "typ": "JWT"]
        let signed = "\(Base64URL.encode(header.serialized())).\(Base64URL.encode(claims.serialized()))"
        let signature = try key.sign(message: Array(signed.utf8), algorithm: .es256)
        return "\(signed).\(Base64URL.encode(signature))"
    }

    var jwk: JSON {
        guard case .ellipticCurve(let curve, let x, let y) = key.publicKey.parts else { return .null }
        return [
            "kty": "EC", "crv": .string(curve.rawValue), "x": .string(Base64URL.encode(x)),
            "y": .string(Base64URL.encode(y)), "use": "sig", "kid": .string(kid),
        ]
    }
}

extension JSON {
    /// The object with one member set, or removed by nil.
    func setting(_ name: String, _ value: JSON?) -> JSON {
        var object = self.object ?? JSONObject()
        object[name] = value
        return .object(object)
    }
}
