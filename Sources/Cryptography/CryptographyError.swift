/// Why an operation of libcrypto failed. It never contains key material. A signature that does not verify is no error:
/// the result is `false`.
public enum CryptographyError: Error, Sendable, Equatable {
    /// The key is malformed or of a kind that we do not use. `reason` is our own text.
    case invalidKey(reason: String)
    /// The algorithm does not belong to the key's type or curve.
    case algorithmMismatch
    /// An operation of libcrypto failed that should succeed: out of memory, or a provider of algorithms is not loaded.
    case failed(operation: String)
}
