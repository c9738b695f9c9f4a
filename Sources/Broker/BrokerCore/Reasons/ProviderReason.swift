/// Why a response or an endpoint of a provider cannot be used, whatever the kind of its account.
public enum ProviderReason: Sendable, Equatable {
    case tooLarge(host: String)
    case notHTTP(host: String)
    /// An endpoint is neither https nor http on a loopback address.
    case endpointNotAllowed
    case endpointNotURL
    case noResponseInTime
    /// There is no connection, or no trusted one. `cause` is the transport's, and ends a sentence.
    case noConnection(cause: String)
}
