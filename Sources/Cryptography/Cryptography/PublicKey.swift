/// A public key for verifying signatures. It is checked when it is created: only supported sizes, exponents and curves
/// are accepted, and a point must lie on its curve. Attack: verifying under a 16,384-bit modulus or a huge exponent
/// would take much processor time.
public struct PublicKey: Sendable, Equatable {
    /// The numbers that a JSON Web Key holds, big-endian.
    public enum Parts: Sendable, Equatable {
        case rsa(modulus: [UInt8], exponent: [UInt8])
        case ellipticCurve(EllipticCurve, x: [UInt8], y: [UInt8])
        case ed25519([UInt8])
    }

    /// The accepted lengths of an RSA modulus in bits. Smaller keys can be broken, larger keys take too much time.
    public static let rsaBits = 2048...8192
    static let ed25519Length = 32

    /// The key's numbers: for RSA without leading zeros, for a curve padded to full length.
    public let parts: Parts
    private let handle: KeyHandle

    /// An RSA key of 2048 to 8192 bits with an odd exponent above 1 and below 2^32. Leading zeros are ignored. Throws
    /// `invalidKey`.
    public init(rsaModulus modulus: [UInt8], exponent: [UInt8]) throws(CryptographyError) {
        let modulus = Array(modulus.drop { $0 == 0 })
        let exponent = Array(exponent.drop { $0 == 0 })
        guard let high = modulus.first, let low = modulus.last else { throw .invalidKey(reason: "no modulus") }
        let bits = modulus.count * 8 - high.leadingZeroBitCount
        guard PublicKey.rsaBits.contains(bits) else {
            throw .invalidKey(reason: "an RSA modulus must have 2048 to 8192 bits")
        }
        guard low & 1 == 1 else { throw .invalidKey(reason: "an RSA modulus must be odd") }
        guard let last = exponent.last, exponent.count <= 4, last & 1 == 1, exponent != [1] else {
            throw .invalidKey(reason: "an RSA exponent must be odd, above 1 and below 2^32")
        }
        let info = DER.sequence(
            DER.sequence(DER.identifier(Identifier.rsaEncryption), DER.null),
            DER.bitString(DER.sequence(DER.integer(modulus), DER.integer(exponent)))
        )
        guard let handle = KeyHandle(subjectPublicKeyInfo: info) else { throw .invalidKey(reason: "not an RSA key") }
        self.parts = .rsa(modulus: modulus, exponent: exponent)
        self.handle = handle
    }

    /// A point on a NIST curve, its coordinates of exactly the curve's length (RFC 7518 section 6.2.1.2). Throws
    /// `invalidKey`.
    public init(curve: EllipticCurve, x: [UInt8], y: [UInt8]) throws(CryptographyError) {
        guard x.count == curve.coordinateLength, y.count == curve.coordinateLength else {
            throw .invalidKey(reason: "the length of a coordinate does not fit the curve")
        }
        let info = DER.sequence(
            DER.sequence(DER.identifier(Identifier.ecPublicKey), DER.identifier(Identifier.of(curve))),
            DER.bitString([0x04] + x + y)
        )
        guard let handle = KeyHandle(subjectPublicKeyInfo: info), handle.hasValidPoint() else {
            throw .invalidKey(reason: "the point is not on the curve")
        }
        self.parts = .ellipticCurve(curve, x: x, y: y)
        self.handle = handle
    }

    /// An Ed25519 key: 32 bytes (RFC 8032 section 5.1.5), in canonical encoding and not of small order. Throws
    /// `invalidKey`.
    public init(ed25519 bytes: [UInt8]) throws(CryptographyError) {
        guard bytes.count == PublicKey.ed25519Length else {
            throw .invalidKey(reason: "an Ed25519 key must have 32 bytes")
        }
        guard Ed25519Point.isKey(bytes) else {
            throw .invalidKey(reason: "an Ed25519 key must be a point of full order in canonical encoding")
        }
        let info = DER.sequence(DER.sequence(DER.identifier(Identifier.ed25519)), DER.bitString(bytes))
        guard let handle = KeyHandle(subjectPublicKeyInfo: info) else {
            throw .invalidKey(reason: "not an Ed25519 key")
        }
        self.parts = .ed25519(bytes)
        self.handle = handle
    }

    /// True if the algorithm belongs to the key's type and curve.
    public func fits(_ algorithm: SignatureAlgorithm) -> Bool {
        switch (parts, algorithm.scheme) {
        case (.rsa, .rsaPKCS1), (.rsa, .rsaPSS), (.ed25519, .ed25519): true
        case (.ellipticCurve(let mine, _, _), .ecdsa(let theirs)): mine == theirs
        default: false
        }
    }

    /// True if the signature is valid for the message under this key. It has JOSE's form (RFC 7518 section 3): r and s
    /// concatenated for ECDSA, as long as the modulus for RSA. Malformed signatures give false.
    public func verify(signature: [UInt8], message: [UInt8], algorithm: SignatureAlgorithm) -> Bool {
        guard fits(algorithm) else { return false }
        switch parts {
        case .rsa(let modulus, _):
            guard signature.count == modulus.count else { return false }
            return handle.verify(signature: signature, message: message, algorithm: algorithm)
        case .ellipticCurve(let curve, _, _):
            let length = curve.coordinateLength
            guard signature.count == 2 * length else { return false }
            let first = signature.prefix(length)
            let second = signature.suffix(length)
            // libcrypto rejects numbers that are zero or not below the group's order. Zero is also checked here: an
            // implementation that accepts it accepts the signature 0, 0 for every message (CVE-2022-21449).
            guard first.contains(where: { $0 != 0 }), second.contains(where: { $0 != 0 }) else { return false }
            let der = DER.sequence(DER.integer(first), DER.integer(second))
            return handle.verify(signature: der, message: message, algorithm: algorithm)
        case .ed25519:
            return handle.verify(signature: signature, message: message, algorithm: algorithm)
        }
    }

    /// True if the ECDSA signature is valid, in the form that certificates and WebAuthn authenticators use: a DER
    /// sequence of r and s (RFC 3279 section 2.2.3). libcrypto accepts only canonical DER. False for other kinds of
    /// keys.
    public func verify(derSignature signature: [UInt8], message: [UInt8], algorithm: SignatureAlgorithm) -> Bool {
        guard fits(algorithm), case .ellipticCurve(let curve, _, _) = parts,
            signature.count <= 2 * curve.coordinateLength + 16
        else { return false }
        return handle.verify(signature: signature, message: message, algorithm: algorithm)
    }

    public static func == (left: PublicKey, right: PublicKey) -> Bool { left.parts == right.parts }

    /// Object identifiers of key types and curves (RFC 3279, RFC 5480, RFC 8410), as the content bytes of their DER.
    enum Identifier {
        static let rsaEncryption: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]
        static let ecPublicKey: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
        static let ed25519: [UInt8] = [0x2B, 0x65, 0x70]

        static func of(_ curve: EllipticCurve) -> [UInt8] {
            switch curve {
            case .p256: [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
            case .p384: [0x2B, 0x81, 0x04, 0x00, 0x22]
            case .p521: [0x2B, 0x81, 0x04, 0x00, 0x23]
            }
        }
    }
}
