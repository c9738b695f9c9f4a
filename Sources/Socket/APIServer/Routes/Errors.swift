internal import RingbackAPI

/// Problems that many operations may get.
extension Set<ErrorCode> {
    /// Of an operation on an account.
    static let ofAccount: Set<ErrorCode> = [.accountNotFound]
    /// Of an operation that asks a provider.
    static let ofProvider: Set<ErrorCode> = [
        .providerError, .invalidProviderResponse, .providerUnreachable, .rateLimited, .invalidConfiguration,
        .vaultLocked, .vaultUnreachable, .timeout,
    ]
    /// Of an operation that asks a Supabase project with an account's session.
    static let ofSession = ofAccount.and(ofProvider).and([
        .signInRequired, .sessionExpired, .refreshRefused, .methodUnsupported, .validationFailed, .stateConflict,
        .accessDenied, .invalidCredentials, .notFound, .userNotFound, .weakPassword, .emailAlreadyInUse,
        .passwordResetFailed,
        .payloadTooLarge, .flowExpired, .invalidCallback,
    ])
    /// Of an operation that may begin or continue a flow at a Supabase project.
    static let ofFlow = ofSession.and([.flowNotFound, .portInUse])
    static let ofVault: Set<ErrorCode> = [.vaultLocked, .vaultUnreachable, .stateConflict, .shuttingDown, .timeout]
    static let ofRegistration = ofProvider.and([.validationFailed, .stateConflict])

    /// Both sets.
    func and(_ others: Set<ErrorCode>) -> Set<ErrorCode> { union(others) }
}
