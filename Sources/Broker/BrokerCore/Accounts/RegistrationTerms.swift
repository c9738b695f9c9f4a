/// What the client of an account is registered with again (RFC 7591), if the provider does not accept the client that it
/// has registered for the account. These are settings of the configuration, which the daemon does not change.
public struct RegistrationTerms: Sendable, Equatable {
    public let issuer: String
    public let scopes: [String]
    public let redirectURI: String?
    /// Nil for a client without a secret.
    public let authentication: String?
    public let responseMode: String?
    /// The path of the certificates that are trusted instead of the system's; nil for the system's.
    public let certificateFile: String?

    public init(
        issuer: String, scopes: [String], redirectURI: String?, authentication: String?, responseMode: String?,
        certificateFile: String?
    ) {
        self.issuer = issuer
        self.scopes = scopes
        self.redirectURI = redirectURI
        self.authentication = authentication
        self.responseMode = responseMode
        self.certificateFile = certificateFile
    }
}
