public import HTTPMessages
public import Secrets
internal import StrictJSON

/// The response of the token endpoint to a poll (RFC 8628 section 3.5).
public enum DeviceTokenResponse: Sendable {
    /// The user has approved; a normal token response.
    case granted(TokenResponse)
    /// The user has not decided yet, or the polls are too fast.
    case waiting(DevicePace.Event)

    /// Reads a response. `authorization_pending` and `slow_down` are accepted with every status below 500 except
    /// redirects, because Google sends them with 428 and 403. Other errors are thrown:
    ///
    /// - `.refused`: an error response, which ends the polling; `access_denied` means that the user declined,
    ///   `expired_token` that the code has expired.
    /// - `.unavailable` and `.failing`: status 408, 425, 429 or 5xx. Poll again, see
    ///   ``DevicePace/Event/unanswered(retryAfter:)``.
    /// - `.invalid`: not a response of a token endpoint.
    public init(reading response: HTTPResponse) throws(OAuthError) {
        if let event = DeviceTokenResponse.event(in: response) {
            self = .waiting(event)
        } else {
            self = .granted(try TokenResponse(reading: response))
        }
    }

    private static func event(in response: HTTPResponse) -> DevicePace.Event? {
        guard !response.isTruncated, response.status < 500, !(300..<400).contains(response.status),
            let object = try? ResponseReader.tokenObject(in: response),
            // A response with tokens is a success, whatever error it also has.
            object["access_token"] == nil, object["refresh_token"] == nil
        else { return nil }
        switch object["error"]?.string {
        case "authorization_pending"?: return .pending
        // GitHub sends the new interval with the error.
        case "slow_down"?: return .slowDown(interval: LenientNumber.seconds(object["interval"]).map { .seconds($0) })
        default: return nil
        }
    }
}

extension TokenRequest {
    /// The poll request (RFC 8628 section 3.4).
    public static func deviceCode(
        _ code: Secret, resource: String? = nil, registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        request.appendParameter("grant_type", DeviceAuthorization.grantType)
        request.appendParameter("device_code", code)
        if let resource { request.appendParameter("resource", resource) }
        // Section 3.4 requires the client id unless the client authenticates otherwise; some servers always require it.
        if registration.authentication == .clientSecretBasic {
            request.appendParameter("client_id", registration.clientID)
        }
        registration.authenticate(&request)
        return request
    }
}
