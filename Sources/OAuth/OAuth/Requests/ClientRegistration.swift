internal import Encodings
public import HTTPMessages
public import Secrets

/// The client authentication methods (RFC 6749 section 2.3, OpenID Connect Core section 9). Raw values are their names
/// on the wire.
public enum ClientAuthentication: String, Sendable, Equatable, CaseIterable {
    /// A public client, which only sends its id.
    case none = "none"
    /// Id and secret in the `Authorization` field.
    case clientSecretBasic = "client_secret_basic"
    /// Id and secret in the form.
    case clientSecretPost = "client_secret_post"
    /// A short-lived assertion in the form, signed with the client's own key (RFC 7523).
    case privateKeyJWT = "private_key_jwt"
}

/// Our client registration at a provider. The secret is sent only to endpoints that authenticate clients.
public struct ClientRegistration: Sendable, Equatable {
    public let clientID: String
    public let authentication: ClientAuthentication
    /// Used only if ``authentication`` needs a secret.
    public let secret: Secret?
    /// Creates the assertions for `private_key_jwt`. The key itself is never sent.
    public let assertion: ClientAssertion?

    public init(
        clientID: String, authentication: ClientAuthentication = .none, secret: Secret? = nil,
        assertion: ClientAssertion? = nil
    ) {
        self.clientID = clientID
        self.authentication = authentication
        self.secret = secret
        self.assertion = assertion
    }

    /// False if ``authentication`` needs a secret or a key that is missing.
    public var isComplete: Bool {
        switch authentication {
        case .none: true
        case .clientSecretBasic, .clientSecretPost: !(secret?.isEmpty ?? true)
        case .privateKeyJWT: assertion != nil
        }
    }

    /// Adds the client's identification to a form request, either in the fields or in the form.
    public func authenticate(_ request: inout HTTPRequest) {
        switch authentication {
        case .none:
            // In an assertion grant the client id may be missing (RFC 7521 section 4.1).
            if !clientID.isEmpty { request.appendParameter("client_id", clientID) }
        case .clientSecretPost:
            request.appendParameter("client_id", clientID)
            request.appendParameter("client_secret", secret ?? Secret(""))
        case .clientSecretBasic:
            // RFC 6749 section 2.3.1: id and secret are form-encoded first, so that a colon in the id is not taken for
            // the separator. A space is written as %20, which form decoders and percent decoders both accept.
            let id = FormEncoding.escape(clientID)
            let password = FormEncoding.escape(secret?.revealed() ?? "")
            request.authorization = Secret("Basic " + Base64.encode(Array("\(id):\(password)".utf8)))
        case .privateKeyJWT:
            request.appendParameter("client_id", clientID)
            // If signing fails, nothing is added, and the provider rejects the request.
            guard let text = assertion?.text(clientID: clientID) else { return }
            request.appendParameter("client_assertion_type", ClientAssertion.type)
            request.appendParameter("client_assertion", text)
        }
    }
}
