internal import Cryptography
public import HTTPMessages
public import Secrets

/// How a client shows the token endpoint who it is (RFC 6749 section 2.3, OpenID Connect Core section 9), in the words
/// of the wire.
public enum ClientAuthentication: String, Sendable, Equatable, CaseIterable {
    /// A public client: it only names itself.
    case none = "none"
    /// Id and secret in the `Authorization` field.
    case clientSecretBasic = "client_secret_basic"
    /// Id and secret in the form.
    case clientSecretPost = "client_secret_post"
    /// A short-lived statement in the form, signed with the client's own key (RFC 7523).
    case privateKeyJWT = "private_key_jwt"
}

/// What the provider knows us as. The secret goes to the endpoints that authenticate clients and nowhere else.
public struct ClientRegistration: Sendable, Equatable {
    public let clientID: String
    public let authentication: ClientAuthentication
    /// Sent only where ``authentication`` wants one.
    public let secret: Secret?
    /// What `private_key_jwt` signs with; only the statement is ever sent.
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

    /// False if ``authentication`` needs a secret or a key and there is none.
    public var isComplete: Bool {
        switch authentication {
        case .none: true
        case .clientSecretBasic, .clientSecretPost: !(secret?.isEmpty ?? true)
        case .privateKeyJWT: assertion != nil
        }
    }

    /// Adds to a form request what the provider identifies the client by: its fields or its form, never both.
    public func authenticate(_ request: inout HTTPRequest) {
        switch authentication {
        case .none:
            // An assertion may speak for itself (RFC 7521 section 4.1).
            if !clientID.isEmpty { request.appendParameter("client_id", clientID) }
        case .clientSecretPost:
            request.appendParameter("client_id", clientID)
            request.appendParameter("client_secret", secret ?? Secret(""))
        case .clientSecretBasic:
            // RFC 6749 section 2.3.1: each part is form-encoded first, so that a colon in the id cannot move the seam.
            // A space is written %20, which form decoders and plain percent decoders read alike.
            let id = FormEncoding.escape(clientID)
            let password = FormEncoding.escape(secret?.revealed() ?? "")
            request.authorization = Secret("Basic " + Base64.encode(Array("\(id):\(password)".utf8)))
        case .privateKeyJWT:
            request.appendParameter("client_id", clientID)
            // Without one the provider refuses the request: nothing is sent in its place.
            guard let text = assertion?.text(clientID: clientID) else { return }
            request.appendParameter("client_assertion_type", ClientAssertion.type)
            request.appendParameter("client_assertion", text)
        }
    }
}
