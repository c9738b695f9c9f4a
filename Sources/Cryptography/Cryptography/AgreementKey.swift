internal import COpenSSL
public import RingbackBase

/// An X25519 key (RFC 7748). With its public part a text can be sealed that only the holder of the key can open.
public struct AgreementKey: Sendable {
    /// Of either part, in bytes.
    public static let length = 32
    public let publicKey: [UInt8]
    /// The private part, for storing the key.
    public let secret: Secret
    private let handle: KeyHandle

    /// Throws `failed` if libcrypto fails.
    public static func generate() throws(CryptographyError) -> AgreementKey {
        var bytes = RandomToken.bytes(length)
        defer { bytes.erase() }
        return try AgreementKey(secret: Secret(bytes: bytes))
    }

    /// Throws `invalidKey` for another length than 32 bytes, and `failed` if libcrypto fails.
    public init(secret: Secret) throws(CryptographyError) {
        guard secret.count == AgreementKey.length else { throw .invalidKey(reason: "an X25519 key has 32 bytes") }
        guard let handle = KeyHandle(agreementKey: secret) else { throw .failed(operation: "read a key") }
        self.secret = secret
        self.handle = handle
        publicKey = try handle.rawPublicKey()
    }

    /// The secret that only the holders of the two keys can derive. Throws `invalidKey` for a public key with which
    /// every result is zero.
    func agree(with publicKey: [UInt8]) throws(CryptographyError) -> Secret {
        guard publicKey.count == AgreementKey.length, let secret = handle.agree(withX25519: publicKey) else {
            throw .invalidKey(reason: "it is no X25519 public key")
        }
        return secret
    }
}

/// Sealed for the holder of an ``AgreementKey``: X25519, HKDF with SHA-256, AES-256-GCM. The result is the public part
/// of a key that was made for this text alone, and the ``SealedBox``. It does not say who sealed it.
public enum SealedForKey {
    private static let purpose = "ringback: sealed for an X25519 key, version 1"

    /// `context` is authenticated but not part of the result. Throws `invalidKey` if `publicKey` is none.
    public static func seal(
        _ text: Secret, for publicKey: [UInt8], context: [UInt8]
    ) throws(CryptographyError) -> [UInt8] {
        let own = try AgreementKey.generate()
        let key = try key(own.agree(with: publicKey), own.publicKey, publicKey)
        return own.publicKey + (try SealedBox.seal(text, with: key, context: context))
    }

    /// Nil if it was not sealed for this key and this context, or was changed. Throws `failed` if libcrypto fails.
    public static func open(
        _ bytes: [UInt8], with key: AgreementKey, context: [UInt8]
    ) throws(CryptographyError) -> Secret? {
        guard bytes.count > AgreementKey.length else { return nil }
        let theirs = Array(bytes.prefix(AgreementKey.length))
        let agreed: Secret
        do throws(CryptographyError) {
            agreed = try key.agree(with: theirs)
        } catch .invalidKey {
            return nil
        }
        return try SealedBox.open(
            bytes.dropFirst(AgreementKey.length), with: self.key(agreed, theirs, key.publicKey), context: context)
    }

    private static func key(
        _ agreed: Secret, _ sender: [UInt8], _ receiver: [UInt8]
    ) throws(CryptographyError) -> Secret {
        try KeyDerivation.derive(from: agreed, salt: sender + receiver, purpose: purpose)
    }
}

extension KeyHandle {
    /// X25519; nil if libcrypto cannot read it.
    fileprivate convenience init?(agreementKey secret: Secret) {
        let key = unsafe secret.withBytes { bytes in
            unsafe bytes.withUnsafeBytes { bytes in
                unsafe EVP_PKEY_new_raw_private_key(
                    EVP_PKEY_X25519, nil, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
            }
        }
        ERR_clear_error()
        guard let key = unsafe key else { return nil }
        unsafe self.init(owning: key)
    }
}
