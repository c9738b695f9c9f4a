internal import BrokerCore
internal import OAuth
internal import RingbackBase
internal import SessionVault

/// Chooses the client of an account at an MCP server's issuer: the configured one, a client-id metadata document, or
/// one that the issuer registers.
struct MCPClients: Sendable {
    let account: Account
    let kind: MCPAccount
    let tools: ProviderTools

    struct Choice: Sendable {
        var connection: MCPConnection
        var redirectURI: String?
        /// True for a client that was registered automatically, and could be again.
        var isRegistered = false
    }

    func way(at announcement: MCPAnnouncement) -> OAuthReason.MCPClientWay {
        let metadata = announcement.metadata
        if !account.clientID.isEmpty { return .configured }
        if kind.clientMetadataURL != nil, metadata.supportsClientMetadataDocuments,
            metadata.supportsIssuerInResponse || account.redirectURI != nil
        {
            return .document
        }
        return metadata.registrationEndpoint == nil ? .none : .registration
    }

    /// Why an issuer that registers no clients takes no document of the account.
    func document(at announcement: MCPAnnouncement) -> OAuthReason.MCPDocument {
        guard announcement.metadata.supportsClientMetadataDocuments else { return .notTaken }
        return kind.clientMetadataURL == nil ? .missing : .shared
    }

    /// - Parameter isRenewed: true for a new registration in place of the one in the vault.
    func choose(
        _ announcement: MCPAnnouncement, for scopes: [String], in context: SignInContext, isRenewed: Bool = false
    ) async throws(BrokerError) -> Choice {
        var choice = Choice(connection: announcement.connection, redirectURI: account.redirectURI)
        choice.connection.scopes = scopes
        switch way(at: announcement) {
        case .configured: choice.connection.clientID = account.clientID
        case .document:
            // All accounts with such a document share one path. Only `iss` tells their responses apart, so only issuers
            // that announce it may use the path (RFC 9207 section 1: an issuer could pass a code of another one off as its
            // own). An account with a redirect URI of its own needs no `iss`: the path tells its responses apart.
            choice.connection.clientID = kind.clientMetadataURL ?? ""
            choice.connection.authentication = ClientAuthentication.none
            choice.redirectURI = account.redirectURI ?? ClientMetadataDocument.redirectURI
        case .registration:
            let issuer = announcement.connection.issuer
            let known = try await record().client(at: issuer)
            let client: MCPClientRecord.Client
            if let known, !isRenewed, known.fits(account.redirectURI, scopes) {
                client = known
            } else {
                client = try await register(announcement, scopes, instead: known, in: context)
            }
            choice.connection.clientID = client.clientID
            choice.connection.authentication = client.authentication
            choice.connection.hasRegisteredSecret = client.hasSecret
            choice.redirectURI = client.redirectURI
            choice.isRegistered = true
        case .none:
            let issuer = announcement.connection.issuer
            throw .misconfigured(.oauth(.mcpNeedsClient(account.name, issuer: issuer, document(at: announcement))))
        }
        return choice
    }

    // MARK: Registrations

    /// - Parameter former: the client that cannot be used. If another host has replaced it, that host's client is used.
    private func register(
        _ announcement: MCPAnnouncement, _ scopes: [String], instead former: MCPClientRecord.Client?,
        in context: SignInContext
    ) async throws(BrokerError) -> MCPClientRecord.Client {
        // With its port: many MCP servers compare it byte for byte, unlike RFC 8252 section 7.3.
        let redirectURI = try await context.openRedirect(account.redirectURI, of: account.name)
        await context.closeRedirect(redirectURI, of: account.name)
        var order = RegistrationOrder(
            account: account.name, issuer: announcement.connection.issuer,
            // All that a later sign-in may need: some servers give a client only those that it was registered with.
            scopes: ScopeList.union(scopes, announcement.scopesSupported), trust: account.trust)
        order.redirectURI = redirectURI
        order.authentication = kind.rules.clientAuthentication?.rawValue ?? announcement.metadata.preferredSecretMethod
        order.asker = account.at(announcement.connection, of: kind, with: tools)
        let turn = try await turns.wait(account.name)
        let (clients, template, sent) = (self, account.redirectURI, order)
        return try await tools.work.attempt { () throws(BrokerError) in
            defer { turn() }
            let slot = MCPClientRecord.slot(clients.account)
            if try await clients.registrar.records.announce(slot),
                let client = try await clients.record().client(at: sent.issuer), client.clientID != former?.clientID,
                client.fits(template, scopes)
            {
                try? await clients.tools.vault.settle(slot)
                return client
            }
            do throws(BrokerError) {
                let view = try await clients.registrar.register(sent)
                let client = MCPClientRecord.Client(
                    issuer: view.issuer, clientID: view.clientID,
                    authentication: ClientAuthentication(rawValue: view.authentication) ?? .none,
                    hasSecret: view.hasSecret, redirectURI: redirectURI, template: template, scopes: view.scopes)
                try await clients.change { $0.add(client) }
                return client
            } catch {
                try? await clients.tools.vault.settle(slot)
                throw error
            }
        }.get()
    }

    private var turns: RegistrationTurns { tools.memory() }
    private var registrar: Registrar { Registrar(tools) }

    func record() async throws(BrokerError) -> MCPClientRecord {
        let slot = MCPClientRecord.slot(account)
        let entry = try await BrokerError.mapping { () throws(VaultError) in try await tools.vault.load(slot) }
        return entry.flatMap { MCPClientRecord(decoding: $0.text) } ?? MCPClientRecord()
    }

    func isRegistered(_ connection: MCPConnection) -> Bool {
        account.clientID.isEmpty && connection.clientID != kind.clientMetadataURL
    }

    /// The issuer may not know the client any more: the next sign-in there registers another one. Sessions keep theirs.
    func replaceClient(of connection: MCPConnection) async {
        guard isRegistered(connection), let turn = try? await turns.wait(account.name) else { return }
        defer { turn() }
        guard let record = try? await record(),
            record.client(at: connection.issuer)?.clientID == connection.clientID
        else { return }
        try? await change { $0.replace(connection.issuer) }
    }

    /// The error of a request with the connection's client. If the issuer does not know the client, or the secret that
    /// it issued has expired, the client is replaced, and the error says so.
    func explaining(
        _ error: BrokerError, of connection: MCPConnection, isRefresh: Bool = false
    ) async -> BrokerError {
        let host = (try? WebURL(parsing: connection.issuer))?.place ?? connection.issuer
        if connection.resource != nil, let refusal = error.refusalOfResource {
            return .misconfigured(.oauth(.mcpResourceRefused(account.name, host: host, message: refusal)))
        }
        guard isRegistered(connection) else { return error }
        if case .unusableSetting(let setting) = error, setting.isOfRegistration, isRefresh {
            await replaceClient(of: connection)
            return .refreshRefused(account.name, host: host, .clientSecretExpired)
        }
        guard error.disownsClient else { return error }
        await replaceClient(of: connection)
        let (code, message) = error.statedByProvider ?? (nil, nil)
        return isRefresh
            ? .refreshRefused(account.name, host: host, .client(code: code, message: message))
            : .clientForgotten(account.name, host: host, code: code, message: message)
    }

    private func change(_ change: @Sendable (inout MCPClientRecord) -> Void) async throws(BrokerError) {
        try await registrar.records.change(MCPClientRecord.slot(account)) { text in
            var record = text.flatMap { MCPClientRecord(decoding: $0) } ?? MCPClientRecord()
            change(&record)
            return record.encoded()
        }
    }

    /// Deletes all registrations of the account, at their issuers and in the vault. Returns the latest one, and whether
    /// every issuer deleted its client; nil if there is none.
    func deleteAll() async throws(BrokerError) -> (issuer: String, clientID: String, isTold: Bool)? {
        let record = try await record()
        guard let latest = record.clients.last else { return nil }
        var isTold = true
        for client in record.clients where try await !delete(client) { isTold = false }
        let slot = MCPClientRecord.slot(account)
        try await BrokerError.mapping { () throws(VaultError) in try await tools.vault.remove(slot) }
        return (latest.issuer, latest.clientID, isTold)
    }

    /// Deletes the clients that were replaced, except the one that a session uses. A client that cannot be deleted now
    /// stays in the record; this is tried again after the next sign-in has begun.
    func deleteReplaced(besides used: MCPConnection?) async {
        guard let turn = try? await turns.wait(account.name) else { return }
        defer { turn() }
        guard let record = try? await record() else { return }
        for client in record.clients where client.isReplaced {
            if client.issuer == used?.issuer, client.clientID == used?.clientID { continue }
            _ = try? await delete(client)
        }
    }

    private func delete(_ client: MCPClientRecord.Client) async throws(BrokerError) -> Bool {
        var connection = MCPConnection(
            server: kind.server, issuer: client.issuer, resource: nil,
            peer: kind.server.url.isLoopback ? .inside : .unknown)
        connection.clientID = client.clientID
        let slot = RegistrationRecord.slot(account.name, issuer: client.issuer, clientID: client.clientID)
        var isTold = true
        do throws(BrokerError) {
            isTold = try await registrar.delete(slot, as: account.at(connection, of: kind, with: tools))
        } catch {
            // An earlier attempt ended between the two deletions.
            guard case .nothingHeld = error else { throw error }
        }
        try await change { $0.remove(client.issuer, client.clientID) }
        return isTold
    }
}

extension ProviderMetadata {
    /// The method with a secret that the issuer lists first; nil if it accepts clients without a secret or lists none.
    /// Some issuers accept the others at the token endpoint only, not for a revocation.
    fileprivate var preferredSecretMethod: String? {
        guard let listed = tokenEndpointAuthenticationMethods, !listed.contains(ClientAuthentication.none.rawValue)
        else { return nil }
        let ways: [ClientAuthentication] = [.clientSecretBasic, .clientSecretPost]
        return listed.first { ways.map(\.rawValue).contains($0) }
    }
}

extension BrokerError {
    /// What a provider says that refuses the parameter `resource` (RFC 8707); nil for another error. Some send
    /// `invalid_target`, others another code and a text that names the parameter, such as Entra.
    var refusalOfResource: String? {
        guard let (code, message) = statedByProvider else { return nil }
        let isNamed = message.map(OAuthError.namesResourceParameter) ?? false
        guard code == "invalid_target" || isNamed else { return nil }
        return [code, message].compactMap(\.self).joined(separator: ": ")
    }

    /// Nil for an error that is not a refusal of the provider.
    fileprivate var statedByProvider: (code: String?, message: String?)? {
        switch self {
        case .provider(.refused(let code, let message)): (code, message)
        case .provider(.unexplained(_, _, let message)): (nil, message)
        default: nil
        }
    }
}

extension OAuthError {
    static func namesResourceParameter(_ text: String) -> Bool {
        let text = text.lowercased()
        let words = [
            "aadsts9010010", "'resource'", "\"resource\"", "“resource”", "`resource`", "resource parameter",
            "parameter resource", "parameter: resource",
        ]
        return words.contains { text.contains($0) }
    }
}

/// The vault's record of the clients that were registered for an account at an MCP server, by issuer. A client is never
/// used at another issuer than the one that registered it. Secrets are in the ``RegistrationRecord`` of each client.
struct MCPClientRecord: Sendable, Equatable {
    static let version = 1

    struct Client: Sendable, Equatable {
        let issuer: String
        let clientID: String
        let authentication: ClientAuthentication
        let hasSecret: Bool
        /// The redirect URI that was registered, with its port: some servers compare it byte for byte.
        let redirectURI: String
        /// The account's own redirect URI at that time; nil for the default.
        let template: String?
        let scopes: [String]
        /// No sign-in uses it any more. It is kept until it is deleted at its issuer, since a session may still use it.
        var isReplaced = false

        func fits(_ redirectURI: String?, _ scopes: [String]) -> Bool {
            (template == redirectURI || self.redirectURI == redirectURI)
                && (self.scopes.isEmpty || Set(scopes).isSubset(of: self.scopes))
        }
    }

    /// The latest one last. At most one client of each issuer is not replaced.
    private(set) var clients: [Client] = []

    init() {}

    static func slot(_ account: Account) -> VaultSlot {
        VaultSlot(account: account.name.rawValue, binding: account.binding.text, kind: .registration)
    }

    func client(at issuer: String) -> Client? { clients.last { $0.issuer == issuer && !$0.isReplaced } }

    mutating func add(_ client: Client) {
        remove(client.issuer, client.clientID)
        replace(client.issuer)
        clients.append(client)
    }

    mutating func replace(_ issuer: String) {
        for place in clients.indices where clients[place].issuer == issuer { clients[place].isReplaced = true }
    }

    mutating func remove(_ issuer: String, _ clientID: String) {
        clients.removeAll { $0.issuer == issuer && $0.clientID == clientID }
    }

    init?(decoding text: Secret) {
        guard let json = try? JSON(parsing: text.revealedBytes()),
            json["mcp_version"]?.integer == MCPClientRecord.version, let members = json["clients"]?.array
        else { return nil }
        clients = members.compactMap { member in
            guard let issuer = member["issuer"]?.string, let id = member["client_id"]?.string,
                let redirectURI = member["redirect_uri"]?.string
            else { return nil }
            let way = member["token_endpoint_auth_method"]?.string.flatMap { ClientAuthentication(rawValue: $0) }
            return Client(
                issuer: issuer, clientID: id, authentication: way ?? .none,
                hasSecret: member["has_secret"]?.bool ?? false, redirectURI: redirectURI,
                template: member["template"]?.string, scopes: (member["scopes"]?.array ?? []).compactMap(\.string),
                isReplaced: member["replaced"]?.bool ?? false)
        }
    }

    func encoded() -> Secret {
        let members = clients.map { client -> JSONObject in
            [
                "issuer": client.issuer, "client_id": client.clientID,
                "token_endpoint_auth_method": client.authentication.rawValue, "has_secret": client.hasSecret,
                "redirect_uri": client.redirectURI, "scopes": client.scopes, "template": client.template,
                "replaced": client.isReplaced ? true : nil,
            ]
        }
        let record: JSONObject = ["mcp_version": MCPClientRecord.version, "clients": members]
        return Secret(bytes: JSON.object(record).serialized())
    }
}
