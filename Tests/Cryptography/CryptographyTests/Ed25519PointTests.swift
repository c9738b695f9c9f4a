import Cryptography
import Testing

@Suite struct `Ed25519 keys` {
    /// Points of small order and second spellings of points, in hexadecimal (RFC 8032 section 5.1.3; the list is in
    /// many libraries, here computed anew).
    private static let unfit = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    ]

    private static func bytes(_ text: String) -> [UInt8] {
        stride(from: 0, to: text.utf8.count, by: 2).compactMap { UInt8(text.dropFirst($0).prefix(2), radix: 16) }
    }

    @Test(arguments: unfit) func `a point of small order, or in a second spelling, is no key`(text: String) {
        let bytes = Self.bytes(text)
        #expect(bytes.count == 32)
        #expect(throws: CryptographyError.self) { try PublicKey(ed25519: bytes) }
    }

    @Test func `a coordinate just below the prime is in order`() {
        #expect(throws: Never.self) {
            try PublicKey(
                ed25519: Self.bytes("ebffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"))
        }
        #expect(throws: Never.self) {
            try PublicKey(
                ed25519: Self.bytes("efffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7e"))
        }
    }

    @Test func `the keys of RFC 8032 are keys`() {
        for text in [
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        ] {
            #expect(throws: Never.self) { try PublicKey(ed25519: Self.bytes(text)) }
        }
    }

    @Test func `bytes that no point has verify nothing`() throws {
        // No x belongs to y = 2.
        let key = try PublicKey(ed25519: [2] + [UInt8](repeating: 0, count: 31))
        for first in [UInt8](0...3) {
            let signature = [first] + [UInt8](repeating: 0, count: 63)
            #expect(!key.verify(signature: signature, message: [], algorithm: .edDSA))
        }
    }
}
