internal import HTTPMessages

/// Checks what a downscoped token is asked for, before any provider is asked.
extension TokenKey {
    private static let maxScopes = 100

    /// The first parameter that cannot be sent, and why; nil if all can be.
    public var mistake: (parameter: String, reason: String)? {
        if let scopes, scopes.count > TokenKey.maxScopes || !scopes.allSatisfy(TokenDownscoping.isScope) {
            return (
                "scope",
                "it is at most \(TokenKey.maxScopes) scopes with spaces between them: printable ASCII, no quotes or "
                    + "backslashes"
            )
        }
        if let audience, !TokenDownscoping.isAudience(audience) {
            return ("audience", "it is a text without control characters")
        }
        if let resource, !TokenDownscoping.isResource(resource) {
            return ("resource", "it is an absolute URI without a fragment (RFC 8707)")
        }
        return nil
    }
}
