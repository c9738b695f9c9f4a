internal import Encodings
public import Secrets

/// Private keys from files. Encrypted keys are rejected, because the daemon cannot ask for their passphrase.
extension PrivateKey {
    /// The maximum size of one number in bytes; the largest is an RSA modulus of 8192 bits.
    private static let maxNumber = 1024

    /// Reads the private key of a PEM file (RFC 7468): PKCS #8, `RSA PRIVATE KEY` or `EC PRIVATE KEY`. Other blocks in
    /// the file are ignored. Throws `invalidKey` if there is not exactly one private key, if it is encrypted, or if its
    /// type is not supported.
    public init(pem text: Secret) throws(CryptographyError) {
        var blocks: [(label: String, body: [UInt8])] = []
        var label: String?
        var body: [UInt8] = []
        for line in text.revealedBytes().split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            if let begun = PrivateKey.label(of: line, "BEGIN") {
                label = begun
                body = []
            } else if let ended = PrivateKey.label(of: line, "END"), ended == label {
                if ended.hasSuffix("PRIVATE KEY") { blocks.append((ended, body)) }
                label = nil
            } else if label != nil {
                body += line.filter { $0 != 0x20 && $0 != 0x09 }
            }
        }
        defer { body.erase() }
        guard let block = blocks.first, blocks.count == 1 else {
            throw .invalidKey(reason: blocks.isEmpty ? "a PEM text without a private key" : "more than one private key")
        }
        guard block.label != "ENCRYPTED PRIVATE KEY", !block.body.contains(UInt8(ascii: ":")) else {
            throw .invalidKey(reason: "it is encrypted: store it without a passphrase in a file with mode 0600")
        }
        guard var bytes = Base64.decode(block.body[...]) else { throw .invalidKey(reason: "not base64") }
        defer { bytes.erase() }
        guard let handle = KeyHandle(privateKey: bytes) else { throw .invalidKey(reason: "not a private key") }
        try self.init(reading: handle)
    }

    /// Builds a private key from its numbers, big-endian (RFC 7518 section 6): for RSA `d`, `p`, `q`, `dp`, `dq`, `qi`;
    /// otherwise `d`. Throws `invalidKey` if they do not belong to the public key.
    public init(_ publicKey: PublicKey, numbers: [Secret]) throws(CryptographyError) {
        var numbers = numbers.map { $0.revealedBytes() }
        defer { for index in numbers.indices { numbers[index].erase() } }
        guard numbers.allSatisfy({ (1...PrivateKey.maxNumber).contains($0.count) }) else {
            throw .invalidKey(reason: "one of its numbers is empty or too long")
        }
        var bytes = try PrivateKey.encode(publicKey.parts, numbers)
        defer { bytes.erase() }
        guard let handle = KeyHandle(privateKey: bytes) else { throw .invalidKey(reason: "not a private key") }
        try self.init(reading: handle)
        guard self.publicKey == publicKey else {
            throw .invalidKey(reason: "its private and public parts do not belong together")
        }
    }

    /// RSA as PKCS #1 (RFC 8017 appendix A.1.2), curves as SEC 1 (RFC 5915), Ed25519 as PKCS #8 (RFC 8410 section 7).
    private static func encode(_ parts: PublicKey.Parts, _ numbers: [[UInt8]]) throws(CryptographyError) -> [UInt8] {
        switch parts {
        case .rsa(let modulus, let exponent):
            guard numbers.count == 6 else { throw .invalidKey(reason: "an RSA key must have d, p, q, dp, dq and qi") }
            let all = [[0], modulus, exponent] + numbers
            return DER.element(0x30, all.flatMap { DER.integer($0) })
        case .ellipticCurve(let curve, let x, let y):
            guard numbers.count == 1, numbers[0].count == curve.coordinateLength else {
                throw .invalidKey(reason: "the length of d does not fit the curve")
            }
            return DER.sequence(
                DER.integer([1]), DER.octetString(numbers[0]),
                DER.element(0xA0, DER.identifier(PublicKey.Identifier.of(curve))),
                DER.element(0xA1, DER.bitString([0x04] + x + y)))
        case .ed25519:
            guard numbers.count == 1, numbers[0].count == PublicKey.ed25519Length else {
                throw .invalidKey(reason: "an Ed25519 key must have 32 bytes")
            }
            return DER.sequence(
                DER.integer([0]), DER.sequence(DER.identifier(PublicKey.Identifier.ed25519)),
                DER.octetString(DER.octetString(numbers[0])))
        }
    }

    /// The label of an encapsulation boundary (RFC 7468 section 2); nil if the line is not a boundary.
    private static func label(of line: ArraySlice<UInt8>, _ word: String) -> String? {
        let text = String(decoding: line, as: UTF8.self)
        let head = "-----\(word) "
        guard text.hasPrefix(head), let end = text.utf8.lastIndex(where: { $0 != 0x20 && $0 != 0x09 }),
            text[...end].hasSuffix("-----"), text[...end].utf8.count > head.utf8.count + 5
        else { return nil }
        return String(text[...end].dropFirst(head.utf8.count).dropLast(5))
    }
}
