public import HTTPMessages
public import Secrets
internal import StrictJSON

/// What a registration is read, changed and deleted with (RFC 7592 section 3). Whoever loses it can only ask the
/// provider's people to remove the client.
public struct RegistrationManagement: Sendable, Equatable {
    public let token: Secret
    /// Nil if the provider named no place that the token may be sent to: it is kept all the same.
    public let uri: String?

    /// A kept one. The URI is believed: it was checked before it was kept.
    public init(token: Secret, uri: String?) {
        self.token = token
        self.uri = uri
    }

    /// As an answer on behalf of the issuer names it; nil without a token.
    init?(token text: String?, uri: String?, issuer: String) {
        guard let token = TokenText.secret(text) else { return nil }
        self.token = token
        self.uri = uri.flatMap { RegistrationManagement.checked($0, issuer: issuer) }
    }

    /// Out of an answer that is not JSON as we accept it, see ``MemberSalvage``.
    init?(salvagedFrom body: Secret, issuer: String) {
        self.init(
            token: MemberSalvage.text(of: "registration_access_token", in: body),
            uri: MemberSalvage.text(of: "registration_client_uri", in: body), issuer: issuer)
    }

    private static func checked(_ text: String, issuer: String) -> String? {
        guard let url = EndpointRule.url(text), let issuer = try? WebURL(parsing: issuer),
            EndpointRule.allows(url, of: issuer)
        else { return nil }
        return text
    }

    /// Deletes the registration (section 2.3); nil where nobody knows where.
    public func deletion() -> HTTPRequest? { request("DELETE") }

    /// Reads the registration (section 2.1); nil where nobody knows where. ``RegistrationResponse`` reads the answer.
    public func reading() -> HTTPRequest? { request("GET") }

    /// Replaces the registration's metadata (section 2.2); nil where nobody knows where.
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
                authorization: Secret("Bearer \(token.revealed())"), limits: HTTPLimits(maxBody: HTTPRequest.maxAnswer),
                // The answer may hold another token, which exists nowhere else.
                keepsPartialBody: method != "DELETE")
        }
    }

    /// Reads the answer to ``deletion()``: returns if the client is gone, or was before.
    ///
    /// - `.refused`: 401 (also the word for a client that is gone, which only the provider can tell), 403 and 405
    ///   (section 2.3: it is not deleted this way), or an OAuth error.
    /// - `.unavailable`: 408, 425, 429 or 5xx.
    public static func checkDeletion(_ response: HTTPResponse) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .registration)
        if (200..<300).contains(response.status) || [404, 410].contains(response.status) { return }
        if let object = try? ResponseReader.object(in: response, of: .registration),
            let refusal = try ResponseReader.refusal(in: object, status: response.status, of: .registration)
        {
            throw .refused(refusal)
        }
        let codes = [401: "invalid_token", 403: "access_denied", 405: "unsupported", 501: "unsupported"]
        guard let code = codes[response.status] else {
            throw .invalid(.registration, reason: "HTTP \(response.status) in place of 204")
        }
        throw .refused(.init(code: code, message: nil, status: response.status))
    }
}
