import Cryptography
import RingbackBase
import Testing

@Suite struct `A digest` {
    @Test func `the examples of FIPS 180 hold, whatever form the text has`() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        #expect(Digest.hex(Digest.sha256("abc")) == expected)
        #expect(Digest.hex(Digest.sha256(Array("abc".utf8))) == expected)
        #expect(Digest.hex(Digest.sha256("xabc".utf8.dropFirst())) == expected)
        #expect(Digest.hex(Digest.sha256(Secret("abc"))) == expected)
    }

    @Test func `the longer digests`() {
        let sha384 = """
            cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed\
            8086072ba1e7cc2358baeca134c825a7
            """
        let sha512 = """
            ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
            2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f
            """
        #expect(Digest.hex(Digest.sha384("abc")) == sha384)
        #expect(Digest.sha384(Secret("abc")) == Digest.sha384("abc"))
        #expect(Digest.hex(Digest.sha512("abc")) == sha512)
        #expect(Digest.sha512(Secret("abc")) == Digest.sha512("abc"))
    }

    @Test func `nothing has a digest too`() {
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        #expect(Digest.hex(Digest.sha256("")) == expected)
        #expect(Digest.hex(Digest.sha256(Secret(""))) == expected)
    }
}
