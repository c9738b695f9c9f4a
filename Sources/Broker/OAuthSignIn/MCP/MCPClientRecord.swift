internal import BrokerCore
internal import OAuth
internal import Secrets
internal import SessionVault
internal import StrictJSON

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
        /// The scopes that the client was registered with; empty if none were stated.
        let scopes: [String]
        /// No sign-in uses it any more. It is kept until it is deleted at its issuer, since a session may still use it.
        var isReplaced = false

        /// True if a sign-in may use this client.
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

    /// The client of the next sign-in at the issuer.
    func client(at issuer: String) -> Client? { clients.last { $0.issuer == issuer && !$0.isReplaced } }

    /// Adds a client, which replaces the issuer's former one.
    mutating func add(_ client: Client) {
        remove(client.issuer, client.clientID)
        replace(client.issuer)
        clients.append(client)
    }

    /// Marks the issuer's clients as replaced: no sign-in uses them any more.
    mutating func replace(_ issuer: String) {
        for place in clients.indices where clients[place].issuer == issuer { clients[place].isReplaced = true }
    }

    mutating func remove(_ issuer: String, _ clientID: String) {
        clients.removeAll { $0.issuer == issuer && $0.clientID == clientID }
    }

    /// Nil if the text is not such a record, or is one of a newer version.
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
        let members = clients.map { client -> JSON in
            var member = JSONObject([
                .init("issuer", .string(client.issuer)), .init("client_id", .string(client.clientID)),
                .init("token_endpoint_auth_method", .string(client.authentication.rawValue)),
                .init("has_secret", .bool(client.hasSecret)), .init("redirect_uri", .string(client.redirectURI)),
                .init("scopes", .array(client.scopes.map { .string($0) })),
            ])
            member["template"] = client.template.map { .string($0) }
            if client.isReplaced { member["replaced"] = true }
            return .object(member)
        }
        let record: JSON = ["mcp_version": .integer(MCPClientRecord.version), "clients": .array(members)]
        return Secret(bytes: record.serialized())
    }
}
