import OAuth
import RingbackBase

@testable import Cryptography

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
