import Cryptography
import RingbackBase
import Testing

@Suite struct `A signature as authenticators write it` {
    /// Another implementation's.
    private let x = "QS73GpdP1YZ26XUI77u5qIqoVvgzwUNBYuqaAlTHcDw"
    private let y = "1R_4o8nyeNjKcub53CXRcxh9uXi9JyLwrM8ztbeGW_8"
    private let signature =
        "MEYCIQDm2gmPWXdbFFFWpEBuzwgKGyXD4x3b_EbFjMjXKVk08gIhAJTsALaHPX33K5N3NTjtlLz4UitKVVrybSrV1bdfCedD"

    private func key() throws -> PublicKey {
        try PublicKey(
            curve: .p256, x: try #require(Base64URL.decode(x)), y: try #require(Base64URL.decode(y)))
    }

    @Test func `is the same in another form`() throws {
        let key = try key()
        let bytes = try #require(Base64URL.decode(signature))
        let message = Array("a message".utf8)
        #expect(key.verify(derSignature: bytes, message: message, algorithm: .es256))
        #expect(!key.verify(derSignature: bytes, message: message + [0], algorithm: .es256))
        #expect(!key.verify(derSignature: bytes, message: message, algorithm: .es384))
        #expect(!key.verify(signature: bytes, message: message, algorithm: .es256))
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            #expect(!key.verify(derSignature: changed, message: message, algorithm: .es256), "\(index)")
        }
    }

    @Test func `has one spelling`() throws {
        let key = try key()
        let bytes = try #require(Base64URL.decode(signature))
        let message = Array("a message".utf8)
        let others: [[UInt8]] = [
            [], bytes + [0], Array(bytes.dropLast()), [0x30, 0x81] + bytes.dropFirst(), [0x30, 0x06, 2, 1, 0, 2, 1, 0],
            [0x30, 0x06, 2, 1, 1, 2, 1, 1], [UInt8](repeating: 0x30, count: 4_096),
        ]
        for other in others { #expect(!key.verify(derSignature: other, message: message, algorithm: .es256)) }
    }

    @Test func `is an elliptic curve's alone`() throws {
        let key = try PrivateKey.generate(.ed25519)
        let message = Array("a message".utf8)
        let signature = try key.sign(message: message, algorithm: .edDSA)
        #expect(!key.publicKey.verify(derSignature: signature, message: message, algorithm: .edDSA))
    }
}
