internal import BrokerCore
internal import OAuth
internal import RingbackBase

/// Which user the provider's page is meant for (OpenID Connect Core section 3.1.2.1). Without it, a browser that has a
/// session at the provider continues as the user of that session.
struct UserGuidance: Sendable, Equatable {
    /// The user of the current session.
    var loginHint: String?
    /// The user is to choose one.
    var asksForChoice = false

    /// An authorization request with a longer hint may exceed what servers accept as a URL.
    private static let longestHint = 256

    init() {}

    /// A sign-in of an account with a session is for the same user, unless the request allows another one. The first
    /// sign-in of a second account at a provider is probably for another user than the first account's.
    init(for provider: Provider, _ request: SignInRequest, in context: SignInContext) async {
        let account = provider.account
        let session = await context.sessions.held(account.name)
        if session == nil || request.switchesSubject {
            let isSecond = session == nil ? await context.hasSignedInNeighbour(account) : false
            asksForChoice = request.switchesSubject || isSecond
        } else if account.page.sendsLoginHint, let session, provider.rules.isIssuer(of: session),
            let name = session.loginName, name.utf8.count <= UserGuidance.longestHint
        {
            loginHint = name
        }
    }

    /// The name of the user for the page; nil if there is none. Other servers than those of OpenID Connect need not
    /// know the parameter.
    func hint(at metadata: ProviderMetadata) -> (String, String)? {
        let isGitHub = metadata.userinfoDialect == .gitHub
        guard let loginHint, metadata.issuer != nil || isGitHub else { return nil }
        return (isGitHub ? "login" : "login_hint", loginHint)
    }

    /// The value of `prompt`; nil if the page asks for nothing. Not every server takes two values at once.
    func prompt(asksForConsent: Bool, _ metadata: ProviderMetadata, at account: Account) -> String? {
        let announced = metadata.promptValues ?? []
        let knowsChoice = announced.contains("select_account") || ProviderPreset.hasAccountChooser(account.provider)
        guard asksForChoice, knowsChoice else { return asksForConsent ? "consent" : nil }
        guard asksForConsent else { return "select_account" }
        return announced.contains("consent") ? "select_account consent" : "consent"
    }
}

extension OAuthAccount {
    /// True unless the session comes from another issuer than the one that is asked now: an MCP server may name another
    /// one at each sign-in, which must not learn the user's name.
    fileprivate func isIssuer(of session: Session) -> Bool {
        guard let mcp else { return true }
        return MCPConnection(of: session, at: mcp.server)?.issuer == mcp.issuer
    }
}

extension Session {
    var loginName: String? { (user?["preferred_username"] ?? user?["email"])?.string }
}
