internal import Cryptography
public import RingbackBase

/// The client authentication methods (RFC 6749 section 2.3, OpenID Connect Core section 9) with their names on the
/// wire.
public enum ClientAuthentication: String, Sendable, Equatable, CaseIterable {
    /// A public client, which only sends its id.
    case none = "none"
    /// Id and secret in the `Authorization` field.
    case clientSecretBasic = "client_secret_basic"
    /// Id and secret in the form.
    case clientSecretPost = "client_secret_post"
    /// A short-lived assertion in the form, signed with the client's own key (RFC 7523).
    case privateKeyJWT = "private_key_jwt"
}

/// Our client registration at a provider. The secret is sent only to endpoints that authenticate clients.
public struct ClientRegistration: Sendable, Equatable {
    public let clientID: String
    public let authentication: ClientAuthentication
    /// Used only if ``authentication`` needs a secret.
    public let secret: Secret?
    /// For `private_key_jwt` and `self_issued_jwt`. The key itself is never sent.
    public let assertion: ClientAssertion?

    public init(
        clientID: String, authentication: ClientAuthentication = .none, secret: Secret? = nil,
        assertion: ClientAssertion? = nil
    ) {
        self.clientID = clientID
        self.authentication = authentication
        self.secret = secret
        self.assertion = assertion
    }

    /// False if a secret or a key that ``authentication`` needs is missing.
    public var isComplete: Bool {
        switch authentication {
        case .none: true
        case .clientSecretBasic, .clientSecretPost: !(secret?.isEmpty ?? true)
        case .privateKeyJWT: assertion != nil
        }
    }

    /// Adds the client's identification to a form request, either in the fields or in the form.
    public func authenticate(_ request: inout HTTPRequest) {
        switch authentication {
        case .none:
            // In an assertion grant the client id may be missing (RFC 7521 section 4.1).
            if !clientID.isEmpty { request.appendParameter("client_id", clientID) }
        case .clientSecretPost:
            request.appendParameter("client_id", clientID)
            request.appendParameter("client_secret", secret?.revealed() ?? "")
        case .clientSecretBasic:
            // RFC 6749 section 2.3.1: id and secret are form-encoded first, so that a colon in the id is not taken for
            // the separator. A space is written as %20, which form decoders and percent decoders both accept.
            let id = FormEncoding.escape(clientID)
            let password = FormEncoding.escape(secret?.revealed() ?? "")
            request.authorization = Secret("Basic " + Base64.encode(Array("\(id):\(password)".utf8)))
        case .privateKeyJWT:
            request.appendParameter("client_id", clientID)
            // If signing fails, nothing is added, and the provider rejects the request.
            guard let text = assertion?.text(clientID: clientID) else { return }
            request.appendParameter("client_assertion_type", ClientAssertion.type)
            request.appendParameter("client_assertion", text.revealed())
        }
    }
}

/// The private key for `private_key_jwt` (OpenID Connect Core section 9) and `self_issued_jwt`, from a PEM file or a JSON
/// Web Key; the latter may contain its id (`kid`) and its algorithm (`alg`). If the PEM file also has a certificate, its
/// thumbprint is sent (`x5t#S256`, RFC 7515 section 4.1.8), by which Microsoft finds the key.
public struct ClientKey: Sendable, Equatable {
    private let key: PrivateKey
    private let keyID: String?
    /// The certificate's SHA-256 digest.
    private let thumbprint: [UInt8]?
    /// The algorithm that the key is restricted to, if any.
    private let algorithm: SignatureAlgorithm?

    /// Reads a key. `keyID` is its `kid` at the provider, if the text does not contain it. Throws `.misconfigured` if
    /// the text is not an unencrypted private key of a supported kind (RSA of 2048 bits or more, P-256, P-384, P-521,
    /// Ed25519), or if it contains another `kid`.
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
            throw ClientKey.unusable(error)
        }
    }

    private init(key: PrivateKey, keyID: String?, thumbprint: [UInt8]?, algorithm: SignatureAlgorithm?) {
        self.key = key
        self.keyID = keyID
        self.thumbprint = thumbprint
        self.algorithm = algorithm
    }

    private init(reading object: JSONObject, keyID: String?) throws(OAuthError) {
        // The public part is parsed like a provider's key, and that parser rejects keys with a private part.
        let hidden: Set<String> = ["d", "p", "q", "dp", "dq", "qi", "key_ops"]
        let open = JSONObject(object.members.filter { !hidden.contains($0.name) })
        guard let half = JSONWebKeySet.Key(parsing: open) else {
            throw .misconfigured(reason: "the client's key is not a JSON Web Key for signatures")
        }
        if let keyID, let own = half.keyID, !keyID.isSameBytes(as: own) {
            throw .misconfigured(reason: "the client's key has another kid in its file")
        }
        let names = object["kty"]?.string == "RSA" ? ["d", "p", "q", "dp", "dq", "qi"] : ["d"]
        let numbers = names.compactMap { name in
            object[name]?.string.flatMap { Base64URL.decode($0) }.map { Secret(bytes: $0) }
        }
        guard numbers.count == names.count else {
            throw .misconfigured(reason: "the client's key has no private part, or an incomplete one")
        }
        do throws(CryptographyError) {
            let key = try PrivateKey(half.publicKey, numbers: numbers)
            self.init(key: key, keyID: half.keyID ?? keyID, thumbprint: nil, algorithm: half.algorithm)
        } catch {
            throw ClientKey.unusable(error)
        }
    }

    private static func unusable(_ error: CryptographyError) -> OAuthError {
        guard case .invalidKey(let reason) = error else {
            return .misconfigured(reason: "the client's key cannot be used")
        }
        return .misconfigured(reason: "the client's key: \(reason)")
    }

    public static func == (left: ClientKey, right: ClientKey) -> Bool {
        left.key.publicKey == right.key.publicKey && left.keyID == right.keyID && left.algorithm == right.algorithm
            && left.thumbprint == right.thumbprint
    }

    /// SHA-256 of the first certificate in a PEM text, which is that of the key by convention; nil if there is none.
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

    /// The algorithm to sign with: the key's own, else the first suitable one that the provider supports: RS256 for RSA
    /// keys, since every provider with RSA keys supports it, but PS256 with a certificate: Microsoft requires it but
    /// does not announce it. Throws `.misconfigured` if the provider announces algorithms and the key fits none of
    /// them.
    fileprivate func algorithm(among offered: [String]?) throws(OAuthError) -> SignatureAlgorithm {
        var fitting = algorithm.map { [$0] } ?? SignatureAlgorithm.allCases.filter(key.publicKey.fits)
        if thumbprint != nil, fitting.contains(.ps256) { fitting.insert(.ps256, at: 0) }
        let names = Set((offered ?? []).compactMap(SignatureAlgorithm.init(rawValue:)))
        let chosen = offered == nil ? fitting.first : fitting.first(where: names.contains)
        guard let chosen else { throw .misconfigured(reason: "the provider supports no algorithm of the client's key") }
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

/// Creates a new client assertion for each request to one provider (RFC 7523 section 3).
public struct ClientAssertion: Sendable, Equatable {
    static let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    /// The lifetime of an assertion in seconds.
    static let lifetime = 60
    private let key: ClientKey
    private let algorithm: SignatureAlgorithm
    private let audience: String
    private let now: Int

    /// The audience is the provider's issuer, as a single string. Attack: if it were an endpoint's URL, false metadata
    /// could make us create an assertion for another server. Without an issuer, as with configured endpoints, the token
    /// endpoint is used. `now` in Unix seconds. Throws `.misconfigured` if the provider announces algorithms and the
    /// key fits none of them.
    public init(key: ClientKey, metadata: ProviderMetadata, now: Int) throws(OAuthError) {
        self.key = key
        algorithm = try key.algorithm(among: metadata.tokenEndpointSigningAlgorithms)
        audience = metadata.issuer ?? metadata.tokenEndpoint
        self.now = now
    }

    /// A new assertion; nil only if libcrypto fails. An authorization grant may have another subject and audience, and a
    /// scope.
    func text(
        clientID: String, subject: String? = nil, audience: String? = nil, scope: String? = nil
    ) -> Secret? {
        key.sign(
            [
                "iss": clientID, "sub": subject ?? clientID, "aud": audience ?? self.audience, "scope": scope,
                "jti": RandomToken.identifier(bits: 128), "iat": now, "exp": now + ClientAssertion.lifetime,
            ], algorithm)
    }
}
