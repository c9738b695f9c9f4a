import Cryptography
import RingbackBase

@testable import OAuth

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
