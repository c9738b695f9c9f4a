public import Cryptography
public import HTTPMessages
internal import Secrets
public import StrictJSON

/// A provider's published signature keys (RFC 7517 section 5).
///
/// Key sets in the wild hold keys of types, curves and uses that are not ours, and now and then a broken one. Such a
/// key is left out and the set stands: a token signed with it then has no key, which is an error of its own.
public struct JSONWebKeySet: Sendable {
    /// One usable key.
    public struct Key: Sendable, Equatable {
        /// `kid`, compared byte for byte.
        public let keyID: String?
        /// `alg`: the only algorithm the key may be used with; nil for any that fits its type.
        public let algorithm: SignatureAlgorithm?
        public let publicKey: PublicKey
        /// `issuer`, Microsoft's member in a set that its directories share: whose key it is; nil for everybody's.
        public let issuer: String?
    }

    /// More keys than any provider publishes: a token without `kid` may cost as many signature checks.
    public static let maxKeys = 100
    /// Bytes of a key set's text.
    public static let maxLength = 256 * 1024

    /// The usable keys, in the provider's order.
    public let keys: [Key]

    /// Reads the answer of a `jwks_uri`. Throws ``OAuthError/unavailable(_:status:retryAfter:)`` for a status that asks
    /// to come back, ``OAuthError/invalid(_:reason:)`` for anything else that is not a key set.
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

    /// Reads a key set. Throws ``OAuthError/invalid(_:reason:)`` if there is no list of keys or too long a one; see the
    /// type for what happens to single keys.
    public init(json: JSON) throws(OAuthError) {
        guard let entries = json["keys"]?.array else { throw .invalid(.keys, reason: "there is no list of keys") }
        guard entries.count <= JSONWebKeySet.maxKeys else { throw .invalid(.keys, reason: "more than 100 keys") }
        keys = entries.compactMap { entry in entry.object.flatMap(Key.init(parsing:)) }
    }

    /// A set without keys.
    public static let empty = JSONWebKeySet(keys: [])

    private init(keys: [Key]) { self.keys = keys }

    /// The keys that may have made a signature with this `kid` and algorithm; empty if the key is not in the set, and
    /// the caller should fetch the set again.
    ///
    /// A `kid` names a key, and then only keys of that name are tried. Providers with a single key often give it no
    /// `kid` in the set though their tokens carry one: such a nameless key serves if it is the only one that fits,
    /// since then there is no choice that an attacker could steer. Among several fitting keys a name that none of them
    /// has means a key that we have not seen yet. A token without `kid` is tried with every key that fits (RFC 7515
    /// section 6): all of them are the issuer's, so whichever verifies, the issuer signed.
    public func candidates(kid: String?, algorithm: SignatureAlgorithm) -> [Key] {
        let fitting = keys.filter { $0.publicKey.fits(algorithm) && ($0.algorithm ?? algorithm) == algorithm }
        guard let kid else { return fitting }
        let named = fitting.filter { key in key.keyID.map { $0.isSameBytes(as: kid) } ?? false }
        if named.isEmpty, fitting.count == 1, fitting[0].keyID == nil { return fitting }
        return named
    }
}

extension JSONWebKeySet.Key {
    /// Reads one member of a key set; nil if it is not a public key that verifies signatures of ours.
    init?(parsing object: JSONObject) {
        // Some libraries write members without a value as null.
        func member(_ name: String) -> JSON? { object[name] == .null ? nil : object[name] }
        func bytes(_ name: String) -> [UInt8]? { object[name]?.string.flatMap { Base64URL.decode($0) } }

        // A private half that was published lets everybody sign: such a key proves nothing.
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
            guard let curve = EllipticCurve(rawValue: name), let x = bytes("x"), let y = bytes("y") else { return nil }
            publicKey = try? PublicKey(curve: curve, x: x, y: y)
        case ("OKP", "Ed25519"):
            guard let x = bytes("x") else { return nil }
            publicKey = try? PublicKey(ed25519: x)
        default: return nil
        }
        guard let publicKey else { return nil }
        var algorithm: SignatureAlgorithm?
        if let name = member("alg") {
            // A key for another algorithm (encryption, or one we do not know) is for that algorithm only.
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
    /// Compares bytes. `==` holds two spellings of an accented letter for one, and identifiers of other systems must
    /// not be equal in our eyes only (RFC 8725 section 3.8, RFC 7519 section 2).
    func isSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
