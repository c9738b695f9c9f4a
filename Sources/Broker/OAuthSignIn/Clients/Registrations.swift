public import BrokerCore
internal import OAuth
public import RingbackBase
internal import SessionVault
internal import Synchronization

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

    var sender: Account {
        if let asker { return asker }
        var sender = Account(
            name: account, provider: "oidc", source: "registration", kind: OAuthAccount(endpoints: .issuer(issuer)),
            clientID: "")
        sender.trust = trust
        return sender
    }

    /// The requests to try in this order: all scopes, then those that the provider lists. Some providers reject a
    /// client that asks for others, though a provider may support more than it lists (RFC 8414 section 2).
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
    public let askedRedirectURIs: [String]
    /// The redirect URIs of the provider's response; those of the request if the response has none.
    public let redirectURIs: [String]
    /// The scopes of the request that succeeded: fewer than the account's if the provider rejected all of them.
    public let scopes: [String]
    /// The vault stores the token and the URL with which the registration can be deleted.
    public let isManaged: Bool

    init(
        _ order: RegistrationOrder, _ request: ClientRegistrationRequest, _ client: RegisteredClient, isManaged: Bool
    ) {
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

public struct Registrations: Sendable {
    private let broker: Broker

    public init(of broker: Broker) { self.broker = broker }

    /// Registers a client. If the caller disconnects, the registration goes on, and its result is stored.
    public func register(_ order: RegistrationOrder) async throws(BrokerError) -> RegistrationView {
        if !order.replaces, (try? await account(order.account)) != nil {
            throw .conflict(
                .stated("The account \(order.account) exists already. Choose another name, or remove it and reload."))
        }
        try await broker.vaultSettled(atMost: Registrations.vaultWait)
        guard tools.vault.status.kind != .memory else { throw .conflict(.oauth(.vaultInMemory)) }
        var order = order
        if order.redirectURI == nil {
            // Some providers compare the port, unlike RFC 8252 section 7.3. So a port that is free now is registered.
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
        guard let turn = turns.take(name) else { throw .conflict(.oauth(.registrationInProgress(name, isNew: isNew))) }
        return try await tools.work.attempt { () throws(BrokerError) in
            defer { turn() }
            return try await change()
        }.get()
    }

    /// Deletes a registration that no account uses. True if the provider deleted it too, false without a URL for that.
    ///
    /// - Parameter clientID: nil for a registration that could not be used.
    public func delete(
        _ name: AccountName, issuer: String, clientID: String?, trust: ServerTrust = .system
    ) async throws(BrokerError) -> Bool {
        let order = RegistrationOrder(account: name, issuer: issuer, trust: trust)
        if let clientID, let account = try? await account(name),
            account.binding == SessionBinding(provider: issuer, clientID: clientID)
        {
            throw .conflict(.stated("The account \(name) uses this registration. Remove the account and reload first."))
        }
        try await broker.vaultSettled(atMost: Registrations.vaultWait)
        let registrar = Registrar(tools)
        let slot = RegistrationRecord.slot(name, issuer: issuer, clientID: clientID)
        return try await inTurn(name) { () throws(BrokerError) in try await registrar.delete(slot, as: order.sender) }
    }

    /// Deletes the registration of a configured account, which cannot sign in afterwards. `isTold`: the provider
    /// deleted it too. Throws ``BrokerError/nothingHeld(_:)`` if the client was not registered by this daemon.
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

/// One registration of an account at a time: two that extend the record of unusable ones would lose an entry.
final class RegistrationTurns: ProviderMemory {
    private let taken = Mutex<[AccountName: Promise<Void>]>([:])
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

    /// Waits for the account's turn and takes it. Throws `conflict` after ``longestWait``.
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

/// Makes accounts for sessions in the vault whose account is not configured any more.
private struct OAuthRestoring: AccountRestoring {
    let tools: ProviderTools

    /// True for a session at an issuer, whose metadata name the revocation endpoint, and for one at an MCP server,
    /// whose attachment names the issuer. One with configured endpoints is bound to an origin.
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
