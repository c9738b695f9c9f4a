internal import BrokerCore
internal import LocalHTTP
internal import OAuthSignIn
internal import RingbackAPI
internal import RingbackBase
internal import Synchronization

/// How the MCP server of an account is reached, for `ringback-relay`, which carries its traffic.
struct MCPServerResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .getMCPServer, "How the account's MCP server is reached", query: [ConsentQuery.member],
            .json(
                "MCPServer", .required("account", "url"),
                .optional("certificate_authorities", text: "PEM certificates in place of the system's"),
                .optional("pinned_public_keys", as: .array(.string)),
                .optional(
                    "headers", as: .array(.object([.required("name", .string), .required("value", .string)])),
                    text: "Added to every request"),
                .optional(
                    "proxy",
                    as: .object([.required("url", .string), .optional("user", .string), .optional("password", .string)])
                ),
                .optional(
                    "outside", as: .boolean,
                    text:
                        "At the sign-in the server was not on this machine: its name must not lead to this machine now"),
                .optional(
                    "sign_in", as: .boolean,
                    text: "False if the server takes requests without a token: none is sent to it"),
                .optional(
                    "exposed_socket", text: "On an exposed socket: its name. Only `account` and `url` are beside it")),
            errors: .ofAccount.and([.methodUnsupported, .consentRequired, .consentTimeout]),
            MCPServerResource.getMCPServer)
    ]

    func getMCPServer(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        // Before anything is read: what is read while a reload goes on is of the former configuration.
        let configuration = daemon.configurationNumber()
        let session = broker.snapshot.current(name.rawValue)?.entry.encoding.number
        let access = try await call.ask { () throws(BrokerError) in try await broker.mcpServer(name) }
        let url = access.url
        let routed: HTTPProxy? =
            switch access.route {
            case .standard: daemon.network().proxy
            case .direct: nil
            case .proxy(let proxy): proxy
            }
        let proxy = routed.flatMap { $0.covers(url) ? $0 : nil }
        // What an exposed socket shows was decided when it was made.
        if !access.headers.isEmpty || proxy?.credentials != nil, call.facts.exposedSocket == nil {
            try await api.consentToServer(of: name, call, needsToken: access.needsToken)
        }
        let keys = access.trust.pinnedPublicKeys
        let headers = access.headers.map { ["name": $0.0, "value": $0.1] as JSONObject }
        let members = proxy.map { proxy in
            [
                "url": proxy.url.text, "user": proxy.credentials?.user,
                "password": proxy.credentials?.password.revealed(),
            ] as JSONObject
        }
        let object: JSONObject = [
            "account": name.rawValue, "url": url.text,
            "certificate_authorities": access.trust.certificateAuthorities.map {
                String(decoding: $0, as: UTF8.self)
            }, "pinned_public_keys": keys.isEmpty ? nil : keys, "headers": headers.isEmpty ? nil : headers,
            "outside": access.isOutside ? true : nil, "sign_in": access.needsToken ? nil : false, "proxy": members,
        ]
        let body = JSON.object(object).serialized()
        if let configuration { api.mcpServers.keep(body, of: name.rawValue, configuration, session) }
        return ServerResponse(status: 200, fields: ServerResponse.jsonFields, body: body)
    }
}

/// The last responses about MCP servers, by configuration and token: a relay asks before each request of a bridge.
final class KnownMCPServers: Sendable {
    private struct Known {
        let configuration: UInt64
        /// Of the token, see ``SessionSnapshot/Entry``; nil for none.
        let session: UInt64?
        let body: [UInt8]
    }

    private static let most = 64
    private let known = Mutex<[String: Known]>([:])

    func keep(_ body: [UInt8], of account: String, _ configuration: UInt64, _ session: UInt64?) {
        known.withLock { known in
            if known.count >= KnownMCPServers.most { known = [:] }
            known[account] = Known(configuration: configuration, session: session, body: body)
        }
    }

    func body(of account: String, _ configuration: UInt64, _ session: UInt64?) -> [UInt8]? {
        known.withLock { known in
            guard let entry = known[account], entry.configuration == configuration, entry.session == session else {
                return nil
            }
            return entry.body
        }
    }
}
