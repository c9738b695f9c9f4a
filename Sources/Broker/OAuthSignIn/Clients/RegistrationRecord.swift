public import BrokerCore
internal import OAuth
internal import RingbackBase
public import SessionVault

/// The vault's record of a client registration: its secret and the tokens that manage it.
struct RegistrationRecord: Sendable, Equatable {
    static let version = 1
    /// The setting of an account whose secret is in such a record.
    static let setting = "client_secret_registered"

    let issuer: String
    /// Nil for registrations that cannot be used: the record only has the tokens that delete them.
    let clientID: String?
    var secret: Secret?
    /// Nil for a secret that does not expire.
    var secretExpiresAt: WallInstant?
    /// Newest first. There may be several registrations that cannot be used.
    var managements: [RegistrationManagement]
    let registeredAt: WallInstant

    /// Bound to issuer and client id, as the account's session is. Another issuer or client id cannot reach it.
    static func slot(_ account: AccountName, issuer: String, clientID: String?) -> VaultSlot {
        let binding = SessionBinding(provider: issuer, clientID: clientID ?? "")
        return VaultSlot(account: account.rawValue, binding: binding.text, kind: .registration)
    }

    func encoded() -> Secret {
        let members = managements.map { management -> JSONObject in
            [
                "registration_access_token": management.token.revealed(), "registration_client_uri": management.uri,
            ]
        }
        let object: JSONObject = [
            "version": RegistrationRecord.version, "issuer": issuer, "registered_at": registeredAt.seconds,
            "client_id": clientID, "client_secret": secret?.revealed(),
            "client_secret_expires_at": secretExpiresAt?.seconds, "managements": members,
        ]
        return Secret(bytes: JSON.object(object).serialized())
    }
}

extension RegistrationRecord {
    init?(decoding text: Secret) {
        guard let json = try? JSON(parsing: text.revealedBytes()),
            json["version"]?.integer == RegistrationRecord.version, let issuer = json["issuer"]?.string
        else { return nil }
        self.init(
            issuer: issuer, clientID: json["client_id"]?.string,
            secret: json["client_secret"]?.string.map { Secret($0) },
            secretExpiresAt: json["client_secret_expires_at"]?.integer.map { WallInstant(seconds: $0) },
            managements: (json["managements"]?.array ?? []).compactMap { member in
                member["registration_access_token"]?.string.map {
                    RegistrationManagement(token: Secret($0), uri: member["registration_client_uri"]?.string)
                }
            }, registeredAt: WallInstant(seconds: json["registered_at"]?.integer ?? 0))
    }
}

extension Account.SecretSource {
    /// The secret that the provider issued when the account's client was registered. It is stored only in the vault.
    public static func registered(
        for account: Account, in vault: any Vault, clock: BrokerClock = .system
    ) -> Account.SecretSource {
        let (sender, name) = (account, account.name)
        let slot = VaultSlot(account: name.rawValue, binding: account.binding.text, kind: .registration)
        var source = Account.SecretSource { () async throws(BrokerError) in
            let entry = try await BrokerError.mapping { () throws(VaultError) in try await vault.load(slot) }
            guard let record = entry.flatMap({ RegistrationRecord(decoding: $0.text) }), let secret = record.secret
            else { throw RegistrationRecord.unusable(.noRegisteredSecret(name), of: sender) }
            // The provider would reject the client with `invalid_client`, which does not say that the secret expired.
            guard !record.hasExpired(at: clock.wallInstant) else { throw RegistrationRecord.expiry(of: sender) }
            return secret
        }
        source.renew = { http, directory throws(BrokerError) in
            let registrar = Registrar(vault: vault, http: http, directory: directory, clock: clock, record: { _ in })
            return try await registrar.renewSecret(slot, as: sender)
        }
        return source
    }
}

extension RegistrationRecord {
    func hasExpired(at now: WallInstant) -> Bool { secretExpiresAt.map { $0 <= now } ?? false }

    static func expiry(of account: Account) -> BrokerError {
        unusable(.secretExpired(account.name), of: account, hasExpired: true)
    }

    fileprivate static func unusable(
        _ reason: OAuthReason, of account: Account, hasExpired: Bool = false
    ) -> BrokerError {
        var setting = UnusableSetting(.oauth(reason), setting: RegistrationRecord.setting)
        setting.hasExpired = hasExpired
        setting.terms = account.registrationTerms
        return .unusableSetting(setting)
    }
}

extension Account {
    /// Nil if the account names no issuer, or has a client of its own at each issuer.
    fileprivate var registrationTerms: RegistrationTerms? {
        guard let rules = kind as? OAuthAccount, rules.mcp == nil, case .issuer(let issuer) = rules.endpoints else {
            return nil
        }
        return RegistrationTerms(
            issuer: issuer, scopes: scopes, redirectURI: redirectURI,
            authentication: rules.clientAuthentication == ClientAuthentication.none
                ? nil : rules.clientAuthentication?.rawValue,
            responseMode: rules.responseMode?.rawValue, certificateFile: certificateFile)
    }
}

extension Provider {
    /// What the account's client is registered with again; nil if it was not registered for this account.
    func registrationTerms() async -> RegistrationTerms? {
        guard let terms = account.registrationTerms else { return nil }
        let slot = RegistrationRecord.slot(account.name, issuer: terms.issuer, clientID: account.clientID)
        return (try? await vault.load(slot)) == nil ? nil : terms
    }

    /// The error of a request with the account's client. If the provider has registered the client and does not accept
    /// it any more, the error says so: the client id is in the configuration, so only the user can replace it.
    ///
    /// - Parameter isRefresh: a refresh that is refused without a reason may mean the refresh token.
    func explaining(_ error: BrokerError, isRefresh: Bool = false) async -> BrokerError {
        guard error.disownsClient, let terms = await registrationTerms() else { return error }
        let host = (try? WebURL(parsing: terms.issuer))?.place ?? terms.issuer
        switch error {
        case .provider(.refused(let code, let message)):
            return .clientForgotten(account.name, host: host, code: code, message: message, terms: terms)
        case .provider(.unexplained(_, _, let message)):
            guard !isRefresh || message.map(OAuthError.saysClientIsUnknown) == true else { return error }
            return .clientForgotten(account.name, host: host, code: nil, message: message, terms: terms)
        default: return error
        }
    }
}
