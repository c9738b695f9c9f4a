internal import HTTPMessages
internal import LocalHTTP
internal import StrictJSON

/// Authorization requests that clients push (RFC 9126). A reference is valid for one client, for a minute and for one
/// use.
struct PushedRequests {
    private struct PushedRequest {
        let clientID: String
        let pairs: [FormEncoding.Pair]
        let expiresAt: Int
    }

    /// Seconds.
    private static let lifetime = 60
    private static let prefixOfReferences = "urn:ietf:params:oauth:request_uri:"
    private static let credentials: Set<String> = ["client_secret", "client_assertion", "client_assertion_type"]

    /// Those that wait for the browser, by their reference.
    private var requests: [String: PushedRequest] = [:]

    mutating func push(
        _ request: SandboxRequest, _ parameters: Parameters, _ client: SandboxClient, _ settings: SandboxSettings,
        at now: Int
    ) throws(ErrorResponse) -> ServerResponse {
        guard parameters["request_uri"] == nil else {
            throw ErrorResponse("invalid_request", "request_uri is not pushed")
        }
        guard parameters["client_id"] == client.id else {
            throw ErrorResponse("invalid_request", "client_id is missing")
        }
        guard let redirectURI = parameters["redirect_uri"], client.accepts(redirectURI: redirectURI) else {
            throw ErrorResponse("invalid_request", "redirect_uri is not one that the client may use")
        }
        requests = requests.filter { $0.value.expiresAt > now }
        let name = PushedRequests.prefixOfReferences + Issuer.newToken("par")
        let pairs = (request.form ?? []).filter { !PushedRequests.credentials.contains($0.name) }
        requests[name] = PushedRequest(clientID: client.id, pairs: pairs, expiresAt: now + PushedRequests.lifetime)
        return Responses.json(
            ["request_uri": .string(name), "expires_in": .integer(PushedRequests.lifetime)],
            status: settings.pushedStatus)
    }

    /// The parameters of an authorization request, wherever they are; nil if they had to be pushed, or if a reference
    /// is not valid (any more). Parameters beside a reference are ignored (section 4, RFC 9101 section 6.3).
    mutating func requested(_ parameters: Parameters, _ settings: SandboxSettings, at now: Int) -> Parameters? {
        guard let reference = parameters["request_uri"], reference.hasPrefix(PushedRequests.prefixOfReferences) else {
            return settings.pushedRequests == .required ? nil : parameters
        }
        if settings.requiresResponseType, parameters["response_type"] != "code" { return nil }
        guard let request = requests.removeValue(forKey: reference), now < request.expiresAt,
            request.clientID == parameters["client_id"]
        else { return nil }
        return Parameters(request.pairs)
    }
}
