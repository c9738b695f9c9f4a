public import RingbackBase

/// The requests by which the diagnostics check a provider. They change nothing there.
public struct ProviderLook: Sendable {
    let account: Account
    let http: any HTTPClient
    let clock: BrokerClock
    /// The setting that says where the provider is.
    let place: String

    public init(account: Account, http: any HTTPClient, clock: BrokerClock, place: String) {
        self.account = account
        self.http = http
        self.clock = clock
        self.place = place
    }

    /// Short, since a user waits for the result.
    private static let timeout: Duration = .seconds(6)
    /// Seconds. The times in ID tokens are checked with a leeway of two minutes.
    private static let leeway = 120
    /// Seconds. A smaller difference is not reported.
    private static let remarkable = 30

    /// What is wrong with a response. The reason continues a sentence that begins with the host's name.
    public struct Trouble: Error {
        public var level = Finding.Level.wrong
        public let reason: Reason
        /// The setting to look at.
        public let setting: String?
        /// See ``Finding/stated``.
        public var stated: String?

        public init(_ reason: Reason, level: Finding.Level = .wrong, setting: String? = nil) {
            self.level = level
            self.reason = reason
            self.setting = setting
        }
    }

    public static func status(_ response: HTTPResponse) -> Trouble {
        Trouble(.finding(.respondsWithStatus(response.status)))
    }

    /// Sends a request and reports on the certificate, the response and the provider's clock.
    ///
    /// - Parameter setting: says where the request goes, if it is not the setting that names the provider.
    public func look(
        _ request: HTTPRequest, as check: Finding.Check, setting: String? = nil,
        _ read: (HTTPResponse) -> Result<Reason, Trouble>
    ) async -> [Finding] {
        var request = request
        request.trust = account.trust
        request.route = account.route
        request.limits.timeout = ProviderLook.timeout
        for (name, value) in account.headers { request.fields.set(name, value) }
        let host = request.host
        let before = clock.wallInstant
        let response: HTTPResponse
        do throws(HTTPClientError) {
            response = try await http.send(request)
        } catch {
            return [ProviderLook.finding(error, check, host, request.url, self.setting(of: error) ?? setting ?? place)]
        }
        let now = before + (clock.wallInstant - before) / 2
        var findings: [Finding] = []
        if (try? WebURL(parsing: request.url))?.scheme == "https" {
            findings.append(Finding(.tls, .ok, .finding(.certificateTrusted(host: host))))
        } else {
            findings.append(Finding(.tls, .ok, .finding(.notEncrypted(host: host))))
        }
        switch read(response) {
        case .success(let reason): findings.append(Finding(check, .ok, .finding(.host(host, reason))))
        case .failure(let trouble):
            var finding = Finding(
                check, trouble.level, .finding(.host(host, trouble.reason)), .badResponse,
                setting: trouble.setting ?? setting, url: request.url)
            finding.stated = trouble.stated.flatMap { Finding.isPlain($0) ? $0 : nil }
            findings.append(finding)
        }
        findings.append(ProviderLook.clock(response, host, now))
        return findings
    }

    /// The setting to look at if a proxy failed.
    private func setting(of error: HTTPClientError) -> String? {
        guard case .unreachable(_, _, .some(_)) = error else { return nil }
        return if case .proxy = account.route { "proxy" } else { "network.proxy" }
    }

    private static func finding(
        _ error: HTTPClientError, _ check: Finding.Check, _ host: String, _ url: String, _ setting: String
    ) -> Finding {
        switch error {
        case .untrusted(_, let reason):
            // The reason names a setting if changing it helps.
            Finding(
                .tls, .wrong, .finding(.noTrustedConnection(host: host, cause: reason)), .untrusted, url: url)
        case .wrongScheme(_, let speaksTLS):
            Finding(
                .tls, .wrong, .finding(.wrongScheme(host: host, speaksTLS: speaksTLS)), .wrongScheme,
                setting: setting, url: url)
        case .unreachable(_, let reason, _):
            Finding(
                check, .wrong, .finding(.unreachable(host: host, cause: reason)), .unreachable, setting: setting,
                url: url)
        case .timedOut:
            Finding(
                check, .wrong, .finding(.noResponse(host: host, seconds: timeout.wholeSeconds)), .unreachable,
                setting: setting, url: url)
        case .tooLarge, .malformed:
            Finding(
                check, .wrong, .finding(.badResponse(host: host)), .badResponse, setting: setting, url: url)
        case .refusedURL:
            Finding(check, .wrong, .provider(.endpointNotAllowed), .configuration, setting: setting)
        case .cancelled:
            Finding(check, .warning, .finding(.notChecked), .shuttingDown)
        }
    }

    private static func clock(_ response: HTTPResponse, _ host: String, _ now: WallInstant) -> Finding {
        guard let theirs = response.fields["Date"].flatMap({ HTTPDate.seconds(of: $0) }) else {
            return Finding(.clock, .ok, .finding(.noTime(host: host)))
        }
        // The age of a cached response is added to its date (RFC 9111 section 5.1).
        let age = max(0, min(response.fields["Age"].flatMap { Int($0) } ?? 0, 1 << 31))
        let (difference, overflow) = now.seconds.subtractingReportingOverflow(theirs &+ age)
        let size = overflow ? Int.max : abs(difference)
        guard size > remarkable else {
            return Finding(.clock, .ok, .finding(.clocksAgree(host: host)))
        }
        return Finding(
            .clock, size > leeway ? .wrong : .warning,
            .finding(.clockDiffers(host: host, seconds: size, isAhead: difference > 0, leeway: leeway)),
            .clockDiffers)
    }
}
