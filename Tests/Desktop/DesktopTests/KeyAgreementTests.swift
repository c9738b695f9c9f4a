import RingbackBase
import Testing

@testable import Desktop

@Suite struct `The agreement on a key` {
    @Test func `gives both sides the same key, and others another`() throws {
        let mine = try KeyAgreement()
        let theirs = try KeyAgreement()
        let other = try KeyAgreement()
        let key = try #require(mine.key(with: theirs.publicNumber))
        #expect(key.count == 16)
        #expect(theirs.key(with: mine.publicNumber) == key)
        #expect(other.key(with: theirs.publicNumber) != key)
    }

    @Test func `takes a number with or without leading zeros`() throws {
        let agreement = try KeyAgreement()
        #expect(agreement.key(with: [4]) == agreement.key(with: [UInt8](repeating: 0, count: 127) + [4]))
    }

    @Test func `refuses numbers that would tell everybody the key`() throws {
        let agreement = try KeyAgreement()
        // The prime ends in FF; its neighbour below is -1.
        let prime: [UInt8] = [UInt8](repeating: 0xFF, count: 128)
        for number in [[], [0], [1], prime, [1] + prime] { #expect(agreement.key(with: number) == nil) }
    }
}

@Suite struct `What carries secrets` {
    private let key = Secret(bytes: [UInt8](1...16))

    @Test(arguments: [1, 15, 16, 17, 1_024]) func `seals and opens`(length: Int) throws {
        let transport = SecretTransport(session: "/s", key: key)
        let secret = Secret(bytes: [UInt8](repeating: 7, count: length))
        let sealed = try transport.seal(secret)
        #expect(sealed.parameters.count == 16)
        #expect(sealed.value.count == (length / 16 + 1) * 16)
        #expect(transport.open(parameters: sealed.parameters, value: sealed.value) == secret)
    }

    @Test func `opens nothing that is not whole`() throws {
        let transport = SecretTransport(session: "/s", key: key)
        let sealed = try transport.seal(Secret("hunter2"))
        #expect(transport.open(parameters: [], value: sealed.value) == nil)
        #expect(transport.open(parameters: sealed.parameters, value: []) == nil)
        #expect(transport.open(parameters: sealed.parameters, value: Array(sealed.value.dropLast())) == nil)
    }

    @Test func `carries in clear only where there is no key`() throws {
        let transport = SecretTransport(session: "/s", key: nil)
        let sealed = try transport.seal(Secret("hunter2"))
        #expect(sealed.value == Array("hunter2".utf8))
        #expect(transport.open(parameters: [], value: sealed.value) == Secret("hunter2"))
    }
}
