internal import Cryptography
public import Secrets
internal import StrictJSON

/// The private key that a client proves itself with, in place of a secret that both sides know (OpenID Connect Core
/// section 9, `private_key_jwt`). It is read from a PEM file, or from a JSON Web Key, which also names itself (`kid`)
/// and its algorithm (`alg`). A certificate beside a PEM key names it too, by its thumbprint (RFC 7515 section 4.1.8):
/// Microsoft finds the key by that.
public struct ClientKey: Sendable, Equatable {
    private let key: PrivateKey
    private let keyID: String?
    /// SHA-256 of the certificate.
    private let thumbprint: [UInt8]?
    /// The only one that the key may be used with, if it says so.
    private let algorithm: SignatureAlgorithm?

    /// `keyID` is what the provider calls the key (`kid`), where the text does not say it.
    ///
    /// Throws `.misconfigured` for what is no private key of ours: RSA of 2048 bits or more, P-256, P-384, P-521,
    /// Ed25519; unencrypted. Also for a text that names the key otherwise.
    public init(parsing text: Secret, keyID: String? = nil) throws(OAuthError) {
        let isJSON = text.revealedBytes().first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: "{")
        if isJSON {
            guard let object = try? JSON(parsing: text.revealedBytes(), maxDepth: 8, maxValues: 200).object else {
                throw .misconfigured(reason: "the client's key is not a JSON object, or has a member twice")
            }
            try self.init(reading: object, keyID: keyID)
            return
        }
        do throws(CryptographyError) {
            self.init(
                key: try PrivateKey(pem: text), keyID: keyID, thumbprint: ClientKey.thumbprint(in: text), algorithm: nil
            )
        } catch {
            throw ClientKey.refusal(error)
        }
    }

    private init(key: PrivateKey, keyID: String?, thumbprint: [UInt8]?, algorithm: SignatureAlgorithm?) {
        self.key = key
        self.keyID = keyID
        self.thumbprint = thumbprint
        self.algorithm = algorithm
    }

    private init(reading object: JSONObject, keyID: String?) throws(OAuthError) {
        // The public half is read by the rules for everybody's keys, which refuse one that shows its private half.
        let hidden: Set<String> = ["d", "p", "q", "dp", "dq", "qi", "key_ops"]
        let open = JSONObject(object.members.filter { !hidden.contains($0.name) })
        guard let half = JSONWebKeySet.Key(parsing: open) else {
            throw .misconfigured(reason: "the client's key is not a JSON Web Key that signs")
        }
        if let keyID, let own = half.keyID, !keyID.isSameBytes(as: own) {
            throw .misconfigured(reason: "the client's key is named otherwise in its own file (kid)")
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
            self.init(key: key, keyID: half.keyID ?? keyID, thumbprint: nil, algorithm: half.algorithm)
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
            && left.thumbprint == right.thumbprint
    }

    /// SHA-256 of the first certificate in a PEM text, which is the key's own by custom; nil without one.
    private static func thumbprint(in text: Secret) -> [UInt8]? {
        var body: [UInt8]?
        for line in text.revealedBytes().split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            if line.elementsEqual("-----BEGIN CERTIFICATE-----".utf8) {
                body = []
            } else if let certificate = body, line.elementsEqual("-----END CERTIFICATE-----".utf8) {
                return Base64.decode(certificate[...]).map { Digest.sha256($0) }
            } else {
                body?.append(contentsOf: line)
            }
        }
        return nil
    }

    /// The algorithm to sign with: the key's own; else, of those that fit it, the first that the provider offers. RS256
    /// comes before the rest for RSA keys, since it is what every provider with such keys knows; with a certificate
    /// PS256 does, which is what Microsoft asks for and does not say.
    ///
    /// Throws `.misconfigured` if the provider names algorithms and none of them is the key's.
    fileprivate func algorithm(among offered: [String]?) throws(OAuthError) -> SignatureAlgorithm {
        var fitting = algorithm.map { [$0] } ?? SignatureAlgorithm.allCases.filter(key.publicKey.fits)
        if thumbprint != nil, fitting.contains(.ps256) { fitting.insert(.ps256, at: 0) }
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
        if let thumbprint { header["x5t#S256"] = .string(Base64URL.encode(thumbprint)) }
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
