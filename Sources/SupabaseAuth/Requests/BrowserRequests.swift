public import HTTPMessages
public import Secrets
internal import StrictJSON

/// What a browser flow at a provider is asked for.
public struct BrowserSignIn: Sendable, Equatable {
    /// `google`, `apple`, `custom:acme` and so on, in any letter case.
    public var provider: String
    /// Added to the provider's default scopes; for a `custom:` provider, in their place.
    public var scopes: [String]
    /// Where to come back to: ``SupabaseRedirect/url``.
    public var redirectTo: String
    /// The challenge of the flow's ``PKCE``.
    public var challenge: String
    /// Passed on to the provider: `prompt`, `login_hint`, `access_type` ...
    public var params: [(name: String, value: String)]

    /// A request for the browser.
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

    /// The query of the authorization endpoint. What is ours comes first: a server that takes the first of two
    /// parameters takes ours.
    func query() throws(FieldError) -> [(String, String)] {
        var query = [("provider", try SupabaseProject.checkedProvider(provider))]
        if !scopes.isEmpty { query.append(("scopes", scopes.joined(separator: " "))) }
        query.append(("redirect_to", redirectTo))
        query.append(("code_challenge", challenge))
        query.append(("code_challenge_method", SupabaseProject.challengeMethod))
        return query + params.map { ($0.name, $0.value) }
    }
}

/// Requests that send a person to a browser.
extension SupabaseProject {
    /// The URL to open. It is public: the challenge and the flow's key are not secret. Throws for `oauth_provider`.
    public func authorizationURL(_ signIn: BrowserSignIn) throws(FieldError) -> String {
        "\(authURL)/authorize?\(FormEncoding.encode(try signIn.query()))"
    }

    /// The same URL, asked by us: a disabled provider is then an error that can be told, and no page of JSON in front
    /// of the person; see ``AuthorizationAnswer``. The gateway leaves this address open; the key goes along all the
    /// same.
    public func authorization(_ signIn: BrowserSignIn) throws(FieldError) -> HTTPRequest {
        request("GET", "/authorize", query: try signIn.query())
    }

    /// The URL at which the user of `bearer` adds an identity; the answer is a ``URLResponse``. The code that comes back
    /// belongs to a new session of the same user.
    public func identityLink(_ signIn: BrowserSignIn, bearer: Secret) throws(FieldError) -> HTTPRequest {
        let query = try signIn.query() + [("skip_http_redirect", "true")]
        return request("GET", "/user/identities/authorize", query: query, bearer: bearer)
    }

    /// Whose identity provider a single sign-on goes to.
    public enum Organization: Sendable, Equatable {
        /// The domain of the person's address.
        case domain(String)
        /// The UUID of the provider in the project.
        case providerID(String)
    }

    /// The URL of an organization's identity provider; the answer is a ``URLResponse``. The one request whose
    /// `redirect_to` is in the body. The whole way there and back must fit 2 minutes. Throws for `domain` and
    /// `provider_id`.
    public func singleSignOn(
        _ organization: Organization, redirectTo: String, challenge: String, captcha: Secret? = nil
    ) throws(FieldError) -> HTTPRequest {
        var body = JSONObject()
        switch organization {
        case .domain(let domain):
            let text = domain.lowercased()
            // The rules of an address's domain are those of a domain.
            guard (try? EmailAddress(parsing: "a@\(text)")) != nil else {
                throw FieldError(field: "domain", reason: "not a domain such as example.org")
            }
            body["domain"] = .string(text)
        case .providerID(let id):
            guard PlainText.isUUID(id) else { throw FieldError(field: "provider_id", reason: "not a UUID") }
            body["provider_id"] = .string(id)
        }
        body["redirect_to"] = .string(redirectTo)
        // Without this the server redirects to a page of the identity provider's.
        body["skip_http_redirect"] = true
        body.set(challenge: challenge)
        body.set(captcha: captcha)
        return request("POST", "/sso", body: body)
    }
}
