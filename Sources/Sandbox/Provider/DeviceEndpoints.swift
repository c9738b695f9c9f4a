internal import Cryptography
internal import LocalHTTP
internal import StrictJSON

/// A sign-in on another device (RFC 8628), from the codes on.
struct DeviceGrant {
    enum State {
        case pending
        case allowed(SandboxUser)
        case denied
        case used
    }

    let clientID: String
    /// As it is shown.
    let userCode: String
    let scopes: [String]
    let expiresAt: Int
    /// Seconds between two token requests; every one that comes too early adds some.
    var interval: Int
    /// When the client got its last response: at first with the codes.
    var answeredAt: Int
    var state = State.pending
}

/// The device authorization endpoint and its grant (RFC 8628 sections 3.1 to 3.5).
///
/// A client that asks too early is told to slow down, every time, and has to. The sandbox tests whether clients do.
extension ProviderState {
    static let deviceGrantType = "urn:ietf:params:oauth:grant-type:device_code"
    /// RFC 8628 section 3.5.
    private static let slowing = 5
    /// RFC 8628 section 6.1: consonants alone form no words, and none looks like a digit.
    private static let letters = Array("BCDFGHJKLMNPQRSTVWXZ")
    private static let maxDevices = 1_000

    mutating func authorizeDevice(_ request: SandboxRequest, at now: Int) throws(ErrorResponse) -> ServerResponse {
        guard settings.offersDevices else { throw ErrorResponse("invalid_request", "not offered", status: 404) }
        let parameters = try formParameters(request)
        let client = try authenticate(request, parameters, at: now)
        devices = devices.filter { now < $0.value.expiresAt + settings.deviceCodeLifetime }
        guard devices.count < ProviderState.maxDevices else {
            throw ErrorResponse("temporarily_unavailable", "too many devices wait", status: 503)
        }
        let deviceCode = newToken("device")
        let grant = DeviceGrant(
            clientID: client.id, userCode: newUserCode(),
            scopes: (parameters["scope"] ?? "").split(separator: " ").map(String.init),
            expiresAt: now + settings.deviceCodeLifetime, interval: settings.deviceInterval, answeredAt: now)
        devices[deviceCode] = grant
        counters.deviceCodesIssued += 1
        var answer = JSONObject([
            .init("device_code", .string(deviceCode)), .init("user_code", .string(grant.userCode)),
            .init("verification_uri", .string(url(.device))),
            .init("verification_uri_complete", .string("\(url(.device))?user_code=\(grant.userCode)")),
            .init("expires_in", .integer(settings.deviceCodeLifetime)),
            .init("interval", .integer(settings.deviceInterval)),
        ])
        // Members that replace the correct ones; null leaves one out.
        for member in settings.deviceResponse.members {
            answer[member.name] = nil
            if member.value != .null { answer[member.name] = member.value }
        }
        return Responses.json(.object(answer))
    }

    /// RFC 8628 section 3.4: one token request, and its response.
    mutating func deviceToken(
        _ parameters: Parameters, _ client: SandboxClient, at now: Int
    ) throws -> ServerResponse {
        guard settings.offersDevices else {
            throw ErrorResponse("unsupported_grant_type", "this grant type is not supported")
        }
        guard let code = parameters["device_code"] else {
            throw ErrorResponse("invalid_request", "device_code is missing")
        }
        guard var grant = devices[code], grant.clientID == client.id else {
            throw ErrorResponse("invalid_grant", "the device code is not known")
        }
        let isEarly = now - grant.answeredAt < grant.interval
        grant.answeredAt = now
        if isEarly {
            grant.interval += ProviderState.slowing
            counters.earlyDeviceQuestions += 1
        }
        devices[code] = grant
        guard now < grant.expiresAt else { throw ErrorResponse("expired_token", "the device code has expired") }
        switch grant.state {
        case .used: throw ErrorResponse("invalid_grant", "the device code was used before")
        case .denied: throw ErrorResponse("access_denied", "The user said no.")
        case _ where isEarly:
            throw ErrorResponse("slow_down", "asked too early; the interval is \(grant.interval) s now")
        case .pending: throw ErrorResponse("authorization_pending", "nobody has entered the code yet")
        case .allowed(let user):
            devices[code]?.state = .used
            return try grantDevice(grant, user, client, at: now)
        }
    }

    private mutating func grantDevice(
        _ grant: DeviceGrant, _ user: SandboxUser, _ client: SandboxClient, at now: Int
    ) throws -> ServerResponse {
        let family = ledger.open(
            Ledger.Family(
                clientID: client.id, user: user, scopes: grant.scopes, authenticatedAt: now,
                sessionID: newToken("sid")))
        let issuesRefreshToken =
            switch settings.refreshTokens {
            case .always: true
            // A user who enters a device's code has consented.
            case .offlineAccess, .offlineConsent: grant.scopes.contains("offline_access")
            case .never: false
            }
        let refreshToken = issuesRefreshToken ? newRefreshToken(of: family, at: now) : nil
        return try answer(
            client, family: family, scopes: grant.scopes, refreshToken: refreshToken, held: nil, nonce: nil,
            hasIDToken: true, at: now)
    }

    // MARK: The user

    /// The code as it may be typed: in lower case, with or without the hyphen.
    func deviceCode(forUserCode typed: String, at now: Int) -> String? {
        let letters = ProviderState.plain(typed)
        return devices.first { _, grant in
            guard case .pending = grant.state, now < grant.expiresAt else { return false }
            return ProviderState.plain(grant.userCode) == letters
        }?.key
    }

    /// Allows the device for a user, or denies it (nil).
    mutating func decide(device code: String, as user: SandboxUser?) {
        if let user {
            devices[code]?.state = .allowed(user)
            counters.signIns += 1
        } else {
            devices[code]?.state = .denied
            counters.denials += 1
        }
    }

    /// The same for one code, or for all that are pending.
    mutating func decide(_ decision: DeviceDecision, at now: Int) {
        for (code, grant) in devices {
            guard case .pending = grant.state, now < grant.expiresAt else { continue }
            if let wanted = decision.userCode, ProviderState.plain(wanted) != ProviderState.plain(grant.userCode) {
                continue
            }
            decide(device: code, as: decision.user.flatMap { user(named: $0) })
        }
    }

    private static func plain(_ code: String) -> String {
        String(code.uppercased().filter { letters.contains($0) })
    }

    private func newUserCode() -> String {
        let picked = RandomToken.bytes(8).map { ProviderState.letters[Int($0) % ProviderState.letters.count] }
        return String(picked[..<4]) + "-" + String(picked[4...])
    }
}

/// `{"device": {"decision": "allow", "user": "bob", "user_code": "WDJB-MJHT"}}`: what the page does, without a page.
struct DeviceDecision {
    /// Nil: every code that is pending.
    var userCode: String?
    /// Nil denies.
    var user: String?

    init(parsing member: JSONObject.Member, _ users: [SandboxUser]) throws(ControlDocument.Mistake) {
        try member.allow(["decision", "user", "user_code"])
        userCode = try member.optional("user_code")?.string()
        let decision = try member.required("decision")
        switch try decision.string() {
        case "allow": user = try member.optional("user")?.userName(users) ?? users.first?.name
        case "deny": user = nil
        default: throw decision.mistake("allow or deny")
        }
    }
}
