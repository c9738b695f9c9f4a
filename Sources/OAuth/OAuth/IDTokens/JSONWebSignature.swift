public import Cryptography
internal import Encodings
public import Secrets
public import StrictJSON

/// A signed token in compact serialization (RFC 7515 section 7.1), parsed but not verified. Only
/// ``verify(with:allowed:)`` returns the payload.
///
/// The header is controlled by the sender, so it decides nothing: the algorithm must be one that the caller allows, and
/// the key one of the issuer's. Keys and key URLs in the header (`jwk`, `jku`, `x5u`, `x5c`) are ignored.
public struct JSONWebSignature: Sendable {
    /// Why a token is not accepted.
    public struct Failure: Error, Sendable, Equatable {
        /// The header's member, or `token`, `header`, `payload`, `signature`.
        public let part: String
        /// The reason, in our own words.
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
        var keyID: String?
        if let kid = header["kid"], kid != .null {
            guard let text = kid.string else { throw Failure("kid", "not a string") }
            keyID = text
        }
        var type: String?
        if let typ = header["typ"], typ != .null {
            guard let text = typ.string?.lowercased() else { throw Failure("typ", "not a string") }
            type = text.hasPrefix("application/") ? String(text.dropFirst("application/".count)) : text
        }
        return (algorithm, keyID, type)
    }

    /// The payload, if one of the keys has signed the token with an allowed algorithm. It is parsed only then. Throws
    /// ``Failure``.
    public func verify(
        with keys: JSONWebKeySet, allowed: Set<SignatureAlgorithm>
    ) throws(Failure) -> JSONObject {
        try verified(with: keys, allowed: allowed).payload
    }

    /// A verified payload, and the key that signed it.
    struct Verified {
        let payload: JSONObject
        let key: JSONWebKeySet.Key
    }

    /// See ``verify(with:allowed:)``.
    func verified(with keys: JSONWebKeySet, allowed: Set<SignatureAlgorithm>) throws(Failure) -> Verified {
        guard allowed.contains(algorithm) else { throw Failure("alg", "not an algorithm of the provider's metadata") }
        let candidates = keys.candidates(kid: keyID, algorithm: algorithm)
        guard !candidates.isEmpty else { throw Failure("kid", "the provider publishes no such key") }
        guard let key = candidates.first(where: isSigned) else {
            throw Failure("signature", "not made by the provider's key")
        }
        guard let payload = try? JSON(parsing: payload).object else {
            throw Failure("payload", "not a JSON object, or a member twice")
        }
        return Verified(payload: payload, key: key)
    }

    /// True if a key that is not in the set may have made the signature, so that fetching the set again may help. This
    /// is so if no key has the token's `kid`, or if the token has no `kid` and no key verifies it. False if the key
    /// with this `kid` is in the set but did not sign the token.
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
