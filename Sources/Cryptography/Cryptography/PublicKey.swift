/// A public key for verifying signatures, checked when it is created. Attack: verifying under a 16,384-bit modulus or a
/// huge exponent would take much processor time.
public struct PublicKey: Sendable, Equatable {
    /// The numbers that a JSON Web Key holds, big-endian.
    public enum Parts: Sendable, Equatable {
        case rsa(modulus: [UInt8], exponent: [UInt8])
        case ellipticCurve(EllipticCurve, x: [UInt8], y: [UInt8])
        case ed25519([UInt8])
    }

    /// Of a modulus. Smaller keys can be broken, larger keys take too much time.
    public static let rsaBits = 2048...8192
    static let ed25519Length = 32
    /// For RSA without leading zeros, for a curve padded to full length.
    public let parts: Parts
    private let handle: KeyHandle

    /// An odd exponent above 1 and below 2^32. Leading zeros are ignored. Throws `invalidKey`.
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
            DER.bitString(DER.sequence(DER.integer(modulus), DER.integer(exponent))))
        guard let handle = KeyHandle(subjectPublicKeyInfo: info) else { throw .invalidKey(reason: "not an RSA key") }
        self.parts = .rsa(modulus: modulus, exponent: exponent)
        self.handle = handle
    }

    /// Coordinates of exactly the curve's length (RFC 7518 section 6.2.1.2). Throws `invalidKey`.
    public init(curve: EllipticCurve, x: [UInt8], y: [UInt8]) throws(CryptographyError) {
        guard x.count == curve.coordinateLength, y.count == curve.coordinateLength else {
            throw .invalidKey(reason: "the length of a coordinate does not fit the curve")
        }
        let info = DER.sequence(
            DER.sequence(DER.identifier(Identifier.ecPublicKey), DER.identifier(Identifier.of(curve))),
            DER.bitString([0x04] + x + y))
        guard let handle = KeyHandle(subjectPublicKeyInfo: info), handle.hasValidPoint() else {
            throw .invalidKey(reason: "the point is not on the curve")
        }
        self.parts = .ellipticCurve(curve, x: x, y: y)
        self.handle = handle
    }

    /// 32 bytes (RFC 8032 section 5.1.5), in canonical encoding and not of small order. Throws `invalidKey`.
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

    public func fits(_ algorithm: SignatureAlgorithm) -> Bool {
        switch (parts, algorithm.scheme) {
        case (.rsa, .rsaPKCS1), (.rsa, .rsaPSS), (.ed25519, .ed25519): true
        case (.ellipticCurve(let mine, _, _), .ecdsa(let theirs)): mine == theirs
        default: false
        }
    }

    /// The signature has JOSE's form (RFC 7518 section 3): r and s concatenated for ECDSA, as long as the modulus for
    /// RSA. Malformed signatures give false.
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

    /// The signature has the form of certificates and WebAuthn authenticators: a DER sequence of r and s (RFC 3279
    /// section 2.2.3). libcrypto accepts only canonical DER. False for other kinds of keys than ECDSA's.
    public func verify(derSignature signature: [UInt8], message: [UInt8], algorithm: SignatureAlgorithm) -> Bool {
        guard fits(algorithm), case .ellipticCurve(let curve, _, _) = parts,
            signature.count <= 2 * curve.coordinateLength + 16
        else { return false }
        return handle.verify(signature: signature, message: message, algorithm: algorithm)
    }

    public static func == (left: PublicKey, right: PublicKey) -> Bool { left.parts == right.parts }

    /// Of key types and curves (RFC 3279, RFC 5480, RFC 8410), as the content bytes of their DER.
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

/// The part of DER (X.690) that libcrypto needs for keys and signatures. Only output of libcrypto is parsed here.
enum DER {
    static func sequence(_ elements: [UInt8]...) -> [UInt8] { element(0x30, elements.flatMap { $0 }) }

    /// Big-endian bytes in the shortest form.
    static func integer(_ magnitude: some Collection<UInt8>) -> [UInt8] {
        let digits = magnitude.drop { $0 == 0 }
        let needsSign = (digits.first ?? 0) >= 0x80 || digits.isEmpty
        return element(0x02, (needsSign ? [0] : []) + digits)
    }

    static let null: [UInt8] = [0x05, 0x00]
    static func bitString(_ bytes: [UInt8]) -> [UInt8] { element(0x03, [0] + bytes) }
    static func identifier(_ content: [UInt8]) -> [UInt8] { element(0x06, content) }
    static func octetString(_ bytes: [UInt8]) -> [UInt8] { element(0x04, bytes) }

    static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        if count < 0x80 { return [tag, UInt8(count)] + content }
        if count < 0x100 { return [tag, 0x81, UInt8(count)] + content }
        precondition(count < 0x10000, "no key or signature is so long")
        return [tag, 0x82, UInt8(count >> 8), UInt8(count & 0xFF)] + content
    }

    /// r and s of an ECDSA signature (RFC 3279 section 2.2.3), each padded to `length` bytes. Nil for malformed DER.
    static func signatureHalves(_ signature: [UInt8], length: Int) -> [UInt8]? {
        var rest = signature[...]
        guard var body = take(0x30, from: &rest), rest.isEmpty, let first = take(0x02, from: &body),
            let second = take(0x02, from: &body), body.isEmpty
        else { return nil }
        var output: [UInt8] = []
        for number in [first, second] {
            let digits = number.drop { $0 == 0 }
            guard digits.count <= length else { return nil }
            output += [UInt8](repeating: 0, count: length - digits.count) + digits
        }
        return output
    }

    private static func take(_ tag: UInt8, from rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard rest.popFirst() == tag, let head = rest.popFirst() else { return nil }
        var count = Int(head)
        if head == 0x81 {
            guard let long = rest.popFirst() else { return nil }
            count = Int(long)
        } else if head >= 0x80 {
            return nil
        }
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }
}

/// Which bytes are accepted as a public key. libcrypto accepts any. Two kinds are dangerous: points of small order,
/// under which one signature can be valid for many messages, and second encodings of a point.
enum Ed25519Point {
    /// False for coordinates not below the field's prime (RFC 8032 section 5.1.3) and for points of small order. No
    /// signature verifies under bytes that do not encode a point.
    static func isKey(_ bytes: [UInt8]) -> Bool {
        guard bytes.count == PublicKey.ed25519Length else { return false }
        // The highest bit is the sign of the other coordinate.
        let coordinate = bytes.dropLast() + [bytes[bytes.count - 1] & 0x7F]
        return isCanonical(coordinate) && !smallOrder.contains(Array(coordinate))
    }

    /// Below 2^255 - 19, little-endian.
    private static func isCanonical(_ coordinate: ArraySlice<UInt8>) -> Bool {
        let isHigh = coordinate.last == 0x7F && coordinate.dropFirst().dropLast().allSatisfy { $0 == 0xFF }
        return !isHigh || (coordinate.first ?? 0) < 0xED
    }

    /// The y coordinates of all points whose order divides the cofactor 8.
    private static let smallOrder: [[UInt8]] = [
        [UInt8](repeating: 0, count: 32),
        [1] + [UInt8](repeating: 0, count: 31),
        [0xEC] + [UInt8](repeating: 0xFF, count: 30) + [0x7F],
        [
            0x26, 0xE8, 0x95, 0x8F, 0xC2, 0xB2, 0x27, 0xB0, 0x45, 0xC3, 0xF4, 0x89, 0xF2, 0xEF, 0x98, 0xF0,
            0xD5, 0xDF, 0xAC, 0x05, 0xD3, 0xC6, 0x33, 0x39, 0xB1, 0x38, 0x02, 0x88, 0x6D, 0x53, 0xFC, 0x05,
        ],
        [
            0xC7, 0x17, 0x6A, 0x70, 0x3D, 0x4D, 0xD8, 0x4F, 0xBA, 0x3C, 0x0B, 0x76, 0x0D, 0x10, 0x67, 0x0F,
            0x2A, 0x20, 0x53, 0xFA, 0x2C, 0x39, 0xCC, 0xC6, 0x4E, 0xC7, 0xFD, 0x77, 0x92, 0xAC, 0x03, 0x7A,
        ],
    ]
}

/// The signature algorithms of JOSE (RFC 7518 section 3.1, RFC 8037 section 3.1) with their names. `none` and the HS
/// family have no case. Attack: a verifier that accepts HS256 can be made to use a published public key as the MAC key,
/// and then anyone can sign.
public enum SignatureAlgorithm: String, Sendable, CaseIterable {
    case rs256 = "RS256"
    case rs384 = "RS384"
    case rs512 = "RS512"
    case ps256 = "PS256"
    case ps384 = "PS384"
    case ps512 = "PS512"
    case es256 = "ES256"
    case es384 = "ES384"
    case es512 = "ES512"
    /// With Ed25519 only. Implementations disagree about the `at_hash` of Ed448.
    case edDSA = "EdDSA"

    /// Compared byte for byte. `Ed25519` (RFC 9864 section 2.2) is the newer name of what `EdDSA` means with such a
    /// key.
    public init?(rawValue: String) {
        let name = rawValue == "Ed25519" ? "EdDSA" : rawValue
        guard let algorithm = Self.allCases.first(where: { $0.rawValue.utf8.elementsEqual(name.utf8) }) else {
            return nil
        }
        self = algorithm
    }

    enum Scheme: Equatable {
        case rsaPKCS1, rsaPSS, ecdsa(EllipticCurve), ed25519
    }

    var scheme: Scheme {
        switch self {
        case .rs256, .rs384, .rs512: .rsaPKCS1
        case .ps256, .ps384, .ps512: .rsaPSS
        case .es256: .ecdsa(.p256)
        case .es384: .ecdsa(.p384)
        case .es512: .ecdsa(.p521)
        case .edDSA: .ed25519
        }
    }

    /// libcrypto's; nil if the scheme includes the hashing (Ed25519).
    var digestName: String? {
        switch self {
        case .rs256, .ps256, .es256: "SHA256"
        case .rs384, .ps384, .es384: "SHA384"
        case .rs512, .ps512, .es512: "SHA512"
        case .edDSA: nil
        }
    }
}

/// The NIST curves of JOSE's signatures (RFC 7518 section 6.2.1.1) with their names.
public enum EllipticCurve: String, Sendable, CaseIterable {
    case p256 = "P-256"
    case p384 = "P-384"
    case p521 = "P-521"

    /// In bytes, of one coordinate and of each half of a signature.
    public var coordinateLength: Int {
        switch self {
        case .p256: 32
        case .p384: 48
        case .p521: 66
        }
    }
}
