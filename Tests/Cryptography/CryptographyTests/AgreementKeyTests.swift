import RingbackBase
import Testing

@testable import Cryptography

@Suite struct `Keys that two hosts agree with` {
    private func bytes(_ hex: String) -> [UInt8] {
        stride(from: 0, to: hex.utf8.count, by: 2).compactMap { UInt8(hex.dropFirst($0).prefix(2), radix: 16) }
    }

    @Test func `agrees as in RFC 7748 section 6.1`() throws {
        let alice = try AgreementKey(
            secret: Secret(bytes: bytes("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")))
        let bob = try AgreementKey(
            secret: Secret(bytes: bytes("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")))
        #expect(alice.publicKey == bytes("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"))
        #expect(bob.publicKey == bytes("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"))
        let secret = Secret(bytes: bytes("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"))
        #expect(try alice.agree(with: bob.publicKey) == secret)
        #expect(try bob.agree(with: alice.publicKey) == secret)
    }

    @Test func `opens what was sealed for it, and nothing else`() throws {
        let (key, other) = (try AgreementKey.generate(), try AgreementKey.generate())
        let text = Secret("a data key")
        let sealed = try SealedForKey.seal(text, for: key.publicKey, context: [1])
        #expect(try SealedForKey.open(sealed, with: key, context: [1]) == text)
        #expect(try SealedForKey.open(sealed, with: key, context: [2]) == nil)
        #expect(try SealedForKey.open(sealed, with: other, context: [1]) == nil)
        #expect(try SealedForKey.seal(text, for: key.publicKey, context: [1]) != sealed)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            // X25519 ignores the highest bit of a public key. The key is derived from all of its bytes.
            #expect(try SealedForKey.open(changed, with: key, context: [1]) == nil)
        }
        for count in 0..<sealed.count {
            #expect(try SealedForKey.open(Array(sealed.prefix(count)), with: key, context: [1]) == nil)
        }
    }

    @Test func `refuses a public key with which every secret is zero`() throws {
        #expect(throws: CryptographyError.self) {
            _ = try SealedForKey.seal(Secret("text"), for: [UInt8](repeating: 0, count: 32), context: [])
        }
        #expect(throws: CryptographyError.self) {
            _ = try SealedForKey.seal(Secret("text"), for: [9], context: [])
        }
        let key = try AgreementKey.generate()
        let zero = [UInt8](repeating: 0, count: 60)
        #expect(try SealedForKey.open(zero, with: key, context: []) == nil)
    }

    @Test func `a stored key is the same key`() throws {
        let key = try AgreementKey.generate()
        let again = try AgreementKey(secret: key.secret)
        #expect(again.publicKey == key.publicKey)
        #expect(throws: CryptographyError.self) { _ = try AgreementKey(secret: Secret("short")) }
    }
}
