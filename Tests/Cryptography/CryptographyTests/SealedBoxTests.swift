import RingbackBase
import Testing

@testable import Cryptography

private func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
    return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

@Suite struct `A sealed box` {
    private let key = Secret(bytes: Array(0..<32))

    struct Vector: Sendable {
        var key: String
        var nonce: String
        var text: String
        var context: String
        var ciphertext: String
        var tag: String
    }

    /// Test cases 13, 14 and 16 of "The Galois/Counter Mode of Operation" (McGrew and Viega).
    static let vectors = [
        Vector(
            key: String(repeating: "00", count: 32), nonce: String(repeating: "00", count: 12), text: "", context: "",
            ciphertext: "", tag: "530f8afbc74536b9a963b4f1c4cb738b"),
        Vector(
            key: String(repeating: "00", count: 32), nonce: String(repeating: "00", count: 12),
            text: String(repeating: "00", count: 16), context: "", ciphertext: "cea7403d4d606b6e074ec5d3baf39d18",
            tag: "d0d1c8a799996bf0265b98b5d48ab919"),
        Vector(
            key: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", nonce: "cafebabefacedbaddecaf888",
            text: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
            context: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            ciphertext: "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
            tag: "76fc6ece0f4e1768cddf8853bb2d551b"),
    ]

    @Test(arguments: vectors) func `the known answers of GCM hold`(vector: Vector) throws {
        let key = Secret(bytes: bytes(vector.key))
        let text = Secret(bytes: bytes(vector.text))
        let box = try SealedBox.seal(text, with: key, context: bytes(vector.context), nonce: bytes(vector.nonce))
        #expect(box == bytes(vector.nonce + vector.ciphertext + vector.tag))
        #expect(try SealedBox.open(box, with: key, context: bytes(vector.context)) == text)
    }

    @Test(arguments: [0, 1, 15, 16, 17, 4_096, 1 << 20]) func `gives back what was put in`(count: Int) throws {
        let text = Secret(bytes: RandomToken.bytes(count))
        let box = try SealedBox.seal(text, with: key, context: [1, 2])
        #expect(box.count == count + SealedBox.overhead)
        #expect(try SealedBox.open(box, with: key, context: [1, 2]) == text)
        #expect(try SealedBox.open(box[...], with: key, context: [1, 2]) == text)
    }

    @Test func `no two boxes are alike`() throws {
        let boxes = try (0..<100).map { _ in try SealedBox.seal(Secret("same"), with: key, context: []) }
        #expect(Set(boxes.map { Array($0.prefix(12)) }).count == 100)
        #expect(Set(boxes).count == 100)
    }

    @Test func `every bit counts`() throws {
        let box = try SealedBox.seal(Secret("a text"), with: key, context: [7])
        for bit in 0..<(box.count * 8) {
            var changed = box
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(try SealedBox.open(changed, with: key, context: [7]) == nil)
        }
    }

    @Test func `every length but its own is wrong`() throws {
        let box = try SealedBox.seal(Secret("a text"), with: key, context: [])
        for count in 0..<box.count { #expect(try SealedBox.open(box[..<count], with: key, context: []) == nil) }
        #expect(try SealedBox.open(box + [0], with: key, context: []) == nil)
    }

    @Test func `another context or key opens nothing`() throws {
        let box = try SealedBox.seal(Secret("a text"), with: key, context: [7])
        #expect(try SealedBox.open(box, with: key, context: []) == nil)
        #expect(try SealedBox.open(box, with: key, context: [7, 0]) == nil)
        #expect(try SealedBox.open(box, with: Secret(bytes: Array(1...32)), context: [7]) == nil)
    }

    @Test(arguments: [0, 16, 31, 33]) func `a key has 32 bytes`(count: Int) {
        let key = Secret(bytes: [UInt8](repeating: 1, count: count))
        let error = CryptographyError.invalidKey(reason: "an AES-256 key has 32 bytes")
        #expect(throws: error) { try SealedBox.seal(Secret("x"), with: key, context: []) }
        #expect(throws: error) { try SealedBox.open([UInt8](repeating: 0, count: 40), with: key, context: []) }
    }
}

@Suite struct `Key derivation` {
    struct Vector: Sendable {
        var key: String
        var salt: String
        var info: String
        var output: String
    }

    /// RFC 5869, appendix A.1 to A.3.
    static let vectors = [
        Vector(
            key: String(repeating: "0b", count: 22), salt: "000102030405060708090a0b0c", info: "f0f1f2f3f4f5f6f7f8f9",
            output: "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"),
        Vector(
            key: (0x00...0x4F).map { Digest.hex([UInt8($0)]) }.joined(),
            salt: (0x60...0xAF).map { Digest.hex([UInt8($0)]) }.joined(),
            info: (0xB0...0xFF).map { Digest.hex([UInt8($0)]) }.joined(),
            output: "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
                + "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"),
        Vector(
            key: String(repeating: "0b", count: 22), salt: "", info: "",
            output: "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"),
    ]

    @Test(arguments: vectors) func `the examples of RFC 5869 hold`(vector: Vector) throws {
        let expected = bytes(vector.output)
        let output = try KeyDerivation.derive(
            from: Secret(bytes: bytes(vector.key)), salt: bytes(vector.salt), info: bytes(vector.info),
            length: expected.count)
        #expect(output.revealedBytes() == expected)
    }

    @Test func `two purposes give two keys`() throws {
        let key = Secret(bytes: Array(0..<32))
        let one = try KeyDerivation.derive(from: key, purpose: "one")
        #expect(one.count == 32)
        #expect(try KeyDerivation.derive(from: key, purpose: "one") == one)
        #expect(try KeyDerivation.derive(from: key, purpose: "two") != one)
        #expect(try KeyDerivation.derive(from: key, salt: [1], purpose: "one") != one)
    }
}
