internal import Encodings
public import HTTPMessages
public import Secrets
internal import StrictJSON

/// The access to a client registration (RFC 7592 section 3). Without this token the registration can only be removed by
/// the provider's staff.
public struct RegistrationManagement: Sendable, Equatable {
    public let token: Secret
    /// The client configuration endpoint; nil if the provider gave no URL that the token may be sent to. The token is
    /// kept anyway.
    public let uri: String?

    /// Stored values. The URI was checked before it was stored.
    public init(token: Secret, uri: String?) {
        self.token = token
        self.uri = uri
    }

    /// From a response on behalf of this issuer; nil without a token.
    init?(token text: String?, uri: String?, issuer: String) {
        guard let token = TokenText.secret(text) else { return nil }
        self.token = token
        self.uri = uri.flatMap { RegistrationManagement.checked($0, issuer: issuer) }
    }

    /// From a response that is not valid JSON, see ``MemberSalvage``.
    init?(salvagedFrom body: Secret, issuer: String) {
        let bytes = UnicodeText.utf8(body.revealedBytes())
        self.init(
            token: MemberSalvage.text(of: "registration_access_token", in: bytes),
            uri: MemberSalvage.text(of: "registration_client_uri", in: bytes), issuer: issuer)
    }

    private static func checked(_ text: String, issuer: String) -> String? {
        guard let url = EndpointRule.url(text), let issuer = try? WebURL(parsing: issuer),
            EndpointRule.allows(url, of: issuer)
        else { return nil }
        return text
    }

    /// The request that deletes the registration (section 2.3); nil if the URI is unknown.
    public func deletion() -> HTTPRequest? { request("DELETE") }

    /// The request that reads the registration (section 2.1), for ``RegistrationResponse``; nil if the URI is unknown.
    public func reading() -> HTTPRequest? { request("GET") }

    /// The request that replaces the registration's metadata (section 2.2); nil if the URI is unknown.
    func update(_ metadata: JSONObject) -> HTTPRequest? {
        guard var request = request("PUT") else { return nil }
        request.fields.set("Content-Type", "application/json")
        request.body = Secret(bytes: JSON.object(metadata).serialized())
        return request
    }

    private func request(_ method: String) -> HTTPRequest? {
        uri.map { uri in
            HTTPRequest(
                method: method, url: uri, fields: HTTPFields([("Accept", "application/json")]),
                authorization: Secret("Bearer \(token.revealed())"),
                limits: HTTPLimits(maxBody: HTTPRequest.maxResponse),
                // The response may hold another token, which exists nowhere else.
                keepsPartialBody: method != "DELETE")
        }
    }

    /// Reads the response to ``deletion()``. Returns if the client is deleted or did not exist any more. Otherwise
    /// throws:
    ///
    /// - `.refused`: status 401 (also sent for a client that does not exist any more), 403 or 405 (section 2.3: it
    ///   cannot be deleted this way), or an OAuth error.
    /// - `.unavailable`: status 408, 425, 429 or 5xx.
    public static func checkDeletion(_ response: HTTPResponse) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .registration)
        if (200..<300).contains(response.status) || [404, 410].contains(response.status) { return }
        if let object = try? ResponseReader.object(in: response, of: .registration),
            let errorResponse = try ResponseReader.errorResponse(in: object, status: response.status, of: .registration)
        {
            throw .refused(errorResponse)
        }
        let codes = [401: "invalid_token", 403: "access_denied", 405: "unsupported", 501: "unsupported"]
        guard let code = codes[response.status] else {
            throw .invalid(.registration, reason: "HTTP \(response.status) in place of 204")
        }
        throw .refused(.init(code: code, message: nil, status: response.status))
    }
}
