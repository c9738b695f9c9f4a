import RingbackBase
import Testing

@Suite struct `A secret` {
    private let secret = Secret("hunter2-hunter2")

    private struct Holder {
        let name = "work"
        let token: Secret
        let spare: Secret?
    }

    @Test func `prints as a placeholder, in every way there is to print`() {
        var dumped = ""
        dump(Holder(token: secret, spare: secret), to: &dumped)
        let texts = [
            "\(secret)", String(describing: secret), String(reflecting: secret), "\([secret])", "\(["key": secret])",
            "\(Optional(secret) as Any)", "\(Holder(token: secret, spare: secret))",
            String(reflecting: Holder(token: secret, spare: secret)), "\(Result<Secret, Never>.success(secret))",
            dumped,
        ]
        for text in texts {
            #expect(text.contains("<secret>"))
            #expect(!text.contains("hunter2"))
            #expect(!text.contains("104, 117"), "as bytes")
        }
    }

    @Test func `has nothing to reflect`() {
        let mirror = Mirror(reflecting: secret)
        #expect(mirror.children.isEmpty)
        #expect(mirror.superclassMirror == nil)
    }

    @Test func `goes out by its named exits`() {
        #expect(secret.revealed() == "hunter2-hunter2")
        #expect(secret.revealedBytes() == Array("hunter2-hunter2".utf8))
        #expect(Secret(bytes: [0xFF, 0x61]).revealedBytes() == [0xFF, 0x61])
        #expect(Secret(bytes: [0xFF, 0x61]).revealed() == "\u{FFFD}a")
    }

    @Test func `lends its bytes for the time of a call`() {
        let sum = secret.withBytes { bytes in
            bytes.byteOffsets.reduce(0) { $0 + Int(bytes.unsafeLoadByte($1)) }
        }
        #expect(sum == "hunter2-hunter2".utf8.reduce(0) { $0 + Int($1) })
    }

    @Test func `lends its bytes even where it has no other owner`() {
        #expect(Secret("short-lived").withBytes { $0.byteCount } == 11)
    }

    @Test func `passes a failure of the call on`() {
        struct Failure: Error, Equatable {}
        #expect(throws: Failure()) {
            try secret.withBytes { (_: RawSpan) throws(Failure) -> Int in throw Failure() }
        }
    }

    @Test func `is equal to the same bytes and to no others`() {
        #expect(secret == Secret(bytes: Array("hunter2-hunter2".utf8)))
        #expect(secret != Secret("hunter2-hunter3"))
        #expect(secret != Secret("Hunter2-hunter2"))
        #expect(secret != Secret("hunter2-hunter"))
        #expect(secret != Secret(""))
        #expect(Secret("") == Secret(bytes: []))
    }

    @Test func `works as a key`() {
        let table = [secret: 1, Secret("other"): 2]
        #expect(table[Secret("hunter2-hunter2")] == 1)
        #expect(Set([secret, Secret("hunter2-hunter2")]).count == 1)
    }

    @Test func `knows its length`() {
        #expect(secret.count == 15)
        #expect(!secret.isEmpty)
        #expect(Secret("").isEmpty)
        #expect(Secret("é").count == 2)
    }
}

extension RawSpan {
    fileprivate func unsafeLoadByte(_ offset: Int) -> UInt8 {
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }
}
