/// Why an operation of libcrypto failed. It never contains key material. If a signature does not verify, the result is
/// `false`, and no error is thrown.
public enum CryptographyError: Error, Sendable, Equatable {
    /// The key is malformed or of a kind that is not supported. `reason` is a fixed text of this module.
    case invalidKey(reason: String)
    /// The algorithm does not belong to the key's type or curve.
    case algorithmMismatch
    /// An operation of libcrypto failed that normally succeeds. Possible causes are a lack of memory or a libcrypto
    /// provider of algorithms that is not loaded.
    case failed(operation: String)
}
