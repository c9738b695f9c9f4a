import Cryptography
import Testing

@Suite struct `Public key` {
    @Test(arguments: SignatureVectors.all)
    func `signatures of other implementations`(vector: SignatureVectors.Case) throws {
        let key = try vector.key()
        let signature = try SignatureVectors.bytes(vector.signature)
        let message = Array(vector.message.utf8)
        #expect(key.verify(signature: signature, message: message, algorithm: vector.algorithm) == vector.isValid)
        #expect(!key.verify(signature: signature, message: message + [0], algorithm: vector.algorithm))
        for other in SignatureAlgorithm.allCases where other != vector.algorithm {
            #expect(!key.verify(signature: signature, message: message, algorithm: other))
        }
    }

    @Test(arguments: SignatureVectors.all.filter(\.isValid))
    func `no bit of a signature may change`(vector: SignatureVectors.Case) throws {
        let key = try vector.key()
        let message = Array(vector.message.utf8)
        let signature = try SignatureVectors.bytes(vector.signature)
        for index in signature.indices {
            var changed = signature
            changed[index] ^= 1 << UInt8(index % 8)
            #expect(!key.verify(signature: changed, message: message, algorithm: vector.algorithm))
        }
    }

    @Test(arguments: SignatureVectors.all.filter(\.isValid))
    func `a signature has one length`(vector: SignatureVectors.Case) throws {
        let key = try vector.key()
        let message = Array(vector.message.utf8)
        let signature = try SignatureVectors.bytes(vector.signature)
        let others = [
            [], [0], Array(signature.dropLast()), Array(signature.dropFirst()), signature + [0], [0] + signature,
        ]
        for other in others + [signature + signature, [UInt8](repeating: 0, count: signature.count)] {
            #expect(!key.verify(signature: other, message: message, algorithm: vector.algorithm))
        }
    }

    @Test func `PR-11: an RSA key has 2048 to 8192 bits`() {
        func modulus(bits: Int) -> [UInt8] {
            var bytes = [UInt8](repeating: 0xA5, count: (bits + 7) / 8)
            bytes[0] = 1 << UInt8((bits - 1) % 8)
            return bytes
        }
        for bits in [2048, 2049, 3072, 4096, 8192] {
            #expect(throws: Never.self) { try PublicKey(rsaModulus: modulus(bits: bits), exponent: [1, 0, 1]) }
        }
        for bits in [1, 512, 1024, 2047, 8193, 16_384] {
            #expect(throws: CryptographyError.self) { try PublicKey(rsaModulus: modulus(bits: bits), exponent: [3]) }
        }
        let even = modulus(bits: 2048).dropLast() + [0]
        #expect(throws: CryptographyError.self) { try PublicKey(rsaModulus: Array(even), exponent: [1, 0, 1]) }
        #expect(throws: CryptographyError.self) { try PublicKey(rsaModulus: [], exponent: [1, 0, 1]) }
        #expect(throws: CryptographyError.self) { try PublicKey(rsaModulus: [0, 0], exponent: [1, 0, 1]) }
    }

    @Test func `leading zeros change no RSA key`() throws {
        let modulus = [0xFF] + [UInt8](repeating: 0xA5, count: 255)
        let plain = try PublicKey(rsaModulus: modulus, exponent: [1, 0, 1])
        let padded = try PublicKey(rsaModulus: [0, 0] + modulus, exponent: [0, 1, 0, 1])
        #expect(plain == padded)
        #expect(padded.parts == .rsa(modulus: modulus, exponent: [1, 0, 1]))
    }

    @Test(arguments: [[], [0], [1], [2], [1, 0, 0], [1, 0, 0, 0, 0], [1, 0, 0, 0, 1], [0, 0, 1]] as [[UInt8]])
    func `PR-11: an RSA exponent is odd, above one and below 2 to the 32nd`(exponent: [UInt8]) {
        let modulus = [UInt8](repeating: 0xA5, count: 256)
        #expect(throws: CryptographyError.self) { try PublicKey(rsaModulus: modulus, exponent: exponent) }
    }

    @Test(arguments: [(PrivateKey.Family.p256, EllipticCurve.p256), (.p384, .p384), (.p521, .p521)])
    func `a point lies on its curve and has its lengths`(family: PrivateKey.Family, curve: EllipticCurve) throws {
        guard case .ellipticCurve(curve, let x, let y) = try PrivateKey.generate(family).publicKey.parts else {
            Issue.record("the key has another curve")
            return
        }
        #expect(throws: Never.self) { try PublicKey(curve: curve, x: x, y: y) }
        var wrong = y
        wrong[wrong.count - 1] ^= 1
        let zero = [UInt8](repeating: 0, count: x.count)
        let huge = [UInt8](repeating: 0xFF, count: x.count)
        let cases = [
            (x, wrong), (y, x), (zero, zero), (huge, y), (x, huge), ([0] + x, y), (x, Array(y.dropLast())), ([], []),
            (x + y, []),
        ]
        for (x, y) in cases {
            #expect(throws: CryptographyError.self) { try PublicKey(curve: curve, x: x, y: y) }
        }
        for other in EllipticCurve.allCases where other != curve {
            #expect(throws: CryptographyError.self) { try PublicKey(curve: other, x: x, y: y) }
        }
    }

    @Test(arguments: [0, 31, 33, 57, 64]) func `an Ed25519 key has 32 bytes`(count: Int) {
        #expect(throws: CryptographyError.self) { try PublicKey(ed25519: [UInt8](repeating: 9, count: count)) }
    }

    /// The order of P-256's group (FIPS 186-4).
    private static let order: [UInt8] =
        [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0] + [UInt8](repeating: 0xFF, count: 8)
        + [0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51]

    @Test func `PR-12: ECDSA halves lie between zero and the order`() throws {
        let key = try PrivateKey.generate(.p256)
        let message = Array("message".utf8)
        let good = try key.sign(message: message, algorithm: .es256)
        let zero = [UInt8](repeating: 0, count: 32)
        let one = zero.dropLast() + [1]
        let full = [UInt8](repeating: 0xFF, count: 32)
        let r = Array(good.prefix(32))
        let s = Array(good.suffix(32))
        let order = Self.order
        let extremes = [zero, Array(one), order, full]
        for first in extremes + [r] {
            for second in extremes + [s] where first != r || second != s {
                let forged = first + second
                #expect(!key.publicKey.verify(signature: forged, message: message, algorithm: .es256))
            }
        }
        #expect(!key.publicKey.verify(signature: s + r, message: message, algorithm: .es256))
        #expect(key.publicKey.verify(signature: good, message: message, algorithm: .es256))
    }

    @Test func `halves written one byte longer are refused`() throws {
        let key = try PrivateKey.generate(.p256)
        let message = Array("message".utf8)
        let good = try key.sign(message: message, algorithm: .es256)
        let longer = [0] + good.prefix(32) + [0] + good.suffix(32)
        #expect(!key.publicKey.verify(signature: longer, message: message, algorithm: .es256))
    }

    @Test func `a DER signature is not a JOSE signature`() throws {
        let key = try PrivateKey.generate(.p256)
        let message = Array("message".utf8)
        let good = try key.sign(message: message, algorithm: .es256)
        let r = [0x02, 0x21, 0x00] + good.prefix(32)
        let s = [0x02, 0x21, 0x00] + good.suffix(32)
        #expect(!key.publicKey.verify(signature: [0x30, 0x46] + r + s, message: message, algorithm: .es256))
    }
}
