public import BrokerCore
public import OAuth
internal import RingbackBase

/// The provider of a service account. Each refresh is one request for one token, without a refresh token.
struct ServiceProvider: SignInProvider {
    /// For an account at an MCP server: as configured, without what the server announces.
    let provider: Provider
    let grant: ServiceGrant
    /// How what an MCP server announces is found; nil for an account at a provider.
    var walk: MCPWalk?

    func renewal(
        of session: Session, for key: TokenKey, because reason: RefreshReason
    ) async throws(BrokerError) -> Renewal {
        Renewal(
            presents: [],
            send: { _, _ throws(BrokerError) in
                let fetched = try await fetch(key, of: session, because: reason)
                return RenewalResponse(refreshToken: nil) { session throws(BrokerError) in
                    var session = session
                    session.proofKey = fetched.proofKey?.stored
                    session.tokens[key] = fetched.token
                    session.issuer = fetched.issuer
                    session.tokenEndpointOrigin = fetched.origin
                    session.attachments[MCPConnection.name] = fetched.connection?.attachment
                    if key == .own, let scope = fetched.token.scope { session.scope = scope }
                    return session
                }
            },
            // An error about one caller's requested scope or audience says nothing about the account.
            meaning: { key != .own && $0.concernsRequestAlone ? .requestOnly(isUnchanged: true) : .unknown })
    }

    func revoke(_ session: Session, endingAll: Bool) async throws(BrokerError) -> Bool {
        guard let walk else { return try await provider.revoke(session) }
        return try await walk.provider(of: session)?.revoke(session) ?? false
    }

    func endSessionPage(
        of session: Session?, _ form: EndSessionForm
    ) async throws(BrokerError) -> EndSessionPage? {
        guard walk == nil else { return nil }
        return try await OAuthProvider(provider: provider).endSessionPage(of: session, form)
    }

    func diagnose(_ subject: DiagnosisSubject, of session: Session?) async -> Diagnosis {
        guard let walk else {
            return await ProviderDiagnosis(provider: provider).diagnosis(isOfService: true, of: subject)
        }
        return await MCPDiagnosis(account: walk.account, kind: walk.kind, tools: walk.tools, session: session)
            .diagnosis()
    }

    // MARK: Sign-ins

    /// A service is signed in by its configuration. Methods that need a user (a code, a password) are rejected, and so
    /// are options of an authorization request: they would have no effect.
    func check(_ request: SignInRequest) throws(BrokerError) -> SignInRequest {
        let account = provider.account
        guard request.method == .browser else {
            throw .methodUnsupported(
                .stated(
                    "\(account.name) is a service (\(grant.word)): it needs no sign-in, and has no method "
                        + "“\(request.method)”."))
        }
        let stated = [
            ("scopes", request.scopes != nil), ("params", !request.parameters.isEmpty),
            ("callback_port", request.callbackPort != nil),
        ]
        if let field = stated.first(where: \.1)?.0 {
            let text =
                "\(account.name) is a service (\(grant.word)): it needs no sign-in, and its configuration says what it "
                + "asks for"
            throw .invalid(field: field, reason: .stated(text))
        }
        return request
    }

    func begin(_ request: SignInRequest, in context: SignInContext) async throws(BrokerError) -> Beginning { .done }

    func redeem(
        _ proof: Proof, of flow: Flow, in context: SignInContext
    ) async throws(RedemptionFailure) -> Redemption {
        throw RedemptionFailure(.conflict(.stated("\(provider.account.name) is a service, which has no sign-in.")))
    }
}

extension ServiceProvider {
    private struct Fetched {
        let token: AccessToken
        let issuer: String
        /// The token endpoint's, to which a revocation may be sent.
        let origin: String
        let connection: MCPConnection?
        let proofKey: DPoPKey?
    }

    /// Fetches a token. What an MCP server announced for the last one is used again, unless that one was refused, or this
    /// request is: then the server is asked again.
    private func fetch(
        _ key: TokenKey, of session: Session, because reason: RefreshReason
    ) async throws(BrokerError) -> Fetched {
        guard let walk else { return try await fetch(key, of: session, at: provider, because: reason) }
        guard reason != .requested, let known = walk.provider(of: session) else {
            return try await fetch(key, of: session, at: try await walk.provider(), because: reason)
        }
        do throws(BrokerError) {
            return try await fetch(key, of: session, at: known, because: reason)
        } catch {
            guard case .serviceRefused = error, let moved = try? await walk.provider(),
                moved.rules.mcp != known.rules.mcp
            else { throw error }
            return try await fetch(key, of: session, at: moved, because: reason)
        }
    }

    /// What the key does not set is as configured. A refresh token in the response is not stored (RFC 6749 section
    /// 4.4.3). The session's tokens are all bound to the key of the first one.
    private func fetch(
        _ key: TokenKey, of session: Session, at provider: Provider, because reason: RefreshReason
    ) async throws(BrokerError) -> Fetched {
        let metadata = try await provider.metadata()
        try provider.proofs.check(metadata)
        var proofKey = try provider.proofs.key(of: session)
        if proofKey == nil { proofKey = try provider.proofs.newKey(metadata) }
        let registration = try await provider.registration(metadata)
        let scopes = key.scopes ?? provider.account.scopes
        var use = AssertionUse(
            audience: metadata.issuer ?? "", resource: walk?.kind.server.resource, scopes: scopes)
        let assertion = try await grant.assertion?.fetch(use)
        let tokens: TokenSet
        do throws(BrokerError) {
            do throws(BrokerError) {
                tokens = try await send(assertion, for: key, provenBy: proofKey, at: provider, metadata, registration)
            } catch {
                // It may have ended by the server's clock, or the server accepts each one once.
                guard grant.through != nil, case .serviceRefused(_, "invalid_grant", _) = error else { throw error }
                use.rejected = assertion
                let other = try await grant.assertion?.fetch(use)
                guard other != assertion else { throw error }
                tokens = try await send(other, for: key, provenBy: proofKey, at: provider, metadata, registration)
            }
        } catch {
            await provider.doubt(error, isRequested: reason == .requested)
            throw error
        }
        let origin = try WebURL.origin(of: metadata.tokenEndpoint)
        return Fetched(
            token: provider.accessToken(tokens, scope: scopes.joined(separator: " ")),
            issuer: metadata.issuer ?? origin, origin: origin, connection: provider.rules.mcp, proofKey: proofKey)
    }

    private func send(
        _ assertion: Assertion?, for key: TokenKey, provenBy proofKey: DPoPKey?, at provider: Provider,
        _ metadata: ProviderMetadata, _ registration: ClientRegistration
    ) async throws(BrokerError) -> TokenSet {
        let scope = key.scopes ?? provider.account.scopes
        let build = {
            let assertion =
                grant.type == .selfIssuedJWT
                ? grant.issued.signed(by: registration, scope: scope, endpoint: metadata.tokenEndpoint) : assertion
            return grant.type.request(
                assertion, of: grant.subjectType, scope: scope, audience: key.audience ?? grant.audience,
                resource: key.resource ?? grant.resource ?? provider.rules.mcp?.resource, registration: registration,
                endpoint: metadata.tokenEndpoint)
        }
        guard let request = build() else {
            let key = grant.type.needsAssertion ? "assertion_file" : "client_key_file"
            throw .misconfigured(.stated("\(provider.account.name) has no usable \(key)."))
        }
        let response = try await provider.proofs.send(provenBy: proofKey) { build() ?? request }
        do throws(OAuthError) {
            return try provider.proofs.tokens(issuedIn: response, hasKey: proofKey != nil)
        } catch {
            throw grant.through.flatMap { BrokerError(stepUpOf: $0, demandedIn: response) }
                ?? BrokerError(error, host: request.host).unquoting(registration.secret, assertion?.text)
                .ofService(provider.account)
        }
    }
}

extension BrokerError {
    /// A provider's error response to a service. No user can sign in again; the configuration must be changed.
    fileprivate func ofService(_ account: Account) -> BrokerError {
        guard case .provider(.refused(let code, let message)) = self else { return self }
        return .serviceRefused(account.name, code: code, message: message)
    }

    /// True for an error about the scope, audience or resource alone (RFC 6749 section 5.2, RFC 8693 section 2.2.2).
    var concernsRequestAlone: Bool {
        guard case .serviceRefused(_, let code, _) = self else { return false }
        return ["invalid_scope", "invalid_target", "invalid_request", "access_denied"].contains(code)
    }
}

/// How an account gets tokens without a user (RFC 6749 section 4.4, RFC 7522, RFC 7523, RFC 8693). Such an account is
/// signed in by its configuration alone. The vault stores nothing for it; after a restart its tokens are fetched again.
public struct ServiceGrant: Sendable {
    /// Where the assertion or subject token is read from, at every use: a platform may replace it at any time.
    public struct AssertionSource: Sendable {
        public let fetch: @Sendable (AssertionUse) async throws(BrokerError) -> Assertion
        public init(fetch: @escaping @Sendable (AssertionUse) async throws(BrokerError) -> Assertion) {
            self.fetch = fetch
        }
    }

    public let type: ServiceGrantType
    public let subjectType: ExchangedTokenType
    /// Nil if the client's own credentials suffice.
    public let assertion: AssertionSource?
    /// Names the source of the assertion. An account with another source counts as another service.
    public let assertionPlace: String?
    /// For `self_issued_jwt`.
    public let issued: SelfIssuedAssertion
    /// The audience of the account's own token; callers may name others.
    public let audience: String?
    public let resource: String?
    /// The account whose user the assertion is about; nil for a token of the platform.
    public private(set) var through: AccountName?

    public init(
        _ type: ServiceGrantType, subjectType: ExchangedTokenType = .jwt, assertion: AssertionSource? = nil,
        assertionPlace: String? = nil, issued: SelfIssuedAssertion = SelfIssuedAssertion(), audience: String? = nil,
        resource: String? = nil
    ) {
        self.type = type
        self.subjectType = subjectType
        self.assertion = assertion
        self.assertionPlace = assertionPlace
        self.issued = issued
        self.audience = audience
        self.resource = resource
    }

    /// A grant by assertions about the user of another account.
    public init(through name: AccountName, _ assertion: AssertionSource) {
        self.init(.jwtBearer, assertion: assertion, assertionPlace: "through \(name)")
        through = name
    }

    public var word: String { type.rawValue }

    /// Stands for the account's binding and for what its token is fetched with: it must not be used after a change.
    func bindingID(_ binding: SessionBinding, of account: Account) -> String {
        var parts = [word, binding.text] + account.scopes.sorted()
        parts += [audience, resource, assertionPlace].map { $0 ?? "" }
        if type == .tokenExchange { parts.append(subjectType.uri) }
        if type == .selfIssuedJWT { parts += [issued.subject, issued.audience].map { $0 ?? "" } }
        return parts.map { "\($0.utf8.count):\($0)" }.joined()
    }
}

extension AccountView {
    /// The name of the grant in the configuration; nil where users sign in.
    public var grant: String? { (kind as? OAuthAccount ?? (kind as? MCPAccount)?.rules)?.grant?.word }
}

extension Session {
    /// The session of a service has no tokens until a caller asks for one.
    static func ofService(_ account: Account, by clock: BrokerClock) -> Session {
        var session = Session(
            scope: account.scopes.isEmpty ? nil : account.scopes.joined(separator: " "),
            issuer: account.issuer ?? account.binding.provider, tokenEndpointOrigin: "", signedInAt: clock.wallInstant)
        session.keeping = .configuration
        return session
    }
}
