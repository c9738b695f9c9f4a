internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// Authorization requests that clients push (RFC 9126). A reference is valid for one client, for a minute and for one
/// use.
extension ProviderState {
    struct PushedRequest {
        let clientID: String
        let pairs: [FormEncoding.Pair]
        let expiresAt: Int
    }

    private static let pushedLifetime = 60
    private static let prefixOfReferences = "urn:ietf:params:oauth:request_uri:"
    private static let credentials: Set<String> = ["client_secret", "client_assertion", "client_assertion_type"]

    mutating func push(_ request: SandboxRequest, at now: Int) throws(ErrorResponse) -> ServerResponse {
        guard settings.pushedRequests != .off else {
            throw ErrorResponse("invalid_request", "not offered", status: 404)
        }
        let parameters = try formParameters(request)
        let client = try authenticate(request, parameters, at: now)
        guard parameters["request_uri"] == nil else {
            throw ErrorResponse("invalid_request", "request_uri is not pushed")
        }
        guard parameters["client_id"] == client.id else {
            throw ErrorResponse("invalid_request", "client_id is missing")
        }
        guard let redirectURI = parameters["redirect_uri"], client.accepts(redirectURI: redirectURI) else {
            throw ErrorResponse("invalid_request", "redirect_uri is not one that the client may use")
        }
        pushed = pushed.filter { $0.value.expiresAt > now }
        let name = ProviderState.prefixOfReferences + newToken("par")
        let pairs = (request.form ?? []).filter { !ProviderState.credentials.contains($0.name) }
        pushed[name] = PushedRequest(clientID: client.id, pairs: pairs, expiresAt: now + ProviderState.pushedLifetime)
        return Responses.json(
            ["request_uri": .string(name), "expires_in": .integer(ProviderState.pushedLifetime)],
            status: settings.pushedStatus)
    }

    /// The parameters of an authorization request, wherever they are; nil if they had to be pushed, or if a reference
    /// is not valid (any more). Parameters beside a reference are ignored (section 4, RFC 9101 section 6.3).
    mutating func requested(_ parameters: Parameters, at now: Int) -> Parameters? {
        guard let reference = parameters["request_uri"], reference.hasPrefix(ProviderState.prefixOfReferences) else {
            return settings.pushedRequests == .required ? nil : parameters
        }
        if settings.requiresResponseType, parameters["response_type"] != "code" { return nil }
        guard let request = pushed.removeValue(forKey: reference), now < request.expiresAt,
            request.clientID == parameters["client_id"]
        else { return nil }
        return Parameters(request.pairs)
    }
}
