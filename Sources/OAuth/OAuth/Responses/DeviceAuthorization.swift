public import HTTPMessages
public import Secrets
internal import StrictJSON

/// A device authorization (RFC 8628): a code and a URL for the user, and the device code for polling the token
/// endpoint. What the user will see or open is checked here, because the response is chosen by the server.
public struct DeviceAuthorization: Sendable, Equatable {
    /// Identifies the flow at the token endpoint. Never shown.
    public let deviceCode: Secret
    /// The code that the user types: 1 to 32 letters, digits, `-`, `_`, `.` and inner spaces.
    public let userCode: String
    /// The page where it is typed: https, or http on loopback if the provider is on loopback.
    public let verificationURI: String
    /// The same page with the code in its URL, for a QR code; nil if the provider gives none or it is not allowed.
    public let verificationURIComplete: String?
    /// The lifetime of the codes in seconds from the response on, 1 to ``longestLife``.
    public let expiresIn: Int
    /// Seconds between two polls, at least ``shortestInterval``.
    public let interval: Int

    /// The `grant_type` of the polls (section 3.4).
    public static let grantType = "urn:ietf:params:oauth:grant-type:device_code"
    /// The maximum lifetime in seconds; longer ones are reduced to it.
    public static let longestLife = 1_800
    /// The interval if the response has none (section 3.2), and the minimum, in seconds.
    public static let shortestInterval = 5
    /// The maximum length of a user code.
    static let longestUserCode = 32
    /// The maximum length of a URL in bytes.
    static let longestAddress = 2_048

    /// The device authorization request (section 3.1) with client authentication.
    public static func request(
        scopes: [String], resource: String? = nil, additionalParameters: [(String, String)] = [],
        registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        // `client_id` is a parameter of the request. Other authentication methods add it to the form themselves.
        if registration.authentication == .clientSecretBasic {
            request.appendParameter("client_id", registration.clientID)
        }
        if !scopes.isEmpty { request.appendParameter("scope", scopes.joined(separator: " ")) }
        if let resource { request.appendParameter("resource", resource) }
        for (name, value) in additionalParameters { request.appendParameter(name, value) }
        registration.authenticate(&request)
        return request
    }

    /// Reads the response (section 3.2). A missing lifetime counts as the maximum; one of 0 or less throws `.invalid`.
    /// `endpoint` is where the response came from. Throws `.refused` for an error response.
    public init(parsing response: HTTPResponse, from endpoint: String) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .deviceAuthorization)
        let object = try ResponseReader.object(in: response, of: .deviceAuthorization)
        if let errorResponse = try ResponseReader.errorResponse(
            in: object, status: response.status, of: .deviceAuthorization)
        {
            throw .refused(errorResponse)
        }
        guard (200..<300).contains(response.status) else {
            throw .invalid(.deviceAuthorization, reason: "HTTP \(response.status) without an OAuth error")
        }
        guard let deviceCode = TokenText.secret(object["device_code"]?.string, allowsSpace: true) else {
            throw .invalid(.deviceAuthorization, reason: "no device_code")
        }
        guard let userCode = object["user_code"]?.string, DeviceAuthorization.isUserCode(userCode) else {
            throw .invalid(
                .deviceAuthorization,
                reason: "no user_code that can be typed (1 to \(DeviceAuthorization.longestUserCode) "
                    + "letters, digits and -)")
        }
        // Google uses the older name.
        guard let address = object["verification_uri"]?.string ?? object["verification_url"]?.string else {
            throw .invalid(.deviceAuthorization, reason: "no verification_uri")
        }
        guard DeviceAuthorization.mayBeShown(address, by: endpoint) else {
            throw .invalid(.deviceAuthorization, reason: "its verification_uri is not an https URL")
        }
        let complete =
            object["verification_uri_complete"]?.string ?? object["verification_url_complete"]?.string
        self.deviceCode = deviceCode
        self.userCode = userCode
        verificationURI = address
        // It is optional, so one that is not allowed is ignored.
        verificationURIComplete = complete.flatMap { DeviceAuthorization.mayBeShown($0, by: endpoint) ? $0 : nil }
        expiresIn = try DeviceAuthorization.life(object["expires_in"])
        interval = DevicePace.sensible(LenientNumber.seconds(object["interval"]), within: expiresIn)
    }

    private static func life(_ value: JSON?) throws(OAuthError) -> Int {
        guard let seconds = LenientNumber.seconds(value) else { return longestLife }
        guard seconds > 0 else { throw .invalid(.deviceAuthorization, reason: "its codes have expired already") }
        return min(seconds, longestLife)
    }

    /// True if the code can be typed and contains no character that affects a terminal or is invisible.
    private static func isUserCode(_ text: String) -> Bool {
        let bytes = text.utf8
        return (1...longestUserCode).contains(bytes.count) && bytes.first != 0x20 && bytes.last != 0x20
            && bytes.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || "-_. ".utf8.contains(byte)
            }
    }

    /// An external provider must not send the user to a page on this machine.
    private static func mayBeShown(_ address: String, by endpoint: String) -> Bool {
        guard address.utf8.count <= longestAddress, let url = try? WebURL(parsing: address), url.isSecure,
            let home = try? WebURL(parsing: endpoint)
        else { return false }
        return EndpointRule.allows(url, of: home)
    }
}
