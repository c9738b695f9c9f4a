import Cryptography
import RingbackBase
import Testing

@Suite struct `Keys from passphrases` {
    struct Vector: Sendable {
        var passphrase: String
        var salt: String
        var n: Int
        var r: Int
        var p: Int
        var key: String
    }

    /// RFC 7914, section 12.
    static let vectors = [
        Vector(
            passphrase: "", salt: "", n: 16, r: 1, p: 1,
            key: "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
                + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"),
        Vector(
            passphrase: "password", salt: "NaCl", n: 1_024, r: 8, p: 16,
            key: "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
                + "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"),
        Vector(
            passphrase: "pleaseletmein", salt: "SodiumChloride", n: 16_384, r: 8, p: 1,
            key: "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
                + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"),
    ]

    @Test(arguments: vectors) func `the examples of RFC 7914 hold`(vector: Vector) throws {
        let cost = try #require(Scrypt.Cost(validN: vector.n, r: vector.r, p: vector.p))
        let key = try Scrypt.derive(
            Secret(vector.passphrase), salt: Array(vector.salt.utf8), cost: cost, length: 64)
        #expect(Digest.hex(key.revealedBytes()) == vector.key)
    }

    @Test func `the standard cost is one that we take`() {
        #expect(Scrypt.Cost(validN: 1 << 17, r: 8, p: 1) == .standard)
        #expect(Scrypt.Cost(validN: 1 << 18, r: 8, p: 1) != nil)
    }

    @Test(arguments: [
        (0, 8, 1), (1, 8, 1), (-2, 8, 1), (3, 8, 1), (1 << 17 | 1, 8, 1), (1 << 19, 8, 1), (1 << 62, 8, 1),
        (Int.max, 8, 1), (Int.min, 8, 1), (1_024, 0, 1), (1_024, -8, 1), (1_024, Int.max, 1), (1_024, 8, 0),
        (1_024, 8, -1), (1_024, 8, Int.max), (1 << 17, 16, 16), (1 << 18, 8, 16),
    ])
    func `a cost that is none, or more than we spend, is refused`(n: Int, r: Int, p: Int) {
        #expect(Scrypt.Cost(validN: n, r: r, p: p) == nil)
    }
}
