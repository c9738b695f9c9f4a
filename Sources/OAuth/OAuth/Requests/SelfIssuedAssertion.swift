internal import RingbackBase

/// What an assertion says that a client issues itself as an authorization grant (RFC 7521 section 3).
public struct SelfIssuedAssertion: Sendable, Equatable {
    /// The user for whom the client acts; nil if it acts for itself.
    public let subject: String?
    /// What the provider wants as `aud`; nil for the URL of the token endpoint, byte for byte.
    public let audience: String?

    public init(subject: String? = nil, audience: String? = nil) {
        self.subject = subject
        self.audience = audience
    }
}

extension TokenRequest {
    /// Exchanges a new assertion, signed with the client's key (RFC 7523 section 2.1). It names the client and proves it,
    /// so the form has no `client_id` and no client authentication (RFC 7521 section 4.1). The scope is a claim too: Google
    /// and Docusign read it only there. Nil if the registration has no key, or libcrypto fails.
    static func selfIssued(
        _ assertion: SelfIssuedAssertion, scope: [String]?, audience: String?, resource: String?,
        registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest? {
        let text = registration.assertion?.text(
            clientID: registration.clientID, subject: assertion.subject, audience: assertion.audience ?? endpoint,
            scope: scope.flatMap(ScopeList.text))
        guard let text else { return nil }
        return .form(
            [("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", text.revealed())]
                + target(scope, audience, resource), to: endpoint, by: ClientRegistration(clientID: ""))
    }
}
