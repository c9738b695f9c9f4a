import RingbackBase
import Testing

@Suite struct `A secret in a response` {
    private func passed(_ text: String, _ secret: String, step: Int) -> String {
        var mask = SecretMask(Secret(secret))
        let bytes = Array(text.utf8)
        var output: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: step) {
            output += mask.pass(Array(bytes[start..<min(start + step, bytes.count)]))
        }
        return String(decoding: output + mask.finish(), as: UTF8.self)
    }

    @Test(arguments: [
        ("token-0123456789", "a token-0123456789 b", "a **************** b"),
        ("token-0123456789", "token-0123456789token-0123456789", "********************************"),
        ("token-0123456789", "token-012345678 token-012345678X", "token-012345678 token-012345678X"),
        ("token-0123456789", "tokentoken-0123456789", "token****************"),
        ("aaaaaaaa", "aaaaaaaaaaaa", "********aaaa"),
        ("abababab", "aabababab", "a********"),
        ("ab/cd=efgh", "x ab%2Fcd%3Defgh ab\\/cd=efgh", "x ************** ***********"),
        ("ab/cdefghij", "ab/cdefghij", "***********"), ("short", "short", "short"), ("token-0123456789", "", ""),
    ])
    func `a secret is hidden however the bytes are cut`(_ secret: String, _ text: String, _ expected: String) {
        for step in 1...max(1, text.utf8.count) {
            #expect(passed(text, secret, step: step) == expected, "pieces of \(step)")
        }
        #expect(SecretMask(Secret(secret)).masked(text) == expected)
    }

    @Test func `each of several secrets is hidden`() {
        let mask = SecretMask([Secret("token-0123456789"), Secret("proof.abcdefgh")])
        #expect(mask.masked("a token-0123456789 proof.abcdefgh token") == "a **************** ************** token")
    }

    @Test(arguments: ["data: hello\n\n", "{\"a\": 1}\n", "token of another kind\n"])
    func `an event is passed on at once`(event: String) {
        var mask = SecretMask(Secret("token-0123456789"))
        #expect(mask.pass(Array(event.utf8)) == Array(event.utf8))
    }

    @Test func `only what may be the beginning of the secret waits`() {
        var mask = SecretMask(Secret("token-0123456789"))
        #expect(mask.pass(Array("a toke".utf8)) == Array("a ".utf8))
        #expect(mask.pass(Array("d b".utf8)) == Array("toked b".utf8))
    }
}
