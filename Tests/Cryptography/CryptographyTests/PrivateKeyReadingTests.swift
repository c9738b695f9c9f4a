import RingbackBase
import Testing

@testable import Cryptography

@Suite struct `Private keys from files` {
    private static let good = [
        TestKey.rsa, TestKey.rsaOlder, TestKey.p256, TestKey.p384Older, TestKey.ed25519,
    ]

    @Test(arguments: good) func `sign what their public half verifies`(text: String) throws {
        for text in [text, "Bag Attributes\n" + text.split(separator: "\n").joined(separator: "\r\n") + "\r\n"] {
            let key = try PrivateKey(pem: Secret(text))
            let algorithm = try #require(SignatureAlgorithm.allCases.first(where: key.publicKey.fits))
            let signature = try key.sign(message: [1, 2, 3], algorithm: algorithm)
            #expect(key.publicKey.verify(signature: signature, message: [1, 2, 3], algorithm: algorithm))
        }
    }

    @Test func `are the same key in both of RSA's forms`() throws {
        #expect(
            try PrivateKey(pem: Secret(TestKey.rsa)).publicKey == PrivateKey(pem: Secret(TestKey.rsaOlder)).publicKey)
    }

    @Test func `are refused where they are none of ours, with a reason`() {
        let cases: [(String, String)] = [
            ("", "a PEM text without a private key"), ("garbage", "a PEM text without a private key"),
            (TestKey.p256 + "\n" + TestKey.ed25519, "more than one private key"),
            (TestKey.encrypted, "it is encrypted: store it without a passphrase in a file with mode 0600"),
            (TestKey.secp256k1, "its type is not RSA, P-256, P-384, P-521 or Ed25519"),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "not a private key"),
            ("-----BEGIN PRIVATE KEY-----\nA=A\n-----END PRIVATE KEY-----", "not base64"),
            ("-----BEGIN PRIVATE KEY-----", "a PEM text without a private key"),
            ("-----BEGIN RSA PRIVATE KEY-----\nDEK-Info: x\nAAAA\n-----END RSA PRIVATE KEY-----", "it is encrypted: "),
        ]
        for (text, reason) in cases {
            let error = #expect(throws: CryptographyError.self) { try PrivateKey(pem: Secret(text)) }
            guard case .invalidKey(let found)? = error else { continue }
            #expect(found.hasPrefix(reason))
        }
    }

    @Test func `halves that do not belong together are refused`() throws {
        let mine = try PrivateKey.generate(.p256).publicKey
        let number = Secret(bytes: [UInt8](repeating: 7, count: 32))
        #expect(throws: CryptographyError.self) { try PrivateKey(mine, numbers: [number]) }
        let edwards = try PrivateKey.generate(.ed25519).publicKey
        #expect(throws: CryptographyError.self) { try PrivateKey(edwards, numbers: [number]) }
        let rsa = try PrivateKey.generate(.rsa2048).publicKey
        #expect(throws: CryptographyError.self) {
            try PrivateKey(rsa, numbers: [Secret](repeating: number, count: 6))
        }
    }

    @Test func `numbers of any size and count are refused without a crash`() throws {
        for family in [PrivateKey.Family.rsa2048, .p256, .ed25519] {
            let key = try PrivateKey.generate(family).publicKey
            for size in [0, 1, 31, 33, 1024, 1025, 70_000] {
                for count in [0, 1, 5, 6, 7] {
                    let numbers = [Secret](
                        repeating: Secret(bytes: [UInt8](repeating: 0xFF, count: size)), count: count)
                    #expect(throws: CryptographyError.self) { try PrivateKey(key, numbers: numbers) }
                }
            }
        }
    }
}
