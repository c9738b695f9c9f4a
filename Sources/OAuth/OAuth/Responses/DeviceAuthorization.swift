public import RingbackBase

/// A device authorization (RFC 8628): a code and a URL for the user, and the device code for polling. What the user
/// will see or open is checked here, because the server chooses it.
public struct DeviceAuthorization: Sendable, Equatable {
    /// Never shown.
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
    /// Of the polls (section 3.4).
    public static let grantType = "urn:ietf:params:oauth:grant-type:device_code"
    /// The maximum lifetime in seconds; longer ones are reduced to it.
    public static let longestLife = 1_800
    /// In seconds: the usual interval (section 3.2) and the minimum.
    public static let shortestInterval = 5
    static let longestUserCode = 32
    /// In bytes.
    static let longestAddress = 2_048

    /// The device authorization request (section 3.1) with client authentication.
    public static func request(
        scopes: [String], resource: String? = nil, additionalParameters: [(String, String)] = [],
        registration: ClientRegistration, endpoint: String
    ) -> HTTPRequest {
        .form(
            [("scope", ScopeList.text(scopes)), ("resource", resource)] + additionalParameters.map { ($0.0, $0.1) },
            to: endpoint, by: registration, namesClient: true)
    }

    /// Reads the response (section 3.2) of `endpoint`. A missing lifetime counts as the maximum; one of 0 or less
    /// throws `.invalid`, an error response `.refused`.
    public init(parsing response: HTTPResponse, from endpoint: String) throws(OAuthError) {
        let object = try ResponseReader.success(in: response, of: .deviceAuthorization)
        guard (200..<300).contains(response.status) else {
            throw .invalid(.deviceAuthorization, reason: "HTTP \(response.status) without an OAuth error")
        }
        guard let deviceCode = TokenText.secret(object["device_code"]?.string, allowsSpace: true) else {
            throw .invalid(.deviceAuthorization, reason: "no device_code")
        }
        guard let userCode = object["user_code"]?.string, DeviceAuthorization.isUserCode(userCode) else {
            let rule = "1 to \(DeviceAuthorization.longestUserCode) letters, digits and -"
            throw .invalid(.deviceAuthorization, reason: "no user_code that can be typed (\(rule))")
        }
        // Google uses the older name.
        guard let address = object["verification_uri"]?.string ?? object["verification_url"]?.string else {
            throw .invalid(.deviceAuthorization, reason: "no verification_uri")
        }
        guard DeviceAuthorization.mayBeShown(address, by: endpoint) else {
            throw .invalid(.deviceAuthorization, reason: "its verification_uri is not an https URL")
        }
        let complete = object["verification_uri_complete"]?.string ?? object["verification_url_complete"]?.string
        self.deviceCode = deviceCode
        self.userCode = userCode
        verificationURI = address
        // It is optional.
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

/// When the token endpoint may be polled next (RFC 8628 section 3.5). Each wait starts after the previous response, so
/// that a slow provider is not polled more often.
public struct DevicePace: Sendable, Equatable {
    /// From a response to the next poll.
    public private(set) var interval: Duration
    /// Consecutive polls without a usable response.
    private var failures = 0
    private var isSlowed = false
    private var retryAfter: Duration = .zero

    public enum Event: Sendable, Equatable {
        /// `authorization_pending`
        case pending
        /// `slow_down`, with the interval that some providers send with it.
        case slowDown(interval: Duration?)
        /// No connection, no response in time, or a status that means "later", with its `Retry-After`, if given.
        case unanswered(retryAfter: Duration?)
    }

    /// Section 3.5: how much each `slow_down` adds permanently.
    public static let slowing: Duration = .seconds(5)
    /// After a `slow_down` the wait is a quarter longer: by a fifth (1 / `faster`) and a twentieth. If the provider's
    /// clock runs faster than ours, each poll would again be slightly too early.
    private static let faster = 5
    /// The longest back-off, so that the sign-in continues soon after the network is back.
    private static let longestPause: Duration = .seconds(120)
    private static let longestInterval: Duration = .seconds(DeviceAuthorization.longestLife)

    public init(interval: Duration) {
        self.interval = min(max(interval, .seconds(1)), DevicePace.longestInterval)
    }

    /// In seconds: at least five, and not so long that no poll fits into the lifetime of the codes.
    public static func sensible(_ stated: Int?, within life: Int) -> Int {
        let usual = DeviceAuthorization.shortestInterval
        return min(max(stated ?? usual, usual), max(life - usual, usual))
    }

    public mutating func note(_ event: Event) {
        switch event {
        case .pending: (failures, retryAfter) = (0, .zero)
        case .slowDown(let stated):
            (failures, retryAfter) = (0, .zero)
            isSlowed = true
            interval = min(max(interval + DevicePace.slowing, stated ?? .zero), DevicePace.longestInterval)
        case .unanswered(let stated):
            failures = min(failures + 1, 16)
            retryAfter = min(stated ?? .zero, .seconds(RetryAfter.longest))
        }
    }

    /// From the last response (or failure) to the next poll.
    public var pause: Duration {
        var pause = interval
        if isSlowed { pause += pause / DevicePace.faster + pause / 20 }
        let doubled = min(pause * (1 << failures), max(DevicePace.longestPause, pause))
        return max(doubled, retryAfter)
    }
}

/// The response of the token endpoint to a poll (RFC 8628 section 3.5).
public enum DeviceTokenResponse: Sendable {
    /// The user has approved; a normal token response.
    case granted(TokenResponse)
    /// The user has not decided yet, or the polls are too fast.
    case waiting(DevicePace.Event)

    /// `authorization_pending` and `slow_down` are accepted with every status below 500 except redirects, because
    /// Google sends them with 428 and 403. Throws:
    /// - `.refused`: an error response, which ends the polling; `access_denied` means that the user declined,
    ///   `expired_token` that the code has expired.
    /// - `.unavailable` and `.failing`: status 408, 425, 429 or 5xx. Poll again.
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
        // Section 3.4 requires the client id unless the client authenticates otherwise; some servers always require it.
        let grant = [("grant_type", DeviceAuthorization.grantType), ("device_code", code.revealed())]
        return .form(grant + [("resource", resource)], to: endpoint, by: registration, namesClient: true)
    }
}
