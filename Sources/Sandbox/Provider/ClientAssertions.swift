internal import Cryptography
internal import Secrets
internal import StrictJSON

/// Clients that authenticate with a signed JWT (RFC 7523 section 3, OpenID Connect Core section 9). The audience must
/// be the issuer, as a single string, and each JWT is accepted once.
extension ProviderState {
    private static let assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    /// The longest lifetime of such a JWT, and how far clocks may differ; in seconds.
    private static let longestAssertion = 300
    private static let clockLeeway = 30

    mutating func authenticate(
        byAssertion text: String, _ parameters: Parameters, at now: Int
    ) throws(ErrorResponse) -> SandboxClient {
        func refusal(_ reason: String) -> ErrorResponse { ErrorResponse("invalid_client", reason, status: 401) }
        guard parameters["client_assertion_type"] == ProviderState.assertionType else {
            throw refusal("client_assertion_type is not that of a JWT")
        }
        guard parameters["client_secret"] == nil else {
            throw ErrorResponse("invalid_request", "the client authenticates in two ways")
        }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = ProviderState.object(parts[0]),
            let claims = ProviderState.object(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { throw refusal("the assertion is not a JWT") }
        guard let id = claims["sub"]?.string, claims["iss"]?.string == id, let client = client(id),
            client.authentications.contains(.privateKey)
        else { throw refusal("the assertion is not about a client that uses such") }
        guard parameters["client_id"] ?? id == id else { throw refusal("client_id is another client's") }
        guard claims["aud"]?.string == issuer else {
            throw refusal("the audience is not the issuer as a single string")
        }
        guard let end = claims["exp"]?.integer, end > now - ProviderState.clockLeeway,
            end <= now + ProviderState.longestAssertion
        else { throw refusal("the assertion has expired, or counts too long") }
        if let issued = claims["iat"]?.integer, issued > now + ProviderState.clockLeeway {
            throw refusal("the assertion is from the future")
        }
        guard let algorithm = header["alg"]?.string.flatMap(SignatureAlgorithm.init(rawValue:)),
            client.keys.contains(where: {
                $0.verify(signature: signature, message: Array("\(parts[0]).\(parts[1])".utf8), algorithm: algorithm)
            })
        else { throw refusal("the assertion's signature is not the client's") }
        // Only an assertion that the client has signed uses a `jti` up.
        guard let name = claims["jti"]?.string, !name.isEmpty else { throw refusal("the assertion has no jti") }
        usedAssertions = usedAssertions.filter { $0.value > now - ProviderState.clockLeeway }
        guard usedAssertions.updateValue(end, forKey: "\(id) \(name)") == nil else {
            throw refusal("the assertion was used before")
        }
        return client
    }

    private static func object(_ part: Substring) -> JSONObject? {
        guard let bytes = Base64URL.decode(part) else { return nil }
        return try? JSON(parsing: bytes).object
    }
}

extension SandboxClient {
    /// The public keys in a set of JSON Web Keys (RFC 7517 section 5); nil if one cannot be read, or contains its
    /// private part.
    static func keys(in set: JSON) -> [PublicKey]? {
        guard let entries = set["keys"]?.array else { return nil }
        let keys = entries.compactMap { $0["d"] == nil ? key(in: $0) : nil }
        return keys.count == entries.count ? keys : nil
    }

    private static func key(in json: JSON) -> PublicKey? {
        func bytes(_ name: String) -> [UInt8] { json[name]?.string.flatMap { Base64URL.decode($0) } ?? [] }
        switch json["kty"]?.string {
        case "RSA": return try? PublicKey(rsaModulus: bytes("n"), exponent: bytes("e"))
        case "EC":
            guard let curve = json["crv"]?.string.flatMap(EllipticCurve.init(rawValue:)) else { return nil }
            return try? PublicKey(curve: curve, x: bytes("x"), y: bytes("y"))
        case "OKP": return try? PublicKey(ed25519: bytes("x"))
        default: return nil
        }
    }
}
