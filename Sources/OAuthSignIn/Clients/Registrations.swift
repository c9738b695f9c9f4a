public import BrokerCore
public import HTTPMessages
internal import OAuth
public import Secrets
internal import SessionVault
internal import Synchronization

/// A client that somebody wants to have registered (RFC 7591).
public struct RegistrationOrder: Sendable {
    /// The account that it is for, which is not configured yet.
    public var account: AccountName
    public var issuer: String
    public var scopes: [String]
    /// As the account will have it; nil for the default, a free port of 127.0.0.1.
    public var redirectURI: String?
    /// One of ``authentications``; nil: chosen by what the provider offers.
    public var authentication: String?
    /// For providers that register nobody without one; sent once, kept nowhere.
    public var initialAccessToken: Secret?
    public var trust: ServerTrust

    /// How a client can be registered to show who it is: without a key of its own.
    public static let authentications = [ClientAuthentication.none, .clientSecretBasic, .clientSecretPost].map(
        \.rawValue)

    public init(account: AccountName, issuer: String, scopes: [String] = [], trust: ServerTrust = .system) {
        self.account = account
        self.issuer = issuer
        self.scopes = scopes
        self.trust = trust
    }

    /// The account as far as requests to the provider need it.
    var sender: Account {
        Account(
            name: account, provider: "oidc", source: "registration", kind: OAuthAccount(endpoints: .issuer(issuer)),
            clientID: "", trust: trust)
    }

    /// What to ask for: everything, and then only the scopes that the provider lists. Some refuse a client that would
    /// ever ask for another one; that a scope is not listed does not mean that there is none (RFC 8414 section 2).
    func requests(_ metadata: ProviderMetadata) throws(BrokerError) -> [ClientRegistrationRequest] {
        let whole = try request(metadata, scopes)
        guard let supported = metadata.scopesSupported, !Set(scopes).isSubset(of: supported) else { return [whole] }
        return [whole, try request(metadata, scopes.filter { supported.contains($0) })]
    }

    private func request(
        _ metadata: ProviderMetadata, _ scopes: [String]
    ) throws(BrokerError) -> ClientRegistrationRequest {
        let stated = authentication.flatMap { ClientAuthentication(rawValue: $0) }
        guard let way = stated ?? metadata.registrableAuthentication else {
            throw .misconfigured(
                "\(issuer) authenticates clients by ways that cannot be registered without a key of the client's own. "
                    + "Register the client by hand.")
        }
        do throws(OAuthError) {
            return try ClientRegistrationRequest(
                redirectTemplate: redirectURI ?? "http://127.0.0.1:{port}/callback/\(account)", scopes: scopes,
                authentication: way)
        } catch {
            throw BrokerError(error, host: issuer)
        }
    }
}

/// A registration as callers see it: without its secrets, which stay here.
public struct RegistrationView: Sendable {
    public let account: AccountName
    public let issuer: String
    public let clientID: String
    /// `none`, `client_secret_basic` or `client_secret_post`, as the provider has it.
    public let authentication: String
    /// The provider gave a client secret, and the vault keeps it.
    public let hasSecret: Bool
    /// Unix seconds; nil for a secret that does not expire.
    public let secretExpiresAt: Int?
    /// What was asked for.
    public let askedRedirectURIs: [String]
    /// What the provider says that it registered; what was asked for, if it says nothing.
    public let redirectURIs: [String]
    /// What the client was registered for; less than was asked for, if the provider refused the rest.
    public let scopes: [String]
    /// The vault keeps what the registration can be deleted with.
    public let isManaged: Bool

    init(_ order: RegistrationOrder, _ request: ClientRegistrationRequest, _ client: RegisteredClient, isManaged: Bool)
    {
        account = order.account
        issuer = order.issuer
        clientID = client.clientID
        authentication = client.authentication.rawValue
        hasSecret = client.secret != nil
        secretExpiresAt = client.secretExpiresAt
        askedRedirectURIs = request.redirectURIs
        redirectURIs = client.redirectURIs ?? request.redirectURIs
        scopes = request.scopes
        self.isManaged = isManaged
    }
}

/// Registers clients for accounts that are to be added, and deletes registrations that no account uses.
public struct Registrations: Sendable {
    private let broker: Broker

    public init(of broker: Broker) { self.broker = broker }

    /// Has a client registered. A caller that goes away does not stop it: what the provider gives is kept.
    public func register(_ order: RegistrationOrder) async throws(BrokerError) -> RegistrationView {
        guard (try? await account(order.account)) == nil else {
            throw .conflict(
                "The account \(order.account) is there already. Choose another name, or remove it and reload.")
        }
        try await broker.vaultSettled(atMost: Registrations.vaultWait)
        guard tools.vault.status.kind != "memory" else {
            throw .conflict(
                "The vault is in memory: what the provider gives for the registration would be lost with the daemon. "
                    + "Register the client by hand, and add the account with --client-id.")
        }
        let registrar = registrar
        guard let turn = turns.take(order.account) else {
            throw .conflict("A registration for \(order.account) is under way. Wait for it, or choose another name.")
        }
        return try await tools.work.attempt { () throws(BrokerError) in
            defer { turn() }
            return try await registrar.register(order)
        }.get()
    }

    /// Deletes a registration. True if the provider was told, false if it gave no way to.
    ///
    /// - Parameter clientID: nil for a registration that could not be used.
    public func delete(
        _ name: AccountName, issuer: String, clientID: String?, trust: ServerTrust = .system
    ) async throws(BrokerError) -> Bool {
        let order = RegistrationOrder(account: name, issuer: issuer, trust: trust)
        if let clientID, let account = try? await account(name),
            account.binding == SessionBinding(provider: issuer, clientID: clientID)
        {
            throw .conflict("The account \(name) uses this registration. Remove the account and reload first.")
        }
        try await broker.vaultSettled(atMost: Registrations.vaultWait)
        let registrar = registrar
        let slot = RegistrationRecord.slot(name, issuer: issuer, clientID: clientID)
        guard let turn = turns.take(name) else {
            throw .conflict("A registration for \(name) is under way. Wait for it.")
        }
        return try await tools.work.attempt { () throws(BrokerError) in
            defer { turn() }
            return try await registrar.delete(slot, as: order.sender)
        }.get()
    }

    /// The keyring may prompt the user first. A caller waits at most this long for that.
    private static let vaultWait: Duration = .seconds(30)

    private var tools: ProviderTools { broker.signInContext.tools }

    private func account(_ name: AccountName) async throws(BrokerError) -> Account {
        try await broker.signInContext.sessions.account(name)
    }

    private var turns: RegistrationTurns { tools.memory() }

    private var registrar: Registrar {
        Registrar(
            vault: tools.vault, http: tools.http, directory: tools.memory(), clock: tools.clock, record: tools.record)
    }
}

/// One registration of an account at a time: what deletes those that cannot be used is read, added to and written again,
/// and two at once would each forget the other's.
final class RegistrationTurns: ProviderMemory {
    private let taken = Mutex<Set<AccountName>>([])

    init(http: any HTTPClient, work: Work, clock: BrokerClock) {}

    /// Gives the turn back when it is called; nil while somebody else has it.
    func take(_ name: AccountName) -> (@Sendable () -> Void)? {
        guard taken.withLock({ $0.insert(name).inserted }) else { return nil }
        return { [self] in _ = taken.withLock { $0.remove(name) } }
    }
}
