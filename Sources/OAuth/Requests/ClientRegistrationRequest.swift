public import HTTPMessages
public import Secrets
internal import StrictJSON

/// What a native app tells a provider about itself to be registered there (RFC 7591 section 2, OpenID Connect Dynamic
/// Client Registration section 2): nothing that we would not keep to.
public struct ClientRegistrationRequest: Sendable, Equatable {
    /// What the provider's pages call us.
    public static let clientName = "Ringback"

    /// As they are registered: without a port where any port of loopback is meant.
    public let redirectURIs: [String]
    public let scopes: [String]
    public let authentication: ClientAuthentication

    /// - Parameter redirectTemplate: an account's redirect URI, where `{port}` or port 0 stands for a free one.
    /// - Throws: `.misconfigured` for a redirect URI that no native app may have (RFC 8252 sections 7 and 8.3), or a
    ///   way to authenticate that cannot be registered.
    public init(
        redirectTemplate: String, scopes: [String], authentication: ClientAuthentication
    ) throws(OAuthError) {
        guard let redirectURI = ClientRegistrationRequest.registered(redirectTemplate) else {
            throw .misconfigured(
                reason:
                    "the redirect URI is neither http on 127.0.0.1, [::1] or localhost, nor https, nor an app's own "
                    + "scheme, or it has a fragment")
        }
        guard authentication != .privateKeyJWT else {
            throw .misconfigured(reason: "a client with a key of its own has to be registered by hand")
        }
        redirectURIs = [redirectURI]
        self.scopes = scopes
        self.authentication = authentication
    }

    /// A POST of the metadata (RFC 7591 section 3.1). The token is for providers that register nobody without one.
    public func request(to endpoint: String, initialAccessToken: Secret? = nil) -> HTTPRequest {
        var object = JSONObject([
            .init("client_name", .string(ClientRegistrationRequest.clientName)), .init("application_type", "native"),
            .init("redirect_uris", .array(redirectURIs.map { .string($0) })),
            .init("grant_types", ["authorization_code", "refresh_token"]), .init("response_types", ["code"]),
            .init("token_endpoint_auth_method", .string(authentication.rawValue)),
        ])
        if !scopes.isEmpty { object["scope"] = .string(scopes.joined(separator: " ")) }
        return HTTPRequest(
            method: "POST", url: endpoint,
            fields: HTTPFields([("Accept", "application/json"), ("Content-Type", "application/json")]),
            authorization: initialAccessToken.map { Secret("Bearer \($0.revealed())") },
            body: Secret(bytes: JSON.object(object).serialized()), limits: HTTPLimits(maxBody: HTTPRequest.maxAnswer),
            // A registration cannot be asked for twice: half an answer may hold what it is managed with.
            keepsPartialBody: true)
    }

    /// RFC 8252 section 7.3: a provider lets the port of a loopback redirect vary. So none is registered where the
    /// account takes a free one; `{port}` is no part of a URL.
    private static func registered(_ template: String) -> String? {
        let halves = template.split(separator: ":{port}", maxSplits: 1, omittingEmptySubsequences: false)
        let isFree = halves.count == 2
        guard let url = try? WebURL(parsing: isFree ? "\(halves[0]):0\(halves[1])" : template), url.fragment == nil
        else { return nil }
        guard url.scheme == "http" else {
            // `https:`, or what no browser keeps for itself; the configuration's own check knows the whole list.
            guard !isFree, !["javascript", "data", "file", "about", "blob", "vbscript"].contains(url.scheme) else {
                return nil
            }
            return template
        }
        guard let host = url.host, ["127.0.0.1", "::1", "localhost"].contains(host), url.query == nil,
            let port = url.port
        else { return nil }
        let authority = host == "::1" ? "[::1]" : host
        return "http://\(authority)\(port == 0 ? "" : ":\(port)")\(url.path)"
    }
}

extension ProviderMetadata {
    /// How a client that has nothing yet is best registered: as a public one where that is taken, since what a desktop
    /// keeps is no secret (RFC 8252 section 8.4); else with a secret, by the first way offered. Nil if the provider
    /// takes neither.
    public var registrableAuthentication: ClientAuthentication? {
        guard let offered = tokenEndpointAuthenticationMethods else { return ClientAuthentication.none }
        let ways: [ClientAuthentication] = [.none, .clientSecretBasic, .clientSecretPost]
        return ways.first { offered.contains($0.rawValue) }
    }
}
