public import HTTPMessages
public import Secrets
internal import StrictJSON

/// The token endpoint's answer to "has the person said yes?" (RFC 8628 section 3.5).
public enum DeviceTokenResponse: Sendable {
    /// Yes, with what is in any token answer.
    case granted(TokenResponse)
    /// Not yet, or not so fast.
    case waiting(DevicePace.Event)

    /// Reads an answer. `authorization_pending` and `slow_down` count at every status below 500 (Google says them with
    /// 428 and 403); whatever else is an error is thrown, and ends the questions:
    ///
    /// - `.refused`: the provider's no; `access_denied` is the person's, `expired_token` means that nobody came in time.
    /// - `.unavailable` and `.failing`: 408, 425, 429 or 5xx: no answer, see
    ///   ``DevicePace/Event/unanswered(retryAfter:)``.
    /// - `.invalid`: no answer of a token endpoint.
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
            // Tokens are tokens, whatever stands beside them.
            object["access_token"] == nil, object["refresh_token"] == nil
        else { return nil }
        switch object["error"]?.string {
        case "authorization_pending"?: return .pending
        // GitHub says in the answer what the interval is from now on.
        case "slow_down"?: return .slowDown(interval: LenientNumber.seconds(object["interval"]))
        default: return nil
        }
    }
}

extension TokenRequest {
    /// Asks whether the person has said yes (RFC 8628 section 3.4).
    public static func deviceCode(
        _ code: Secret, registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        request.appendParameter("grant_type", DeviceAuthorization.grantType)
        request.appendParameter("device_code", code)
        // Section 3.4 wants the id in the form unless the client authenticates otherwise; some want it there always.
        if registration.authentication == .clientSecretBasic {
            request.appendParameter("client_id", registration.clientID)
        }
        registration.authenticate(&request)
        return request
    }
}
