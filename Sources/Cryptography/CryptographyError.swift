/// Why libcrypto could not do what was asked. Never holds key material. A signature that does not verify is no error:
/// it is `false`.
public enum CryptographyError: Error, Sendable, Equatable {
    /// The key's numbers are not a key that we use; `reason` is our own sentence.
    case invalidKey(reason: String)
    /// The algorithm does not belong to the key's type or curve.
    case algorithmMismatch
    /// libcrypto refused an operation that should succeed: no memory, or a provider that is not loaded.
    case failed(operation: String)
}
