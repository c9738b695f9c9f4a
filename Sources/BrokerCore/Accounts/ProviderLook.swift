public import HTTPMessages

/// One conversation with a provider that is only looked at.
public struct ProviderLook: Sendable {
    let account: Account
    let http: any HTTPClient
    let clock: BrokerClock

    public init(account: Account, http: any HTTPClient, clock: BrokerClock) {
        self.account = account
        self.http = http
        self.clock = clock
    }

    /// Somebody waits in front of a screen.
    private static let timeout: Duration = .seconds(6)
    /// Seconds. ID tokens are judged with two minutes of leeway.
    private static let leeway = 120
    private static let remarkable = 30

    /// What is not as it should be, after the host's name.
    public struct Trouble: Error {
        public var level = Finding.Level.wrong
        public let text: String

        public init(_ text: String, level: Finding.Level = .wrong) {
            self.level = level
            self.text = text
        }
    }

    public static func status(_ response: HTTPResponse) -> Trouble {
        Trouble("answers with HTTP status \(response.status)")
    }

    /// Sends a request, and tells who answered, by which certificate, what, and when by their clock.
    public func look(
        _ request: HTTPRequest, as check: String, _ read: (HTTPResponse) -> Result<String, Trouble>
    ) async -> [Finding] {
        var request = request
        request.trust = account.trust
        request.route = account.route
        request.limits.timeout = ProviderLook.timeout
        for (name, value) in account.headers { request.fields.set(name, value) }
        let host = request.host
        let before = clock.now()
        let response: HTTPResponse
        do throws(HTTPClientError) {
            response = try await http.send(request)
        } catch {
            return [ProviderLook.finding(error, check, host, request.url)]
        }
        let now = (before + clock.now()) / 2
        var findings: [Finding] = []
        if (try? WebURL(parsing: request.url))?.scheme == "https" {
            findings.append(Finding("tls", .ok, "\(host) has shown a certificate that is believed."))
        } else {
            findings.append(Finding("tls", .ok, "\(host) is this machine: nothing is encrypted on the way."))
        }
        switch read(response) {
        case .success(let text): findings.append(Finding(check, .ok, "\(host) \(text)."))
        case .failure(let trouble):
            findings.append(
                Finding(check, trouble.level, "\(host) \(trouble.text).", command: ProviderLook.command(request.url)))
        }
        findings.append(ProviderLook.clock(response, host, now))
        return findings
    }

    /// How a person would look for themselves; nil for an address that a shell would make something else of.
    private static func command(_ url: String) -> String? {
        let isPlain = url.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: ":/._-%[]".utf8.contains(byte)
            }
        }
        return isPlain ? "curl -v \(url)" : nil
    }

    private static func finding(
        _ error: HTTPClientError, _ check: String, _ host: String, _ url: String
    ) -> Finding {
        switch error {
        case .untrusted(_, let reason):
            Finding(
                "tls", .wrong,
                "\(host) is not believed: \(reason). If its certificate is of an authority of your own, set ca_file; if "
                    + "its key has changed, pinned_public_keys.", command: command(url))
        case .unreachable(_, let reason):
            Finding(check, .wrong, "\(host) cannot be reached: \(reason).", command: command(url))
        case .timedOut:
            Finding(
                check, .wrong, "\(host) does not answer within \(timeout.components.seconds) s.", command: command(url))
        case .tooLarge, .malformed:
            Finding(check, .wrong, "\(host) answers, but not as a web server should.", command: command(url))
        case .refusedURL:
            Finding(
                check, .wrong, "An endpoint is neither https nor http on a loopback address.",
                command: "ringback config check")
        case .cancelled: Finding(check, .warning, "It could not be looked at: the daemon is shutting down.")
        }
    }

    private static func clock(_ response: HTTPResponse, _ host: String, _ now: Int) -> Finding {
        guard let theirs = response.fields["Date"].flatMap({ HTTPDate.seconds(of: $0) }) else {
            return Finding("clock", .ok, "\(host) does not say what time it has.")
        }
        // An answer that a cache has kept is that much older than it was sent (RFC 9111 section 5.1).
        let age = max(0, min(response.fields["Age"].flatMap { Int($0) } ?? 0, 1 << 31))
        let (difference, overflow) = now.subtractingReportingOverflow(theirs &+ age)
        let size = overflow ? Int.max : abs(difference)
        guard size > remarkable else {
            return Finding("clock", .ok, "The clocks of this machine and of \(host) agree.")
        }
        return Finding(
            "clock", size > leeway ? .wrong : .warning,
            "This machine's clock is \(size) s \(difference > 0 ? "ahead of" : "behind") that of \(host): ID tokens are "
                + "refused from \(leeway) s on.",
            command: "timedatectl set-ntp true")
    }
}
