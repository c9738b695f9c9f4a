public import HTTPMessages
internal import Secrets
internal import StrictJSON

/// A pushed authorization request (RFC 9126): the parameters are sent to the provider directly, with client
/// authentication, and the browser gets only a reference to them.
public struct PushedAuthorization: Sendable, Equatable {
    /// The reference, which can be used once.
    public let requestURI: String
    /// The reference's lifetime in seconds.
    public let expiresIn: Int

    /// The lifetime that is assumed if the response states none.
    private static let usualLife = 60

    /// The request: a POST of the authorization request's parameters with client authentication.
    public static func request(
        _ authorization: AuthorizationRequest, registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        for (name, value) in authorization.parameters where name != "client_id" {
            request.appendParameter(name, value)
        }
        // `client_id` is a parameter of the request. Other authentication methods add it to the form themselves.
        if registration.authentication == .clientSecretBasic {
            request.appendParameter("client_id", registration.clientID)
        }
        registration.authenticate(&request)
        return request
    }

    /// True if the response rejects the client itself, so that an authorization request through the browser would fail
    /// too. One known server does so with status 403 and an empty body. Status 401 only says that this endpoint does not
    /// accept the client's authentication: some servers have it for other clients alone.
    public static func rejectsClient(in response: HTTPResponse) -> Bool {
        guard response.status != 401 else { return false }
        return OAuthError.rejectsClient(in: response, codes: ["invalid_client", "unauthorized_client"])
            || (response.status == 403 && response.body.isEmpty)
    }

    /// Reads the response (section 2.2): 201 with `request_uri` and `expires_in`. Some servers send status 200. Throws
    /// `.refused` for an error response, `.unavailable` or `.invalid`.
    public init(parsing response: HTTPResponse) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .pushedAuthorization)
        let object = try ResponseReader.object(in: response, of: .pushedAuthorization)
        if let errorResponse = try ResponseReader.errorResponse(
            in: object, status: response.status, of: .pushedAuthorization)
        {
            throw .refused(errorResponse)
        }
        guard [200, 201].contains(response.status) else {
            throw .invalid(.pushedAuthorization, reason: "HTTP \(response.status) in place of 201")
        }
        guard let uri = object["request_uri"]?.string, !uri.isEmpty, uri.utf8.count <= 2_048,
            uri.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw .invalid(.pushedAuthorization, reason: "no request_uri") }
        requestURI = uri
        let stated = LenientNumber.seconds(object["expires_in"]) ?? 0
        expiresIn = stated > 0 ? stated : PushedAuthorization.usualLife
    }
}

extension AuthorizationRequest {
    /// The authorization URL for a pushed request: client id and reference (section 4), and `response_type`, which some
    /// servers require (RFC 6749 section 4.1.1).
    public func url(of pushed: PushedAuthorization) -> String {
        url(with: [("response_type", "code"), ("client_id", clientID), ("request_uri", pushed.requestURI)])
    }
}
