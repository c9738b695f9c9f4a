public import Cryptography
public import RingbackBase

/// A signed token in compact serialization (RFC 7515 section 7.1), parsed but not verified. The header is controlled by
/// the sender, so it decides nothing: the algorithm must be one that the caller allows, and the key one of the
/// issuer's. Keys and key URLs in the header (`jwk`, `jku`, `x5u`, `x5c`) are ignored.
public struct JSONWebSignature: Sendable {
    public struct Failure: Error, Sendable, Equatable {
        /// The header's member, or `token`, `header`, `payload`, `signature`.
        public let part: String
        public let reason: String
    }

    /// The maximum length of a token in bytes. Tokens with many groups have about ten thousand.
    public static let maxLength = 64 * 1024
    public let algorithm: SignatureAlgorithm
    public let keyID: String?
    /// `typ`, lower-cased and without `application/`, see RFC 7515 section 4.1.9.
    public let type: String?
    private let payload: [UInt8]
    private let signature: [UInt8]
    private let signed: [UInt8]

    /// Parses a token. Throws ``Failure`` for everything that is not canonical: padding, white space, duplicate
    /// members.
    public init(parsing token: Secret) throws(Failure) {
        guard token.count <= JSONWebSignature.maxLength else { throw Failure("token", "longer than 64 KiB") }
        let text = token.revealedBytes()
        let dot = UInt8(ascii: ".")
        // Splitting the whole text first would create a part for each dot of an attacker's text (CVE-2025-22868).
        guard let first = text.firstIndex(of: dot), let last = text.lastIndex(of: dot), first < last,
            !text[(first + 1)..<last].contains(dot)
        else { throw Failure("token", "not three parts") }
        guard let header = Base64URL.decode(text[..<first]), let payload = Base64URL.decode(text[(first + 1)..<last]),
            let signature = Base64URL.decode(text[(last + 1)...])
        else { throw Failure("token", "not base64url") }
        self.payload = payload
        self.signature = signature
        self.signed = Array(text[..<last])
        (algorithm, keyID, type) = try JSONWebSignature.readHeader(header)
    }

    private static func readHeader(
        _ bytes: [UInt8]
    ) throws(Failure) -> (algorithm: SignatureAlgorithm, keyID: String?, type: String?) {
        guard let header = try? JSON(parsing: bytes, maxDepth: 8, maxValues: 200).object else {
            throw Failure("header", "not a JSON object, or a member twice")
        }
        // `crit` names extensions that must be understood; we support none (RFC 7515 section 4.1.11).
        guard header["crit"] == nil else { throw Failure("crit", "an unknown extension") }
        guard let name = header["alg"]?.string else { throw Failure("alg", "missing") }
        guard let algorithm = SignatureAlgorithm(rawValue: name) else {
            throw Failure("alg", "not a known public-key signature algorithm")
        }
        func text(_ name: String) throws(Failure) -> String? {
            guard let value = header[name], value != .null else { return nil }
            guard let text = value.string else { throw Failure(name, "not a string") }
            return text
        }
        let keyID = try text("kid")
        let type = try text("typ")?.lowercased()
        return (algorithm, keyID, type.map { $0.hasPrefix("application/") ? String($0.dropFirst(12)) : $0 })
    }

    /// The payload, if one of the keys has signed the token with an allowed algorithm. Throws ``Failure``.
    public func verify(with keys: JSONWebKeySet, allowed: Set<SignatureAlgorithm>) throws(Failure) -> JSONObject {
        try verified(with: keys, allowed: allowed).payload
    }

    /// A verified payload, and the key that signed it. The payload is parsed only after the check of the signature.
    func verified(
        with keys: JSONWebKeySet, allowed: Set<SignatureAlgorithm>
    ) throws(Failure) -> (payload: JSONObject, key: JSONWebKeySet.Key) {
        guard allowed.contains(algorithm) else { throw Failure("alg", "not an algorithm of the provider's metadata") }
        let candidates = keys.candidates(kid: keyID, algorithm: algorithm)
        guard !candidates.isEmpty else { throw Failure("kid", "the provider publishes no such key") }
        guard let key = candidates.first(where: isSigned) else {
            throw Failure("signature", "not made by the provider's key")
        }
        guard let payload = try? JSON(parsing: payload).object else {
            throw Failure("payload", "not a JSON object, or a member twice")
        }
        return (payload, key)
    }

    /// True if a key that is not in the set may have made the signature, so that fetching the set again may help: no
    /// key has the token's `kid`, or the token has no `kid` and no key verifies it.
    public func isKeyMissing(in keys: JSONWebKeySet) -> Bool {
        let candidates = keys.candidates(kid: keyID, algorithm: algorithm)
        let isNamed = keyID != nil && candidates.contains { $0.keyID != nil }
        return !isNamed && !candidates.contains(where: isSigned)
    }

    private func isSigned(by key: JSONWebKeySet.Key) -> Bool {
        key.publicKey.verify(signature: signature, message: signed, algorithm: algorithm)
    }
}

extension JSONWebSignature.Failure {
    init(_ part: String, _ reason: String) {
        self.init(part: part, reason: reason)
    }
}

/// A provider's published signature keys (RFC 7517 section 5). Keys of other types, curves and uses, and malformed
/// ones, are skipped: a token that was signed with such a key is rejected because its key is missing.
public struct JSONWebKeySet: Sendable, Equatable {
    public struct Key: Sendable, Equatable {
        /// `kid`, compared byte for byte.
        public let keyID: String?
        /// `alg`: the only algorithm the key may be used with; nil if it is not restricted.
        public let algorithm: SignatureAlgorithm?
        public let publicKey: PublicKey
        /// A member in key sets that Microsoft's directories share; nil if the key belongs to all of them.
        public let issuer: String?
    }

    /// The maximum number of keys. It limits the signature checks for a token without `kid`.
    public static let maxKeys = 100
    /// The maximum length of a key set's text in bytes.
    public static let maxLength = 256 * 1024
    /// The usable keys in the order of the set.
    public let keys: [Key]

    /// Reads the response of a `jwks_uri`. Throws ``OAuthError/unavailable(_:status:retryAfter:)`` for "later", and
    /// ``OAuthError/invalid(_:reason:)`` for everything else that is not a key set.
    public init(parsing response: HTTPResponse) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .keys)
        guard response.status == 200 else {
            throw .invalid(.keys, reason: "no key set at jwks_uri (HTTP \(response.status))")
        }
        guard response.body.count <= JSONWebKeySet.maxLength else {
            throw .invalid(.keys, reason: "longer than 256 KiB")
        }
        try self.init(json: .object(ResponseReader.object(in: response, of: .keys)))
    }

    /// Reads a key set. Throws ``OAuthError/invalid(_:reason:)`` if there is no list of keys or it is too long.
    public init(json: JSON) throws(OAuthError) {
        guard let entries = json["keys"]?.array else { throw .invalid(.keys, reason: "there is no list of keys") }
        guard entries.count <= JSONWebKeySet.maxKeys else { throw .invalid(.keys, reason: "more than 100 keys") }
        keys = entries.compactMap { entry in entry.object.flatMap(Key.init(parsing:)) }
    }

    public static let empty = JSONWebKeySet(keys: [])

    private init(keys: [Key]) { self.keys = keys }

    /// The keys that may verify a signature with this `kid` and algorithm; none if the key is not in the set, which
    /// should then be fetched again. A token without `kid` is tried with every key that fits (RFC 7515 section 6).
    ///
    /// With a `kid` only keys of that id are tried, except that providers with a single key often omit its `kid` in the
    /// set. A key without `kid` is used if it is the only one that fits the algorithm, because then an attacker cannot
    /// influence the choice. If several keys fit and none has the id, the key is newer than the set.
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
        self.init(keyID: keyID, algorithm: algorithm, publicKey: publicKey, issuer: object["issuer"]?.string)
    }
}

extension String {
    /// Compares bytes. Swift's `==` treats two Unicode spellings of a letter as equal, but identifiers must be compared
    /// exactly (RFC 8725 section 3.8, RFC 7519 section 2).
    func isSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
