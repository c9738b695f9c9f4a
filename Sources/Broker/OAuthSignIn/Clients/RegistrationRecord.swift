public import BrokerCore
internal import OAuth
internal import Secrets
public import SessionVault
internal import StrictJSON

/// The vault's record of a client registration: the client secret and the tokens that manage it. The rest is in the
/// account's configuration.
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

    init(
        issuer: String, clientID: String?, secret: Secret? = nil, secretExpiresAt: WallInstant? = nil,
        managements: [RegistrationManagement], registeredAt: WallInstant
    ) {
        self.issuer = issuer
        self.clientID = clientID
        self.secret = secret
        self.secretExpiresAt = secretExpiresAt
        self.managements = managements
        self.registeredAt = registeredAt
    }

    /// Bound to issuer and client id, as the account's session is. Another issuer or client id cannot reach it.
    static func slot(_ account: AccountName, issuer: String, clientID: String?) -> VaultSlot {
        let binding = SessionBinding(provider: issuer, clientID: clientID ?? "")
        return VaultSlot(account: account.rawValue, binding: binding.text, kind: .registration)
    }

    /// JSON with the secrets. Only for the vault.
    func encoded() -> Secret {
        var object = JSONObject([
            .init("version", .integer(RegistrationRecord.version)), .init("issuer", .string(issuer)),
            .init("registered_at", .integer(registeredAt.seconds)),
        ])
        object["client_id"] = clientID.map { .string($0) }
        object["client_secret"] = secret.map { .string($0.revealed()) }
        object["client_secret_expires_at"] = secretExpiresAt.map { .integer($0.seconds) }
        object["managements"] = .array(
            managements.map { management in
                var member = JSONObject([
                    .init("registration_access_token", .string(management.token.revealed()))
                ])
                member["registration_client_uri"] = management.uri.map { .string($0) }
                return .object(member)
            })
        return Secret(bytes: JSON.object(object).serialized())
    }

    /// Nil if the text is not such a record, or is one of a newer version.
    init?(decoding text: Secret) {
        guard let json = try? JSON(parsing: text.revealedBytes()),
            json["version"]?.integer == RegistrationRecord.version,
            let issuer = json["issuer"]?.string
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
        let name = account.name
        let slot = VaultSlot(account: name.rawValue, binding: account.binding.text, kind: .registration)
        var source = Account.SecretSource { () async throws(BrokerError) in
            let entry = try await BrokerError.mapping { () throws(VaultError) in try await vault.load(slot) }
            guard let record = entry.flatMap({ RegistrationRecord(decoding: $0.text) }), let secret = record.secret
            else {
                throw .unusableSetting(
                    UnusableSetting(.oauth(.noRegisteredSecret(name)), setting: RegistrationRecord.setting))
            }
            // Reported before the provider rejects the client with `invalid_client`, which does not say that the secret
            // expired.
            guard !record.hasExpired(at: clock.wallInstant) else { throw RegistrationRecord.expiry(of: name) }
            return secret
        }
        let sender = account
        source.renew = { http, directory throws(BrokerError) in
            let registrar = Registrar(vault: vault, http: http, directory: directory, clock: clock, record: { _ in })
            return try await registrar.renewSecret(slot, as: sender)
        }
        return source
    }
}

extension RegistrationRecord {
    func hasExpired(at now: WallInstant) -> Bool { secretExpiresAt.map { $0 <= now } ?? false }

    static func expiry(of name: AccountName) -> BrokerError {
        var setting = UnusableSetting(.oauth(.secretExpired(name)), setting: RegistrationRecord.setting)
        setting.hasExpired = true
        return .unusableSetting(setting)
    }
}
