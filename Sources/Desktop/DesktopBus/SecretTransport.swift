internal import COpenSSL
internal import Cryptography
internal import Secrets

/// How secrets are transferred within a session of the Secret Service: encrypted with an agreed key, so that a monitor
/// of the bus cannot read them. If the service supports no encryption, they are transferred unencrypted.
///
/// `dh-ietf1024-sha256-aes128-cbc-pkcs7` is the only algorithm of the interface. It protects against reading, not
/// against a man in the middle: the bus itself is trusted.
@safe final class SecretTransport {
    static let agreedAlgorithm = "dh-ietf1024-sha256-aes128-cbc-pkcs7"
    static let plainAlgorithm = "plain"
    private static let blockLength = 16

    /// The session's object path.
    let session: String
    /// The AES key; empty if secrets are transferred unencrypted.
    private var key: [UInt8]

    /// A session without encryption.
    init(plainSession session: String) {
        self.session = session
        key = []
    }

    /// A session with a key of 16 bytes.
    init(session: String, key: Secret) {
        self.session = session
        self.key = key.revealedBytes()
    }

    deinit {
        key.erase()
    }

    /// Encrypts a secret. Returns the parameters (an initialization vector) and the value of a secret structure.
    func seal(_ secret: Secret) throws(SecretServiceError) -> (parameters: [UInt8], value: [UInt8]) {
        var bytes = secret.revealedBytes()
        guard !key.isEmpty else { return ([], bytes) }
        defer { bytes.erase() }
        let vector = RandomToken.bytes(SecretTransport.blockLength)
        guard let value = crypt(bytes, vector, isSealing: true) else {
            throw .failed(reason: "libcrypto cannot encrypt")
        }
        return (vector, value)
    }

    /// Decrypts a secret structure; nil if the service used another key.
    func open(parameters: [UInt8], value: [UInt8]) -> Secret? {
        guard !key.isEmpty else { return Secret(bytes: value) }
        guard parameters.count == SecretTransport.blockLength else { return nil }
        guard var bytes = crypt(value, parameters, isSealing: false) else { return nil }
        defer { bytes.erase() }
        return Secret(bytes: bytes)
    }

    private func crypt(_ input: [UInt8], _ vector: [UInt8], isSealing: Bool) -> [UInt8]? {
        guard let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: input.count + SecretTransport.blockLength)
        var count: Int32 = 0
        var rest: Int32 = 0
        let direction: Int32 = isSealing ? 1 : 0
        guard unsafe EVP_CipherInit_ex(context, EVP_aes_128_cbc(), nil, key, vector, direction) == 1,
            unsafe EVP_CipherUpdate(context, &output, &count, input, Int32(input.count)) == 1
        else { return nil }
        defer { output.erase() }
        let isWhole = unsafe output.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress else { return false }
            return unsafe EVP_CipherFinal_ex(context, start + Int(count), &rest) == 1
        }
        ERR_clear_error()
        return isWhole ? Array(output[..<Int(count + rest)]) : nil
    }
}
