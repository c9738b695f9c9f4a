public import BrokerCore
internal import OAuth
public import RingbackBase
internal import SessionVault
internal import Synchronization

/// A request to register a client at a provider (RFC 7591).
public struct RegistrationOrder: Sendable {
    /// The account that it is for, which is not configured yet, unless ``replaces``.
    public var account: AccountName
    /// The account may exist. It keeps its client until the configuration names another one.
    public var replaces = false
    public var issuer: String
    public var scopes: [String]
    /// The redirect URI of the account; nil for the default path at a port of 127.0.0.1 that is free now. `{port}`: any
    /// port, for a provider that ignores the port.
    public var redirectURI: String?
    /// One of ``authentications``; nil: chosen from what the provider offers.
    public var authentication: String?
    /// For providers that require an initial access token (RFC 7591 section 3). It is sent once and not stored.
    public var initialAccessToken: Secret?
    public var trust: ServerTrust
    /// The account whose settings the requests use; nil for an account that is not configured yet.
    var asker: Account?

    /// The client authentication methods that a client can be registered with: those that need no key of the client.
    public static let authentications = [ClientAuthentication.none, .clientSecretBasic, .clientSecretPost].map(
        \.rawValue)

    public init(account: AccountName, issuer: String, scopes: [String] = [], trust: ServerTrust = .system) {
        self.account = account
        self.issuer = issuer
        self.scopes = scopes
        self.trust = trust
    }

    /// The account whose settings requests to the provider use.
    var sender: Account {
        if let asker { return asker }
        var sender = Account(
            name: account, provider: "oidc", source: "registration", kind: OAuthAccount(endpoints: .issuer(issuer)),
            clientID: "")
        sender.trust = trust
        return sender
    }

    /// The requests to try in this order: all scopes, then only the scopes that the provider lists. Some providers
    /// reject a client that asks for a scope they do not list. A provider may support scopes that it does not list (RFC
    /// 8414 section 2), so the first request has them all.
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
            throw .unusableSetting(UnusableSetting(.oauth(.needsClientKey(issuer: issuer)), setting: "client_id"))
        }
        return try BrokerError.reading(
            from: issuer,
            try ClientRegistrationRequest(
                redirectTemplate: redirectURI ?? "http://127.0.0.1:{port}/callback/\(account)", scopes: scopes,
                authentication: way))
    }
}

/// A registration as callers see it, without its secrets.
public struct RegistrationView: Sendable {
    public let account: AccountName
    public let issuer: String
    public let clientID: String
    /// `none`, `client_secret_basic` or `client_secret_post`, as the provider registered it.
    public let authentication: String
    /// The provider issued a client secret, and the vault stores it.
    public let hasSecret: Bool
    /// Nil for a secret that does not expire.
    public let secretExpiresAt: WallInstant?
    /// The redirect URIs that the request asked for.
    public let askedRedirectURIs: [String]
    /// The redirect URIs of the provider's response; those of the request if the response has none.
    public let redirectURIs: [String]
    /// The scopes of the request that succeeded. They are fewer than the account's if the provider rejected all of
    /// them.
    public let scopes: [String]
    /// The vault stores the token and the URL with which the registration can be deleted.
    public let isManaged: Bool

    init(_ order: RegistrationOrder, _ request: ClientRegistrationRequest, _ client: RegisteredClient, isManaged: Bool)
    {
        account = order.account
        issuer = order.issuer
        clientID = client.clientID
        authentication = client.authentication.rawValue
        hasSecret = client.secret != nil
        secretExpiresAt = client.secretExpiresAt.map { WallInstant(seconds: $0) }
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

    /// Registers a client. If the caller disconnects, the registration goes on, and its result is stored.
    public func register(_ order: RegistrationOrder) async throws(BrokerError) -> RegistrationView {
        if !order.replaces, (try? await account(order.account)) != nil {
            throw .conflict(.oauth(.accountExists(order.account)))
        }
        try await broker.vaultSettled(atMost: Registrations.vaultWait)
        guard tools.vault.status.kind != .memory else {
            throw .conflict(.oauth(.vaultInMemory))
        }
        var order = order
        if order.redirectURI == nil {
            // Some providers compare a redirect URI with its port, unlike RFC 8252 section 7.3. So a port that is free
            // now is registered.
            let context = broker.signInContext
            let redirectURI = try await context.openRedirect(nil, of: order.account)
            await context.closeRedirect(redirectURI, of: order.account)
            order.redirectURI = redirectURI
        }
        let (registrar, sent) = (Registrar(tools), order)
        return try await inTurn(order.account, isNew: true) { () throws(BrokerError) in
            try await registrar.register(sent)
        }
    }

    /// Runs a change of an account's registration to its end, even if the caller disconnects. Only one runs at a time.
    private func inTurn<Value: Sendable>(
        _ name: AccountName, isNew: Bool = false, _ change: @escaping @Sendable () async throws(BrokerError) -> Value
    ) async throws(BrokerError) -> Value {
        let turns: RegistrationTurns = tools.memory()
        guard let turn = turns.take(name) else {
            throw .conflict(.oauth(.registrationInProgress(name, isNew: isNew)))
        }
        return try await tools.work.attempt { () throws(BrokerError) in
            defer { turn() }
            return try await change()
        }.get()
    }

    /// Deletes a registration that no account uses. True if the provider deleted it too, false if the provider gave no
    /// URL for that.
    ///
    /// - Parameter clientID: nil for a registration that could not be used.
    public func delete(
        _ name: AccountName, issuer: String, clientID: String?, trust: ServerTrust = .system
    ) async throws(BrokerError) -> Bool {
        let order = RegistrationOrder(account: name, issuer: issuer, trust: trust)
        if let clientID, let account = try? await account(name),
            account.binding == SessionBinding(provider: issuer, clientID: clientID)
        {
            throw .conflict(.oauth(.registrationInUse(name)))
        }
        try await broker.vaultSettled(atMost: Registrations.vaultWait)
        let registrar = Registrar(tools)
        let slot = RegistrationRecord.slot(name, issuer: issuer, clientID: clientID)
        return try await inTurn(name) { () throws(BrokerError) in try await registrar.delete(slot, as: order.sender) }
    }

    /// Deletes the registration that a configured account uses. Afterwards it cannot sign in any more.
    ///
    /// - Returns: what was deleted, and whether the provider deleted it too.
    /// - Throws: ``BrokerError/nothingHeld(_:)`` if the account's client was not registered by this daemon.
    public func deleteOwn(
        _ name: AccountName
    ) async throws(BrokerError) -> (issuer: String, clientID: String, isTold: Bool) {
        let account = try await account(name)
        try await broker.vaultSettled(atMost: Registrations.vaultWait)
        if let kind = account.kind as? MCPAccount {
            let clients = MCPClients(account: account, kind: kind, tools: tools)
            let deleted = try await inTurn(name) { () throws(BrokerError) in try await clients.deleteAll() }
            guard let deleted else { throw .nothingHeld(.oauth(.noRegistration(name))) }
            return deleted
        }
        let registrar = Registrar(tools)
        let slot = VaultSlot(account: name.rawValue, binding: account.binding.text, kind: .registration)
        let isTold = try await inTurn(name) { () throws(BrokerError) in try await registrar.delete(slot, as: account) }
        return (account.binding.provider, account.binding.clientID, isTold)
    }

    /// Waits until the vault is open. A keyring may ask the user to unlock it first, so the wait is bounded.
    private static let vaultWait: Duration = .seconds(30)

    private var tools: ProviderTools { broker.signInContext.tools }

    private func account(_ name: AccountName) async throws(BrokerError) -> Account {
        try await broker.signInContext.sessions.account(name)
    }
}

/// One registration of an account at a time. The record of unusable registrations is read, extended and written back;
/// if two registrations did that at once, one would overwrite the other's entry.
final class RegistrationTurns: ProviderMemory {
    /// The end of each turn that is taken.
    private let taken = Mutex<[AccountName: Promise<Void>]>([:])
    /// Longer than all requests of a turn together may take.
    private static let longestWait: Duration = .seconds(60)

    init(http: any HTTPClient, work: Work, clock: BrokerClock) {}

    /// Takes the account's turn. Returns a function that gives the turn back; nil while another registration has it.
    func take(_ name: AccountName) -> (@Sendable () -> Void)? {
        let isFree = taken.withLock { taken in
            guard taken[name] == nil else { return false }
            taken[name] = Promise()
            return true
        }
        guard isFree else { return nil }
        return { [self] in taken.withLock { $0.removeValue(forKey: name) }?.fulfil(()) }
    }

    /// Waits until no other registration has the account's turn, then takes it. Throws `conflict` after
    /// ``longestWait``.
    func wait(_ name: AccountName) async throws(BrokerError) -> @Sendable () -> Void {
        while true {
            if let turn = take(name) { return turn }
            guard let end = taken.withLock({ $0[name] }) else { continue }
            guard await end.wait(atMost: RegistrationTurns.longestWait) != nil else {
                throw .conflict(.oauth(.registrationInProgress(name, isNew: false)))
            }
        }
    }
}

/// Makes accounts for sessions in the vault whose account is not configured any more, from the session's binding and
/// the vault's record of a registration.
private struct OAuthRestoring: AccountRestoring {
    let tools: ProviderTools

    /// True for a session at an issuer, whose metadata name the revocation endpoint, and for a session at an MCP
    /// server, whose attachment names the issuer. A session with configured endpoints is bound to an origin, and other
    /// kinds of sessions have other attachments: for these it is false.
    func canRestore(_ session: Session, of binding: SessionBinding) -> Bool {
        if let kind = MCPAccount(binding) { return MCPConnection(of: session, at: kind.server) != nil }
        return session.attachments.isEmpty && session.issuer == binding.provider
            && (try? ProviderMetadata.discoveryRequests(issuer: binding.provider)) != nil
    }

    func account(_ name: AccountName, for binding: SessionBinding) async -> Account {
        if let kind = MCPAccount(binding) {
            return Account(name: name, provider: "mcp", source: "vault", kind: kind, clientID: binding.clientID)
        }
        var account = Account(
            name: name, provider: "oidc", source: "vault", kind: OAuthAccount(endpoints: .issuer(binding.provider)),
            clientID: binding.clientID)
        let slot = RegistrationRecord.slot(name, issuer: binding.provider, clientID: binding.clientID)
        if let text = try? await tools.vault.load(slot)?.text, RegistrationRecord(decoding: text)?.secret != nil {
            account.oauth.clientSecret = .registered(for: account, in: tools.vault, clock: tools.clock)
        }
        return account
    }
}

extension SealedSessions {
    /// The sessions in the vault of a broker. They are revoked at the issuer to which each session is bound.
    public init(of broker: Broker) {
        self.init(of: broker, restoring: OAuthRestoring(tools: broker.signInContext.tools))
    }
}
