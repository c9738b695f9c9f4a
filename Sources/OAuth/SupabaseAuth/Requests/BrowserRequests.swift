public import HTTPMessages
public import Secrets
internal import StrictJSON

/// A sign-in through the browser with one of the project's providers.
public struct BrowserSignIn: Sendable, Equatable {
    /// `google`, `apple`, `custom:acme` and so on; the letter case is ignored.
    public var provider: String
    /// Added to the provider's default scopes; for a `custom:` provider they replace them.
    public var scopes: [String]
    /// Where the browser comes back to: ``SupabaseRedirect/url``.
    public var redirectTo: String
    /// The challenge of the flow's ``PKCE``.
    public var challenge: String
    /// Additional parameters for the provider: `prompt`, `login_hint`, `access_type` ...
    public var params: [(name: String, value: String)]

    /// Creates a request.
    public init(
        provider: String, scopes: [String] = [], redirectTo: String, challenge: String,
        params: [(name: String, value: String)] = []
    ) {
        self.provider = provider
        self.scopes = scopes
        self.redirectTo = redirectTo
        self.challenge = challenge
        self.params = params
    }

    public static func == (left: BrowserSignIn, right: BrowserSignIn) -> Bool {
        left.provider == right.provider && left.scopes == right.scopes && left.redirectTo == right.redirectTo
            && left.challenge == right.challenge && left.params.elementsEqual(right.params, by: ==)
    }

    /// The query of the authorization endpoint. Our own parameters come first, because the server uses the first of two
    /// parameters with the same name. Throws for `oauth_provider`.
    func query() throws(FieldError) -> [(String, String)] {
        var query = [("provider", try SupabaseProject.checkedProvider(provider))]
        if !scopes.isEmpty { query.append(("scopes", scopes.joined(separator: " "))) }
        query.append(("redirect_to", redirectTo))
        query.append(("code_challenge", challenge))
        query.append(("code_challenge_method", SupabaseProject.challengeMethod))
        return query + params.map { ($0.name, $0.value) }
    }
}

/// Requests for sign-ins in a browser.
extension SupabaseProject {
    /// The URL to open. It is not secret: it contains only the challenge and the flow's key. Throws for
    /// `oauth_provider`.
    public func authorizationURL(_ signIn: BrowserSignIn) throws(FieldError) -> String {
        "\(authURL)/authorize?\(FormEncoding.encode(try signIn.query()))"
    }

    /// A request to the same URL that the daemon sends itself. It can then report a disabled provider as an error; a
    /// browser would show a page of JSON. See ``ProviderRedirect``. The gateway does not require the project's key
    /// here, but the request has it anyway. Throws for `oauth_provider`.
    public func authorization(_ signIn: BrowserSignIn) throws(FieldError) -> HTTPRequest {
        request("GET", "/authorize", query: try signIn.query())
    }

    /// Requests the URL at which the user of `bearer` adds an identity; the response is a ``URLResponse``. The code
    /// that comes back belongs to a new session of the same user. Throws for `oauth_provider`.
    public func identityLink(_ signIn: BrowserSignIn, bearer: Secret) throws(FieldError) -> HTTPRequest {
        let query = try signIn.query() + [("skip_http_redirect", "true")]
        return request("GET", "/user/identities/authorize", query: query, bearer: bearer)
    }

    /// Selects the identity provider for single sign-on.
    public enum Organization: Sendable, Equatable {
        /// By the domain of the user's e-mail address.
        case domain(String)
        /// By the UUID of the provider in the project.
        case providerID(String)
    }

    /// Requests the URL of an organization's identity provider; the response is a ``URLResponse``. This is the only
    /// request with `redirect_to` in the body. The sign-in must be finished within 2 minutes. Throws for `domain` and
    /// `provider_id`.
    public func singleSignOn(
        _ organization: Organization, redirectTo: String, challenge: String, captcha: Secret? = nil
    ) throws(FieldError) -> HTTPRequest {
        var body = JSONObject()
        switch organization {
        case .domain(let domain):
            let text = domain.lowercased()
            // The rules for the domain of an e-mail address apply.
            guard (try? EmailAddress(parsing: "a@\(text)")) != nil else {
                throw FieldError(field: "domain", reason: "not a domain such as example.org")
            }
            body["domain"] = .string(text)
        case .providerID(let id):
            guard PlainText.isUUID(id) else { throw FieldError(field: "provider_id", reason: "not a UUID") }
            body["provider_id"] = .string(id)
        }
        body["redirect_to"] = .string(redirectTo)
        // Without this the server responds with a redirect.
        body["skip_http_redirect"] = true
        body.set(challenge: challenge)
        body.set(captcha: captcha)
        return request("POST", "/sso", body: body)
    }
}
