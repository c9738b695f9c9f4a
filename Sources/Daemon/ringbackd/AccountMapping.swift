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
    init?(_ account: AccountConfiguration, helper: HelperConnection, vault: any Vault, credentials: Credentials) {
        guard let name = AccountName(account.name), let kind = Self.kind(account.provider) else { return nil }
        self.init(
            name: name, provider: account.provider.word, source: account.source.description,
            kind: kind, clientID: account.clientID,
            scopes: account.scopes, redirectURI: account.redirectURI,
            authorizationParameters: account.additionalParameters, flowTimeout: account.flowTimeout,
            trust: account.trust, headers: account.headers.map { ($0.name, $0.value) },
            refreshMargin: account.refreshMargin.map { .seconds($0) },
            sessionWarnings: account.sessionWarnings?.map { .seconds($0) })
        route = account.route
        certificateFile = account.certificateFile
        postLogoutRedirectURI = account.postLogoutRedirectURI
        guard kind is OAuthAccount else { return }
        oauth.clientAuthentication = account.clientAuthentication
        oauth.clientSecret = SecretSource(account, helper)
        oauth.clientKey = KeySource(account) ?? KeySource(credentialOf: account, in: credentials)
        oauth.responseMode = account.responseMode
        oauth.requiresIssuerInResponse = account.requiresIssuerInResponse
        oauth.asksConsentForOfflineAccess = account.asksConsentForOfflineAccess
        oauth.pushedRequests =
            switch account.pushedRequests {
            case .automatic: .automatic
            case .never: .never
            case .required: .required
            }
        oauth.grant = ServiceGrant(account)
        if let credential = account.clientSecretCredential {
            oauth.clientSecret = SecretSource(credential: credential, of: account, in: credentials)
        }
        // A registration is found by what the account is bound to, which is complete only now.
        if account.clientSecret == .registered { oauth.clientSecret = .registered(for: self, in: vault) }
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
        needsSignIn = configuration.needsSignIn
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
            profileFunction: configuration.profileFunction, functions: configuration.functions)
    }
}

extension Account.KeySource {
    /// Nil without a key. The key is read at every use, as a secret in a file is.
    init?(_ account: AccountConfiguration) {
        guard account.clientKeyFile != nil else { return nil }
        self.init { () throws(BrokerError) in
            do throws(ConfigurationError) {
                if let key = try account.readClientKey(user: geteuid()) { return key }
            } catch {
                throw BrokerError(error)
            }
            throw .misconfigured(.stated("\(account.name) has no key."))
        }
    }
}

extension Account.SecretSource {
    /// Nil for a public client.
    init?(_ account: AccountConfiguration, _ helper: HelperConnection) {
        switch account.clientSecret {
        // Registered secrets and credentials have sources of their own, see above.
        case .none, .credential, .registered: return nil
        case .inline(let secret): self.init { () throws(BrokerError) in secret }
        case .file:
            // Read at every use: a secret that was replaced on disk needs no reload.
            self.init { () throws(BrokerError) in
                do throws(ConfigurationError) {
                    if let secret = try account.readClientSecret(user: geteuid()) { return secret }
                } catch {
                    throw BrokerError(error)
                }
                throw .misconfigured(.stated("\(account.name) has no client secret."))
            }
        case .command:
            let name = account.name
            self.init { () async throws(BrokerError) in
                let output: Secret
                do throws(HelperError) {
                    output = try await helper.clientSecret(account: name)
                } catch {
                    throw error == .cancelled
                        ? .cancelled
                        : .misconfigured(.stated("The client secret of \(name) cannot be read: \(error)."))
                }
                do throws(ConfigurationError) {
                    let key = "client_secret_command"
                    return try account.clientSecret(in: output, of: "the output of \(key)", at: key)
                } catch {
                    throw BrokerError(error)
                }
            }
        }
    }
}

extension BrokerError {
    /// What a setting names cannot be used now.
    ///
    /// - Parameter credential: its name, for what the daemon is given at its start.
    init(_ error: ConfigurationError, credential: String? = nil) {
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
            origin.rule, account: name, kind: origin.kind == .idToken ? .idToken : .accessToken,
            key: TokenKey(scopes: origin.scopes, audience: origin.audience, resource: origin.resource),
            username: origin.username, headers: headers, allowed: origin.allowed)
    }
}
