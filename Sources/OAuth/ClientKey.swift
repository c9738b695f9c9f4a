internal import Cryptography
public import Secrets
internal import StrictJSON

/// The private key that a client proves itself with, in place of a secret that both sides know (OpenID Connect Core
/// section 9, `private_key_jwt`). It is read from a PEM file, or from a JSON Web Key, which also names itself (`kid`)
/// and its algorithm (`alg`).
public struct ClientKey: Sendable, Equatable {
    private let key: PrivateKey
    private let keyID: String?
    /// The only one that the key may be used with, if it says so.
    private let algorithm: SignatureAlgorithm?

    /// Throws `.misconfigured` for what is no private key of ours: RSA of 2048 bits or more, P-256, P-384, P-521,
    /// Ed25519; unencrypted.
    public init(parsing text: Secret) throws(OAuthError) {
        let isJSON = text.revealedBytes().first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: "{")
        if isJSON {
            guard let object = try? JSON(parsing: text.revealedBytes(), maxDepth: 8, maxValues: 200).object else {
                throw .misconfigured(reason: "the client's key is not a JSON object, or has a member twice")
            }
            try self.init(reading: object)
            return
        }
        do throws(CryptographyError) {
            self.init(key: try PrivateKey(pem: text), keyID: nil, algorithm: nil)
        } catch {
            throw ClientKey.refusal(error)
        }
    }

    private init(key: PrivateKey, keyID: String?, algorithm: SignatureAlgorithm?) {
        self.key = key
        self.keyID = keyID
        self.algorithm = algorithm
    }

    private init(reading object: JSONObject) throws(OAuthError) {
        // The public half is read by the rules for everybody's keys, which refuse one that shows its private half.
        let hidden: Set<String> = ["d", "p", "q", "dp", "dq", "qi", "key_ops"]
        let open = JSONObject(object.members.filter { !hidden.contains($0.name) })
        guard let half = JSONWebKeySet.Key(parsing: open) else {
            throw .misconfigured(reason: "the client's key is not a JSON Web Key that signs")
        }
        let names = object["kty"]?.string == "RSA" ? ["d", "p", "q", "dp", "dq", "qi"] : ["d"]
        let numbers = names.compactMap { name in
            object[name]?.string.flatMap { Base64URL.decode($0) }.map { Secret(bytes: $0) }
        }
        guard numbers.count == names.count else {
            throw .misconfigured(reason: "the client's key has no private half, or not all of it")
        }
        do throws(CryptographyError) {
            let key = try PrivateKey(half.publicKey, numbers: numbers)
            self.init(key: key, keyID: half.keyID, algorithm: half.algorithm)
        } catch {
            throw ClientKey.refusal(error)
        }
    }

    private static func refusal(_ error: CryptographyError) -> OAuthError {
        guard case .invalidKey(let reason) = error else { return .misconfigured(reason: "the client's key fails") }
        return .misconfigured(reason: "the client's key: \(reason)")
    }

    public static func == (left: ClientKey, right: ClientKey) -> Bool {
        left.key.publicKey == right.key.publicKey && left.keyID == right.keyID && left.algorithm == right.algorithm
    }

    /// The algorithm to sign with: the key's own; else, of those that fit it, the first that the provider offers. RS256
    /// comes before the rest for RSA keys, since it is what every provider with such keys knows.
    ///
    /// Throws `.misconfigured` if the provider names algorithms and none of them is the key's.
    fileprivate func algorithm(among offered: [String]?) throws(OAuthError) -> SignatureAlgorithm {
        let fitting = algorithm.map { [$0] } ?? SignatureAlgorithm.allCases.filter(key.publicKey.fits)
        let names = Set((offered ?? []).compactMap(SignatureAlgorithm.init(rawValue:)))
        // A provider that says nothing takes what its registration says.
        let chosen = offered == nil ? fitting.first : fitting.first(where: names.contains)
        guard let chosen else {
            throw .misconfigured(reason: "the provider takes no signature that the client's key can make")
        }
        return chosen
    }

    fileprivate func sign(_ claims: JSONObject, _ algorithm: SignatureAlgorithm) -> Secret? {
        var header = JSONObject([.init("alg", .string(algorithm.rawValue)), .init("typ", "JWT")])
        if let keyID { header["kid"] = .string(keyID) }
        let parts = [header, claims].map { Base64URL.encode(JSON.object($0).text.utf8) }
        let signed = parts.joined(separator: ".")
        guard let signature = try? key.sign(message: Array(signed.utf8), algorithm: algorithm) else { return nil }
        return Secret("\(signed).\(Base64URL.encode(signature))")
    }
}

/// How a client's key is used at one provider: each request gets an assertion of its own (RFC 7523 section 3).
public struct ClientAssertion: Sendable, Equatable {
    static let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    /// Seconds that an assertion counts.
    static let lifetime = 60

    private let key: ClientKey
    private let algorithm: SignatureAlgorithm
    private let audience: String
    private let now: Int

    /// - Parameters:
    ///   - key: the client's.
    ///   - metadata: the provider's. The audience is its issuer, as the single string: an assertion for one endpoint's
    ///     URL could be led elsewhere by metadata that lie about it. A provider whose endpoints are set by hand, without
    ///     an issuer, is named by its token endpoint.
    ///   - now: Unix seconds.
    public init(key: ClientKey, metadata: ProviderMetadata, now: Int) throws(OAuthError) {
        self.key = key
        algorithm = try key.algorithm(among: metadata.tokenEndpointSigningAlgorithms)
        audience = metadata.issuer ?? metadata.tokenEndpoint
        self.now = now
    }

    /// A new assertion about the client; nil only if libcrypto cannot sign.
    func text(clientID: String) -> Secret? {
        key.sign(
            JSONObject([
                .init("iss", .string(clientID)), .init("sub", .string(clientID)), .init("aud", .string(audience)),
                .init("jti", .string(RandomToken.identifier(bits: 128))), .init("iat", .integer(now)),
                .init("exp", .integer(now + ClientAssertion.lifetime)),
            ]), algorithm)
    }
}
