import RingbackBase
import Testing

@Suite struct `Base64 in both alphabets` {
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func `the examples of RFC 4648 go both ways`(plain: String, encoded: String) {
        let unpadded = String(encoded.prefix { $0 != "=" })
        #expect(Base64.encode(plain.utf8) == encoded)
        #expect(Base64.decode(encoded) == Array(plain.utf8))
        #expect(Base64URL.encode(plain.utf8) == unpadded)
        #expect(Base64URL.decode(unpadded) == Array(plain.utf8))
        #expect(Base64URL.encodeToBytes(plain.utf8) == Array(unpadded.utf8))
    }

    @Test func `the two alphabets differ in two characters`() {
        #expect(Base64.encode([0xFB, 0xFF, 0xBF]) == "+/+/")
        #expect(Base64URL.encode([0xFB, 0xFF, 0xBF]) == "-_-_")
        #expect(Base64.decode("-_-_") == nil)
        #expect(Base64URL.decode("+/+/") == nil)
    }

    @Test func `random bytes of every length come back`() {
        for count in 0..<100 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255) }
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
            #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
        }
    }

    @Test(arguments: [
        "A", "AAAAA", "Zg==", "Zg=", "=", "Zm9v\n", " Zm9v", "Zm 9v", "Zm9v=", "Zé", "Zh", "Zm9", "Zm\0v",
    ])
    func `base64url has one spelling for each value`(text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test(arguments: ["Zg", "Zg=", "Zg===", "====", "Z===", "=", "==", "Zm9v\n", "Zm9v====", "Zh==", "Zm9=", "Z=g="])
    func `base64 has one spelling for each value`(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test func `no two texts of two characters mean the same`() {
        var seen: Set<[UInt8]> = []
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                guard let bytes = Base64URL.decode([first, second][...]) else { continue }
                #expect(seen.insert(bytes).inserted)
            }
        }
        #expect(seen.count == 256)
    }
}
