internal import COpenSSL
internal import Cryptography
internal import Secrets

/// Our side of a Diffie-Hellman key agreement in the second Oakley group (RFC 2409 section 6.2).
@safe final class KeyAgreement {
    private static let length = 128
    private let prime: OpaquePointer
    private let exponent: OpaquePointer
    /// The public number, for the service.
    let publicNumber: [UInt8]

    init() throws(SecretServiceError) {
        let refusal = SecretServiceError.failed(reason: "libcrypto cannot agree on a key")
        guard let prime = unsafe BN_get_rfc2409_prime_1024(nil) else { throw refusal }
        guard let exponent = unsafe BN_secure_new() else {
            unsafe BN_free(prime)
            throw refusal
        }
        unsafe self.prime = prime
        unsafe self.exponent = exponent
        unsafe BN_set_flags(exponent, BN_FLG_CONSTTIME)
        let isDrawn = unsafe BN_priv_rand_range(exponent, prime) == 1
        guard isDrawn, let number = unsafe KeyAgreement.power([2], exponent, prime) else {
            publicNumber = []
            throw refusal
        }
        publicNumber = number
    }

    deinit {
        unsafe BN_clear_free(exponent)
        unsafe BN_free(prime)
    }

    /// The shared AES key: HKDF with SHA-256 without salt and info (RFC 5869) over the shared number, padded to the
    /// prime's length. Nil for the public numbers 0, 1, p - 1 and those not below p, with which the key could be
    /// guessed.
    func key(with theirs: [UInt8]) -> Secret? {
        guard theirs.count <= KeyAgreement.length, isUsable(theirs) else { return nil }
        guard var shared = unsafe KeyAgreement.power(theirs, exponent, prime) else { return nil }
        defer { shared.erase() }
        return try? KeyDerivation.derive(from: Secret(bytes: shared), purpose: "", length: 16)
    }

    private func isUsable(_ number: [UInt8]) -> Bool {
        guard let value = unsafe BN_bin2bn(number, Int32(number.count), nil), let limit = unsafe BN_dup(prime) else {
            return false
        }
        defer {
            unsafe BN_free(value)
            unsafe BN_free(limit)
        }
        return unsafe BN_sub_word(limit, 1) == 1 && BN_cmp(value, BN_value_one()) > 0 && BN_cmp(value, limit) < 0
    }

    /// base^exponent mod prime, padded to the prime's length.
    private static func power(_ base: [UInt8], _ exponent: OpaquePointer, _ prime: OpaquePointer) -> [UInt8]? {
        guard let base = unsafe BN_bin2bn(base, Int32(base.count), nil), let result = unsafe BN_secure_new(),
            let context = unsafe BN_CTX_new()
        else { return nil }
        defer {
            unsafe BN_free(base)
            unsafe BN_clear_free(result)
            unsafe BN_CTX_free(context)
        }
        var bytes = [UInt8](repeating: 0, count: length)
        guard unsafe BN_mod_exp(result, base, exponent, prime, context) == 1,
            unsafe BN_bn2binpad(result, &bytes, Int32(length)) == Int32(length)
        else { return nil }
        return bytes
    }
}
