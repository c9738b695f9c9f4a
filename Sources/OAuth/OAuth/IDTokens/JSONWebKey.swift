public import Cryptography
internal import Encodings
public import HTTPMessages
internal import Secrets
public import StrictJSON

/// A provider's published signature keys (RFC 7517 section 5).
///
/// Published key sets may contain keys of other types, curves and uses, and sometimes a malformed one. Such a key is
/// skipped. A token that was signed with it is then rejected because its key is missing.
public struct JSONWebKeySet: Sendable, Equatable {
    /// One usable key.
    public struct Key: Sendable, Equatable {
        /// `kid`, compared byte for byte.
        public let keyID: String?
        /// `alg`: the only algorithm the key may be used with; nil if it is not restricted.
        public let algorithm: SignatureAlgorithm?
        public let publicKey: PublicKey
        /// `issuer`, a member that Microsoft uses in key sets shared by its directories; nil if the key belongs to all
        /// of them.
        public let issuer: String?
    }

    /// The maximum number of keys. It limits the signature checks for a token without `kid`.
    public static let maxKeys = 100
    /// The maximum length of a key set's text in bytes.
    public static let maxLength = 256 * 1024

    /// The usable keys in the order of the set.
    public let keys: [Key]

    /// Reads the response of a `jwks_uri`. Throws ``OAuthError/unavailable(_:status:retryAfter:)`` if the provider asks
    /// to retry later, and ``OAuthError/invalid(_:reason:)`` for everything else that is not a key set.
    public init(parsing response: HTTPResponse) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .keys)
        guard response.status == 200 else {
            throw .invalid(.keys, reason: "no key set at jwks_uri (HTTP \(response.status))")
        }
        guard response.body.count <= JSONWebKeySet.maxLength else {
            throw .invalid(.keys, reason: "longer than 256 KiB")
        }
        let json = JSON.object(try ResponseReader.object(in: response, of: .keys))
        try self.init(json: json)
    }

    /// Reads a key set. Throws ``OAuthError/invalid(_:reason:)`` if there is no list of keys or it is too long.
    /// Unusable keys are skipped.
    public init(json: JSON) throws(OAuthError) {
        guard let entries = json["keys"]?.array else { throw .invalid(.keys, reason: "there is no list of keys") }
        guard entries.count <= JSONWebKeySet.maxKeys else { throw .invalid(.keys, reason: "more than 100 keys") }
        keys = entries.compactMap { entry in entry.object.flatMap(Key.init(parsing:)) }
    }

    /// A set without keys.
    public static let empty = JSONWebKeySet(keys: [])

    private init(keys: [Key]) { self.keys = keys }

    /// The keys that may verify a signature with this `kid` and algorithm. If the result is empty, the key is not in
    /// the set and the caller should fetch the set again.
    ///
    /// With a `kid` only keys of that id are tried. There is one exception: providers with a single key often omit its
    /// `kid` in the set although their tokens have one. A key without `kid` is used if it is the only one that fits the
    /// algorithm, because then an attacker cannot influence the choice. If several keys fit and none has the id, the
    /// key is newer than the set. A token without `kid` is tried with every key that fits (RFC 7515 section 6): all of
    /// them belong to the issuer.
    public func candidates(kid: String?, algorithm: SignatureAlgorithm) -> [Key] {
        let fitting = keys.filter { $0.publicKey.fits(algorithm) && ($0.algorithm ?? algorithm) == algorithm }
        guard let kid else { return fitting }
        let named = fitting.filter { key in key.keyID.map { $0.isSameBytes(as: kid) } ?? false }
        if named.isEmpty, fitting.count == 1, fitting[0].keyID == nil { return fitting }
        return named
    }
}

extension JSONWebKeySet.Key {
    /// Reads one member of a key set; nil if it is not a public key for signatures that we support.
    init?(parsing object: JSONObject) {
        // Some libraries write null or an empty text for members without a value.
        func member(_ name: String) -> JSON? { [.null, ""].contains(object[name]) ? nil : object[name] }
        // Some write padding, or standard base64.
        func bytes(_ name: String) -> [UInt8]? {
            object[name]?.string.flatMap { text in
                Base64URL.decode(String(text.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }.prefix { $0 != "=" }))
            }
        }
        // And some numbers of a fixed length without their leading zeros, or with one more for the sign.
        func coordinate(_ name: String, _ curve: EllipticCurve) -> [UInt8]? {
            guard let digits = bytes(name)?.drop(while: { $0 == 0 }) else { return nil }
            return Array(repeating: 0, count: max(curve.coordinateLength - digits.count, 0)) + digits
        }

        // If the private part was published, anyone can sign with the key, so its signatures prove nothing.
        guard object["d"] == nil, object["k"] == nil else { return nil }
        if let use = member("use"), use.string != "sig" { return nil }
        if let operations = member("key_ops") {
            guard let operations = operations.array, operations.contains("verify") else { return nil }
        }
        let publicKey: PublicKey?
        switch (object["kty"]?.string, object["crv"]?.string) {
        case ("RSA", _):
            guard let modulus = bytes("n"), let exponent = bytes("e") else { return nil }
            publicKey = try? PublicKey(rsaModulus: modulus, exponent: exponent)
        case ("EC", let name?):
            guard let curve = EllipticCurve(rawValue: name), let x = coordinate("x", curve),
                let y = coordinate("y", curve)
            else { return nil }
            publicKey = try? PublicKey(curve: curve, x: x, y: y)
        case ("OKP", "Ed25519"):
            guard let x = bytes("x") else { return nil }
            publicKey = try? PublicKey(ed25519: x)
        default: return nil
        }
        guard let publicKey else { return nil }
        var algorithm: SignatureAlgorithm?
        if let name = member("alg") {
            // A key for another algorithm (encryption, or an unknown one) must not be used with ours.
            guard let known = name.string.flatMap(SignatureAlgorithm.init(rawValue:)), publicKey.fits(known) else {
                return nil
            }
            algorithm = known
        }
        var keyID: String?
        if let kid = member("kid") {
            guard let text = kid.string else { return nil }
            keyID = text
        }
        self.init(
            keyID: keyID, algorithm: algorithm, publicKey: publicKey, issuer: object["issuer"]?.string)
    }
}

extension String {
    /// Compares bytes. Swift's `==` treats two Unicode spellings of a letter as equal, but identifiers must be compared
    /// exactly (RFC 8725 section 3.8, RFC 7519 section 2).
    func isSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
