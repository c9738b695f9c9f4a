internal import BrokerCore
internal import HTTPMessages
internal import LocalHTTP
internal import OAuthSignIn
internal import RingbackAPI
internal import Secrets
internal import StrictJSON

/// How the MCP server of an account is reached, for `ringback-relay`, which carries its traffic.
struct MCPServerResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .getMCPServer, "How the account's MCP server is reached", .json(.mcpServer),
            errors: .ofAccount.and([.methodUnsupported]), MCPServerResource.getMCPServer)
    ]

    func getMCPServer(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let access = try await call.ask { () throws(BrokerError) in try await broker.mcpServer(name) }
        let url = access.url
        var object = JSONObject([.init("account", .string(name.rawValue)), .init("url", .string(url.text))])
        object["certificate_authorities"] = access.trust.certificateAuthorities.map {
            .string(String(decoding: $0, as: UTF8.self))
        }
        if !access.trust.pinnedPublicKeys.isEmpty {
            object["pinned_public_keys"] = .array(access.trust.pinnedPublicKeys.map { .string($0) })
        }
        if !access.headers.isEmpty {
            object["headers"] = .array(access.headers.map { ["name": .string($0.0), "value": .string($0.1)] })
        }
        let proxy: HTTPProxy? =
            switch access.route {
            case .standard: daemon.network().proxy
            case .direct: nil
            case .proxy(let proxy): proxy
            }
        if let proxy, proxy.covers(url) {
            var members = JSONObject([.init("url", .string(proxy.url.text))])
            members["user"] = proxy.credentials.map { .string($0.user) }
            members["password"] = proxy.credentials.map { .string($0.password.revealed()) }
            object["proxy"] = .object(members)
        }
        return ServerResponse(json: .object(object))
    }
}

extension Component {
    fileprivate static let mcpServer = Component(
        "MCPServer",
        [
            .required("account", .string), .required("url", .string),
            .optional("certificate_authorities", .string, "PEM certificates in place of the system's"),
            .optional("pinned_public_keys", .array(.string)),
            .optional(
                "headers", .array(.object([.required("name", .string), .required("value", .string)])),
                "Added to every request"),
            .optional(
                "proxy",
                .object([.required("url", .string), .optional("user", .string), .optional("password", .string)])),
            .optional(
                "exposed_socket", .string, "On an exposed socket: its name. Only `account` and `url` are beside it"),
        ])
}
