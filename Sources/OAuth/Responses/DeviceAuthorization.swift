public import HTTPMessages
public import Secrets
internal import StrictJSON

/// A sign-in on another device (RFC 8628): a code and an address for the person, and a secret to ask with whether the
/// person has said yes. What a person will see or open is checked here: a provider could be made to say anything.
public struct DeviceAuthorization: Sendable, Equatable {
    /// What the token endpoint is asked with. Never shown.
    public let deviceCode: Secret
    /// What the person types: 1 to 32 letters, digits, `-`, `_`, `.` and inner spaces.
    public let userCode: String
    /// Where it is typed: https, or http on loopback at a provider on loopback.
    public let verificationURI: String
    /// The same with the code in it, for a QR code; nil where the provider has none that may be shown.
    public let verificationURIComplete: String?
    /// Seconds from the answer on that the codes live, 1 to ``longestLife``.
    public let expiresIn: Int
    /// Seconds between two questions, ``shortestInterval`` or more.
    public let interval: Int

    /// The `grant_type` of the questions (section 3.4).
    public static let grantType = "urn:ietf:params:oauth:grant-type:device_code"
    /// A longer promise is cut to it (seconds): nobody sits before a code for half an hour.
    public static let longestLife = 1_800
    /// What an answer without `interval` means (section 3.2), and the least that is kept to (seconds).
    public static let shortestInterval = 5
    /// The longest code that a person can be asked to type.
    static let longestUserCode = 32
    /// The longest address that is shown, in bytes.
    static let longestAddress = 2_048

    /// The request (section 3.1), with the client's authentication.
    public static func request(
        scopes: [String], additionalParameters: [(String, String)] = [], registration: ClientRegistration,
        endpoint: String
    ) -> HTTPRequest {
        var request = HTTPRequest.form(to: endpoint)
        // A parameter of the request, which the client's authentication brings along unless it is in the fields.
        if registration.authentication == .clientSecretBasic {
            request.appendParameter("client_id", registration.clientID)
        }
        if !scopes.isEmpty { request.appendParameter("scope", scopes.joined(separator: " ")) }
        for (name, value) in additionalParameters { request.appendParameter(name, value) }
        registration.authenticate(&request)
        return request
    }

    /// Reads the answer (section 3.2). A life that is missing or no number is the longest one; one of 0 or less is a
    /// code that nobody can use, and refused. `endpoint` is where the answer came from.
    public init(parsing response: HTTPResponse, from endpoint: String) throws(OAuthError) {
        try ResponseReader.checkStatus(response, of: .deviceAuthorization)
        let object = try ResponseReader.object(in: response, of: .deviceAuthorization)
        if let refusal = try ResponseReader.refusal(in: object, status: response.status, of: .deviceAuthorization) {
            throw .refused(refusal)
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
                reason: "no user_code that a person could type (1 to \(DeviceAuthorization.longestUserCode) "
                    + "letters, digits and -)")
        }
        // Google's older word for it.
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
        // It only saves typing: one that may not be opened is left out.
        verificationURIComplete = complete.flatMap { DeviceAuthorization.mayBeShown($0, by: endpoint) ? $0 : nil }
        expiresIn = try DeviceAuthorization.life(object["expires_in"])
        interval = DevicePace.sensible(LenientNumber.seconds(object["interval"]), within: expiresIn)
    }

    private static func life(_ value: JSON?) throws(OAuthError) -> Int {
        guard let seconds = LenientNumber.seconds(value) else { return longestLife }
        guard seconds > 0 else { throw .invalid(.deviceAuthorization, reason: "its codes have expired already") }
        return min(seconds, longestLife)
    }

    /// What can be typed, and cannot move a cursor, hide or pretend.
    private static func isUserCode(_ text: String) -> Bool {
        let bytes = text.utf8
        return (1...longestUserCode).contains(bytes.count) && bytes.first != 0x20 && bytes.last != 0x20
            && bytes.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || "-_. ".utf8.contains(byte)
            }
    }

    /// A provider out there may not send the person to a page on this machine.
    private static func mayBeShown(_ address: String, by endpoint: String) -> Bool {
        guard address.utf8.count <= longestAddress, let url = try? WebURL(parsing: address), url.isSecure,
            let home = try? WebURL(parsing: endpoint)
        else { return false }
        return EndpointRule.allows(url, of: home)
    }
}
