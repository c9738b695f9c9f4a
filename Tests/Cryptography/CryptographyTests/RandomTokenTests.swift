import Cryptography
import RingbackBase
import Testing

@Suite struct `Random token` {
    @Test(arguments: [0, 1, 32, 255, 256, 257, 1000]) func `bytes come in the asked number`(count: Int) {
        #expect(RandomToken.bytes(count).count == count)
    }

    @Test func `every byte is filled, also beyond what the kernel gives at once`() {
        // Each of the last places is zero in all of 40 draws with a chance of 2^-320.
        var combined = [UInt8](repeating: 0, count: 600)
        for _ in 0..<40 {
            for (index, byte) in RandomToken.bytes(600).enumerated() { combined[index] |= byte }
        }
        #expect(!combined.contains(0))
    }

    @Test func `a token of 256 bits is 43 characters that fit a URL`() {
        let token = RandomToken.base64URL()
        #expect(token.count == 43)
        #expect(Base64URL.decode(token.revealed())?.count == 32)
        #expect("\(token)" == "<secret>")
    }

    @Test func `tokens and identifiers do not repeat`() {
        #expect(Set((0..<1000).map { _ in RandomToken.base64URL() }).count == 1000)
        #expect(Set((0..<1000).map { _ in RandomToken.identifier() }).count == 1000)
        #expect(RandomToken.identifier().utf8.count == 22)
    }
}
