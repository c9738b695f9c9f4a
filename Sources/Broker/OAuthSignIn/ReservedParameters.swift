public import BrokerCore
internal import OAuth

extension SignInRequest {
    /// The authorization parameters that only Ringback sets.
    public static var reservedParameters: Set<String> { AuthorizationRequest.reservedParameters }
}
