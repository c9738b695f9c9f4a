internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

/// A sign-in on another device (RFC 8628), from the codes on.
struct DeviceGrant {
    enum State {
        case pending
        case allowed(SandboxUser)
        case denied
        case used
    }

    let clientID: String
    let userCode: String
    let scopes: [String]
    let expiresAt: Int
    /// Seconds between two token requests; every one that comes too early adds some.
    var interval: Int
    /// When the client got its last response: at first with the codes.
    var answeredAt: Int
    var state = State.pending
}

/// The device authorization endpoint, its grant and its page (RFC 8628 sections 3.1 to 3.5).
/// A client that asks too early is told to slow down, every time, and has to. The sandbox tests whether clients do.
extension AuthorizationServer {
    static let deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"
    /// RFC 8628 section 3.5.
    private static let slowing = 5
    /// RFC 8628 section 6.1: consonants alone form no words, and none looks like a digit.
    private static let letters = Array("BCDFGHJKLMNPQRSTVWXZ")
    private static let maxDevices = 1_000

    mutating func authorizeDevice(_ request: SandboxRequest, at now: Int) throws -> ServerResponse {
        let settings = issuer.settings
        try requireOffer(settings.offersDevices)
        let (parameters, client) = try authenticate(request, at: now)
        devices = devices.filter { now < $0.value.expiresAt + settings.deviceCodeLifetime }
        try require(devices.count < Self.maxDevices, "temporarily_unavailable", "too many devices wait", status: 503)
        let deviceCode = Issuer.newToken("device")
        let grant = DeviceGrant(
            clientID: client.id, userCode: Self.newUserCode(), scopes: parameters.scopes ?? [],
            expiresAt: now + settings.deviceCodeLifetime, interval: settings.deviceInterval, answeredAt: now)
        devices[deviceCode] = grant
        issuer.counters[.deviceCodesIssued] += 1
        var answer: JSONObject = [
            "device_code": deviceCode, "user_code": grant.userCode, "verification_uri": issuer.url(.device),
            "verification_uri_complete": "\(issuer.url(.device))?user_code=\(grant.userCode)",
            "expires_in": settings.deviceCodeLifetime, "interval": settings.deviceInterval,
        ]
        for member in settings.deviceResponse.members {
            answer[member.name] = nil
            if member.value != .null { answer[member.name] = member.value }
        }
        return Responses.json(answer)
    }

    /// RFC 8628 section 3.4: one token request, and its response.
    mutating func deviceToken(_ parameters: Parameters, _ client: SandboxClient, at now: Int) throws -> ServerResponse {
        try require(issuer.settings.offersDevices, "unsupported_grant_type", "this grant type is not supported")
        let code = try parameters.required("device_code")
        guard var grant = devices[code], grant.clientID == client.id else {
            throw OAuthError("invalid_grant", "the device code is not known")
        }
        let isEarly = now - grant.answeredAt < grant.interval
        grant.answeredAt = now
        if isEarly {
            grant.interval += Self.slowing
            issuer.counters[.earlyDeviceQuestions] += 1
        }
        devices[code] = grant
        guard now < grant.expiresAt else { throw OAuthError("expired_token", "the device code has expired") }
        switch grant.state {
        case .used: throw OAuthError("invalid_grant", "the device code was used before")
        case .denied: throw OAuthError("access_denied", "The user said no.")
        case _ where isEarly:
            throw OAuthError("slow_down", "asked too early; the interval is \(grant.interval) s now")
        case .pending: throw OAuthError("authorization_pending", "nobody has entered the code yet")
        case .allowed(let user):
            devices[code]?.state = .used
            let family = issuer.open(client, user, grant.scopes, at: now)
            return try issuer.firstAnswer(client, family: family, hasConsent: true, at: now)
        }
    }

    /// The page where a user enters the code of another device (section 3.3).
    /// An address with the code shows the page all the same: a link of an attacker looks the same (section 5.4).
    mutating func devicePage(_ request: SandboxRequest, at now: Int) -> ServerResponse {
        guard issuer.settings.offersDevices else { return Pages.error("Devices are not signed in here.", status: 404) }
        let parameters = request.parameters
        let action = issuer.prefix + Endpoint.device.path
        guard let typed = parameters["user_code"] else { return Pages.deviceCode(action: action) }
        guard let code = self.code(forUserCode: typed, at: now), let grant = devices[code] else {
            let problem = "No device waits with this code. It may be mistyped, used or expired."
            return Pages.deviceCode(action: action, problem: problem)
        }
        let isPosted = request.method == "POST"
        let isDenied = isPosted && parameters["decision"] == "deny"
        let name = isPosted ? parameters["user"] : issuer.settings.autoApprovedUser
        let user = isPosted && parameters["decision"] != "allow" ? nil : issuer.user(named: name ?? "")
        guard isDenied || user != nil else {
            return Pages.deviceConfirmation(
                grant, users: issuer.users, action: action, problem: isPosted ? "Choose who signs in." : nil)
        }
        decide(device: code, as: user)
        return Pages.deviceDone(isAllowed: !isDenied)
    }

    /// The code as it may be typed: in lower case, with or without the hyphen.
    private func code(forUserCode typed: String, at now: Int) -> String? {
        let letters = Self.plain(typed)
        return devices.first { _, grant in
            guard case .pending = grant.state, now < grant.expiresAt else { return false }
            return Self.plain(grant.userCode) == letters
        }?.key
    }

    private mutating func decide(device code: String, as user: SandboxUser?) {
        if let user {
            devices[code]?.state = .allowed(user)
            issuer.counters[.signIns] += 1
        } else {
            devices[code]?.state = .denied
            issuer.counters[.denials] += 1
        }
    }

    /// The same for one code, or for all that are pending.
    mutating func decide(_ decision: DeviceDecision, at now: Int) {
        for (code, grant) in devices {
            guard case .pending = grant.state, now < grant.expiresAt else { continue }
            if let wanted = decision.userCode, Self.plain(wanted) != Self.plain(grant.userCode) { continue }
            decide(device: code, as: decision.user.flatMap { issuer.user(named: $0) })
        }
    }

    private static func plain(_ code: String) -> String { code.uppercased().filter { letters.contains($0) } }

    private static func newUserCode() -> String {
        let picked = RandomToken.bytes(8).map { Self.letters[Int($0) % Self.letters.count] }
        return String(picked[..<4]) + "-" + String(picked[4...])
    }
}

/// `{"device": {"decision": "allow", "user": "bob", "user_code": "WDJB-MJHT"}}`: what the page does, without a page.
struct DeviceDecision {
    /// Nil: every code that is pending.
    var userCode: String?
    /// Nil denies.
    var user: String?

    init(parsing member: JSONObject.Member, _ users: [SandboxUser]) throws {
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

extension Pages {
    static func deviceCode(action: String, problem: String? = nil) -> ServerResponse {
        let body = """
            <h1>Sign in on a device</h1>
            \(alert(problem))<form method="get" action="\(escape(action))">
            <p><label for="code">The code that the device shows</label><br>
            <input type="text" id="code" name="user_code" required autocomplete="off" autocapitalize="characters"
            spellcheck="false"></p>
            <p><button type="submit">Continue</button></p>
            </form>
            """
        return Responses.page(document("Sign in on a device", body), status: problem == nil ? 200 : 422)
    }

    static func deviceConfirmation(
        _ grant: DeviceGrant, users: [SandboxUser], action: String, problem: String? = nil
    ) -> ServerResponse {
        let body = """
            <h1>Sign in to \(escape(grant.clientID)) on a device</h1>
            \(alert(problem))<p>Go on only if a device of yours shows this code now:
            <strong><code>\(escape(grant.userCode))</code></strong></p>
            \(list(of: grant.scopes))
            \(decision(action, ("user_code", grant.userCode), users, hinted: users.first))
            """
        return Responses.page(document("Sign in on a device", body), status: problem == nil ? 200 : 422)
    }

    static func deviceDone(isAllowed: Bool) -> ServerResponse {
        let text = isAllowed ? "The device is signed in in a moment." : "The device is told that you said no."
        return Responses.page(document("Done", "<h1>Done</h1>\n<p>\(text) You can close this page.</p>"))
    }
}
