internal import RingbackBase

/// The claims of a self-issued assertion: the client signs its own authorization grant (RFC 7521 section 3).
public struct SelfIssuedAssertion: Sendable, Equatable {
    /// The user for whom the client acts; nil if it acts for itself.
    public let subject: String?
    /// What the provider wants as `aud`; nil for the URL of the token endpoint, byte for byte.
    public let audience: String?

    public init(subject: String? = nil, audience: String? = nil) {
        self.subject = subject
        self.audience = audience
    }

    /// A new assertion, signed with the client's key (RFC 7523 section 2.1). The scope is a claim too: Google and Docusign
    /// read it only there. Nil if the registration has no key, or libcrypto fails.
    public func signed(by registration: ClientRegistration, scope: [String]?, endpoint: String) -> Assertion? {
        let text = registration.assertion?.text(
            clientID: registration.clientID, subject: subject, audience: audience ?? endpoint,
            scope: scope.flatMap(ScopeList.text))
        return text.flatMap { try? Assertion(parsing: $0) }
    }
}
