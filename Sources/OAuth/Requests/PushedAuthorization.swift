public import HTTPMessages
internal import Secrets
internal import StrictJSON

/// An authorization request that goes to the provider directly, with the client's authentication; the browser carries
/// only a reference to it (RFC 9126).
public struct PushedAuthorization: Sendable, Equatable {
    /// What the provider calls the request. Of one use.
    public let requestURI: String
    /// Seconds that it can be used.
    public let expiresIn: Int

    /// A POST of the request's parameters, with the client's authentication.
    public static func request(
        _ authorization: AuthorizationRequest, registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        for (name, value) in authorization.parameters where name != "client_id" {
            request.appendParameter(name, value)
        }
        // A parameter of the request, which the client's authentication brings along unless it is in the fields.
        if registration.authentication == .clientSecretBasic {
            request.appendParameter("client_id", registration.clientID)
        }
        registration.authenticate(&request)
        return request
    }

    /// True if the response refuses the client itself, so that an authorization request through the browser would be
    /// refused too. One known server says so by 403 with an empty body.
    public static func refusesClient(in response: HTTPResponse) -> Bool {
        OAuthError.refusesClient(in: response, codes: ["invalid_client", "unauthorized_client"])
            || (response.status == 403 && response.body.isEmpty)
    }

    /// Reads the response (section 2.2): 201 with `request_uri` and `expires_in`. Some servers answer 200 in its place.
    public init(parsing response: HTTPResponse) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .pushedAuthorization)
        let object = try ResponseReader.object(in: response, of: .pushedAuthorization)
        if let refusal = try ResponseReader.refusal(in: object, status: response.status, of: .pushedAuthorization) {
            throw .refused(refusal)
        }
        guard [200, 201].contains(response.status) else {
            throw .invalid(.pushedAuthorization, reason: "HTTP \(response.status) in place of 201")
        }
        guard let uri = object["request_uri"]?.string, !uri.isEmpty, uri.utf8.count <= 2_048,
            uri.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw .invalid(.pushedAuthorization, reason: "no request_uri") }
        guard let seconds = object["expires_in"]?.integer, seconds > 0 else {
            throw .invalid(.pushedAuthorization, reason: "no expires_in")
        }
        requestURI = uri
        expiresIn = seconds
    }
}

extension AuthorizationRequest {
    /// The URL to open for a request that was pushed: the client and the reference (section 4), and the response type,
    /// which some servers ask for beside them as OAuth 2.0 does (RFC 6749 section 4.1.1).
    public func url(of pushed: PushedAuthorization) -> String {
        url(with: [("response_type", "code"), ("client_id", clientID), ("request_uri", pushed.requestURI)])
    }
}
