import Cryptography
import Testing

@Suite struct `Private key` {
    @Test(arguments: PrivateKey.Family.allCases)
    func `a key signs with the algorithms of its type and no other`(family: PrivateKey.Family) throws {
        let key = try PrivateKey.generate(family)
        let stranger = try PrivateKey.generate(family)
        let message = Array("to be signed".utf8)
        var fitting: Set<SignatureAlgorithm> = []
        for algorithm in SignatureAlgorithm.allCases {
            guard key.publicKey.fits(algorithm) else {
                #expect(throws: CryptographyError.algorithmMismatch) {
                    try key.sign(message: message, algorithm: algorithm)
                }
                continue
            }
            fitting.insert(algorithm)
            let signature = try key.sign(message: message, algorithm: algorithm)
            #expect(key.publicKey.verify(signature: signature, message: message, algorithm: algorithm))
            #expect(!key.publicKey.verify(signature: signature, message: [], algorithm: algorithm))
            #expect(!stranger.publicKey.verify(signature: signature, message: message, algorithm: algorithm))
        }
        let expected: Set<SignatureAlgorithm> =
            switch family {
            case .rsa2048: [.rs256, .rs384, .rs512, .ps256, .ps384, .ps512]
            case .p256: [.es256]
            case .p384: [.es384]
            case .p521: [.es512]
            case .ed25519: [.edDSA]
            }
        #expect(fitting == expected)
    }

    @Test(arguments: [
        (PrivateKey.Family.p256, SignatureAlgorithm.es256, 64), (.p384, .es384, 96), (.p521, .es512, 132),
    ])
    func `ECDSA halves keep their length when a number is short`(
        family: PrivateKey.Family, algorithm: SignatureAlgorithm, length: Int
    ) throws {
        let key = try PrivateKey.generate(family)
        // One signature of 128 has a half with a leading zero byte.
        for round in 0..<300 {
            let message = Array("\(round)".utf8)
            let signature = try key.sign(message: message, algorithm: algorithm)
            #expect(signature.count == length)
            #expect(key.publicKey.verify(signature: signature, message: message, algorithm: algorithm))
        }
    }

    @Test func `the published numbers make the same key`() throws {
        let rsa = try PrivateKey.generate(.rsa2048).publicKey
        guard case .rsa(let modulus, let exponent) = rsa.parts else { throw CryptographyError.algorithmMismatch }
        #expect(modulus.count == 256)
        #expect(exponent == [1, 0, 1])
        #expect(try PublicKey(rsaModulus: modulus, exponent: exponent) == rsa)
        let curved = try PrivateKey.generate(.p256).publicKey
        guard case .ellipticCurve(let curve, let x, let y) = curved.parts else {
            throw CryptographyError.algorithmMismatch
        }
        #expect(try PublicKey(curve: curve, x: x, y: y) == curved)
        let edwards = try PrivateKey.generate(.ed25519).publicKey
        guard case .ed25519(let bytes) = edwards.parts else { throw CryptographyError.algorithmMismatch }
        #expect(try PublicKey(ed25519: bytes) == edwards)
        #expect(rsa != curved)
    }

    @Test func `many threads may use one key`() async throws {
        let key = try PrivateKey.generate(.p256)
        let results = await withTaskGroup(of: Bool.self) { group in
            for index in 0..<64 {
                group.addTask {
                    let message = Array("\(index)".utf8)
                    guard let signature = try? key.sign(message: message, algorithm: .es256) else { return false }
                    return key.publicKey.verify(signature: signature, message: message, algorithm: .es256)
                }
            }
            return await group.reduce(true) { $0 && $1 }
        }
        #expect(results)
    }
}
