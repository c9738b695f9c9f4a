import APIServer
import BrokerCore
import Configuration
import Desktop
import Glibc
import OAuth
import OAuthSignIn
import RingbackBase
import SessionVault
import SupabaseAuth
import SupabaseSignIn

extension Account {
    /// A configured account as the broker takes it. Nil for a name that the configuration would have refused.
    init?(_ account: AccountConfiguration, _ secrets: AccountSecrets) {
        guard let name = AccountName(account.name), let kind = Self.kind(account.provider) else { return nil }
        self.init(
            name: name, provider: account.provider.word, source: account.source.description,
            kind: kind, clientID: account.clientID, scopes: account.scopes, redirectURI: account.redirectURI)
        authorizationParameters = account.additionalParameters
        flowTimeout = account.flowTimeout
        trust = account.trust
        headers = account.headers.map { ($0.name, $0.value) }
        refreshMargin = account.refreshMargin.map { .seconds($0) }
        if let warnings = account.sessionWarnings { sessionWarnings = warnings.map { .seconds($0) } }
        route = account.route
        certificateFile = account.certificateFile
        postLogoutRedirectURI = account.postLogoutRedirectURI
        page = account.page
        guard kind is OAuthAccount else { return }
        oauth.clientAuthentication = account.clientAuthentication
        oauth.clientSecret = SecretSource(account, secrets)
        oauth.clientKey = KeySource(account, secrets)
        oauth.responseMode = account.responseMode
        oauth.requiresIssuerInResponse = account.requiresIssuerInResponse
        oauth.asksConsentForOfflineAccess = account.asksConsentForOfflineAccess
        oauth.pushedRequests = account.pushedRequests
        oauth.dpop = account.dpop
        oauth.grant = ServiceGrant(account, secrets)
        // A registration is found by what the account is bound to, which is complete only now.
        if account.clientSecret == .registered { oauth.clientSecret = .registered(for: self, in: secrets.vault) }
        if case .mcp(let configuration) = account.provider { self.kind = MCPAccount(configuration, rules: oauth) }
    }

    private static func kind(_ provider: AccountProvider) -> (any AccountKind)? {
        if case .supabase(let configuration) = provider { return SupabaseAccount(configuration) }
        return Endpoints(provider).map(OAuthAccount.init(endpoints:))
    }
}

extension MCPAccount {
    init(_ configuration: MCPConfiguration, rules: OAuthAccount) {
        self.init(server: configuration.server, rules: rules)
        issuer = configuration.issuer
        clientMetadataURL = configuration.clientMetadataURL
        sendsResource = configuration.sendsResource
        needsToken = configuration.needsSignIn
    }
}

extension Account.Endpoints {
    /// Nil for a provider without endpoints of OAuth.
    init?(_ provider: AccountProvider) {
        if let issuer = provider.issuer {
            self = .issuer(issuer)
        } else if let endpoints = provider.endpoints {
            self = .fixed(endpoints)
        } else if case .mcp(let mcp) = provider {
            // Replaced by the issuer that the server names.
            self = .issuer(mcp.issuer ?? mcp.server.url.origin)
        } else {
            return nil
        }
    }
}

extension SupabaseAccount {
    init(_ configuration: SupabaseConfiguration) {
        self.init(
            project: configuration.project, isKeyless: !configuration.callbackCarriesFlowKey,
            oauthProvider: configuration.oauthProvider, allowsMissingNonce: configuration.allowsMissingNonce,
            idTokenAccount: configuration.idTokenAccount,
            profile: configuration.profileTable.map { Profile(table: $0, key: configuration.profileKey) },
            profileFunction: configuration.profileFunction, functions: configuration.functions,
            edgeFunctions: configuration.edgeFunctions)
    }
}

/// Where the secrets of accounts come from.
struct AccountSecrets: Sendable {
    /// Asked for assertions about the users of other accounts.
    let broker: Broker
    let helper: HelperConnection
    let vault: any Vault
    let credentials: Credentials

    /// Read at every use, since a service manager may replace it.
    fileprivate func credential(
        _ name: String, of account: AccountConfiguration, at key: String
    ) throws(BrokerError) -> Secret {
        do throws(PlaceError) {
            return try credentials.secret(named: name)
        } catch {
            throw BrokerError(account.mistake(at: key, error.reason), credential: name)
        }
    }
}

extension AccountConfiguration {
    /// Reads what a setting names. It is read at every use, so that what was replaced on disk needs no reload.
    fileprivate func read<Value>(
        _ name: String, _ body: (UInt32) throws(ConfigurationError) -> Value?
    ) throws(BrokerError) -> Value {
        let value = try BrokerError.mapping { () throws(ConfigurationError) in try body(geteuid()) }
        guard let value else { throw .misconfigured(.stated("\(self.name) has no \(name).")) }
        return value
    }
}

extension Account.KeySource {
    /// Nil without a key.
    init?(_ account: AccountConfiguration, _ secrets: AccountSecrets) {
        if account.clientKeyFile != nil {
            self.init { () throws(BrokerError) in try account.read("key", account.readClientKey) }
        } else if let name = account.clientKeyCredential {
            self.init { () throws(BrokerError) in
                let secret = try secrets.credential(name, of: account, at: "client_key_file")
                return try BrokerError.mapping(credential: name) { () throws(ConfigurationError) in
                    try account.clientKey(in: secret)
                }
            }
        } else {
            return nil
        }
    }
}

extension Account.SecretSource {
    /// Nil for a public client.
    init?(_ account: AccountConfiguration, _ secrets: AccountSecrets) {
        switch account.clientSecret {
        // A registered secret has a source of its own, see above.
        case .none, .registered: return nil
        case .inline(let secret): self.init { () throws(BrokerError) in secret }
        case .file:
            self.init { () throws(BrokerError) in try account.read("client secret", account.readClientSecret) }
        case .credential(let name):
            self.init { () throws(BrokerError) in
                let key = account.clientCredentialKey
                let secret = try secrets.credential(name, of: account, at: key)
                return try BrokerError.mapping { () throws(ConfigurationError) in
                    try account.clientSecret(in: secret, of: "the credential \(name)", at: key)
                }
            }
        case .command:
            self.init { () async throws(BrokerError) in
                let output: Secret
                do throws(HelperError) {
                    output = try await secrets.helper.clientSecret(account: account.name)
                } catch {
                    throw error == .cancelled
                        ? .cancelled
                        : .misconfigured(.stated("The client secret of \(account.name) cannot be read: \(error)."))
                }
                let key = "client_secret_command"
                return try BrokerError.mapping { () throws(ConfigurationError) in
                    try account.clientSecret(in: output, of: "the output of \(key)", at: key)
                }
            }
        }
    }
}

extension ServiceGrant {
    /// Nil for an account that users sign in to.
    init?(_ account: AccountConfiguration, _ secrets: AccountSecrets) {
        guard let service = account.service else { return nil }
        if let name = service.through.flatMap(AccountName.init) {
            self.init(
                through: name,
                AssertionSource { use throws(BrokerError) in
                    try await use.assertion(ofUserOf: name, by: secrets.broker)
                })
            return
        }
        let assertion = service.assertionFile.map { _ in
            AssertionSource { _ throws(BrokerError) in try account.read("assertion", account.readAssertion) }
        }
        self.init(
            service.grant, subjectType: service.subjectTokenType, assertion: assertion,
            assertionPlace: service.assertionFile, issued: service.issued, audience: service.audience,
            resource: service.resource)
    }
}

extension BrokerError {
    fileprivate static func mapping<Value>(
        credential: String? = nil, _ body: () throws(ConfigurationError) -> Value
    ) throws(BrokerError) -> Value {
        do throws(ConfigurationError) { return try body() } catch { throw BrokerError(error, credential: credential) }
    }

    /// What a setting names cannot be used now.
    ///
    /// - Parameter credential: its name, for what the daemon is given at its start.
    fileprivate init(_ error: ConfigurationError, credential: String? = nil) {
        // `accounts.NAME.KEY`; a name may have dots.
        let key = error.key?.split(separator: ".").last.map(String.init) ?? ""
        var setting = UnusableSetting(
            .stated(error.description), setting: key, file: error.file, line: error.line, credential: credential)
        if case .unsafe(let unsafe)? = error.cause {
            setting.trouble = unsafe.trouble
            setting.path = unsafe.path
        }
        self = .unusableSetting(setting)
    }
}

extension Origin {
    /// A table of origins as the broker takes it. Nil for a name that the configuration would have refused.
    init?(_ origin: OriginConfiguration, in configuration: DaemonConfiguration) {
        guard let name = AccountName(origin.account) else { return nil }
        var headers = origin.headers
        // The key of an app is publishable: it is filled in at once.
        if case .supabase(let supabase)? = configuration[origin.account]?.provider, let key = supabase.project.apiKey {
            headers = headers.map { $0.setting("api_key", to: key.revealed()) }
        }
        self.init(
            origin.rule, account: name, kind: origin.kind,
            key: TokenKey(scopes: origin.scopes, audience: origin.audience, resource: origin.resource),
            username: origin.username, headers: headers, allowed: origin.allowed)
    }
}
