internal import HTTPMessages

/// Checks what is requested of a downscoped token, before any request to a provider.
extension TokenKey {
    private static let maxScopes = 100

    /// The first parameter that cannot be sent, and why; nil if all can be.
    public var mistake: (parameter: String, reason: RequestReason)? {
        if let scopes, scopes.count > TokenKey.maxScopes || !scopes.allSatisfy(TokenDownscoping.isScope) {
            return ("scope", .scopes(most: TokenKey.maxScopes))
        }
        if let audience, !TokenDownscoping.isAudience(audience) {
            return ("audience", .textWithoutControls)
        }
        if let resource, !TokenDownscoping.isResource(resource) {
            return ("resource", .absoluteURI)
        }
        return nil
    }
}
