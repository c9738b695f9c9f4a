public import RingbackBase

/// The result of one check: what was found, and what a client needs to advise the user. It holds names, hosts,
/// numbers and addresses of the provider's documents, and no secret.
public struct Finding: Sendable, Equatable {
    public enum Level: String, Sendable, CaseIterable {
        case ok
        /// It works, but not as it should, or not for long.
        case warning
        case wrong
    }

    /// What was checked. The raw values are those of the socket API.
    public enum Check: String, Sendable, CaseIterable {
        case network, tls, clock
        case provider
        /// The metadata at the issuer.
        case discovery
        /// Whether the account can sign in with these metadata.
        case metadata
        /// The authorization endpoint.
        case page
        case client
        case redirect
        case session, vault, peers
        case expose
        case file
    }

    /// What is wrong. The raw values are those of the socket API.
    public enum Cause: String, Sendable, CaseIterable {
        case unreachable
        case untrusted
        /// The server speaks TLS and the URL is an http URL, or the other way round.
        case wrongScheme = "wrong_scheme"
        /// The response is not one of a provider that the account can use.
        case badResponse = "bad_response"
        /// ``Finding/setting`` names the key, where there is one.
        case configuration
        case clientRefused = "client_refused"
        /// The provider registers clients that ask for it (RFC 7591): nothing is wrong.
        case registrationOffered = "registration_offered"
        case clockDiffers = "clock_differs"
        /// The user has to paste each callback.
        case callbackIsPasted = "callback_is_pasted"
        /// Any other app may claim the redirect URI's scheme.
        case schemeNotReserved = "scheme_not_reserved"
        case portTaken = "port_taken"
        case sessionStale = "session_stale"
        case signInNeeded = "sign_in_needed"
        case vaultLocked = "vault_locked"
        /// The vault's key is kept by another source than the configured one.
        case keySourceDiffers = "key_source_differs"
        /// ``Finding/path`` is open to others.
        case openToOthers = "open_to_others"
        case vaultInMemory = "vault_in_memory"
        /// This host has not joined those that share the vault.
        case notJoined = "not_joined"
        /// Another host must give the key of the shared vault to this one.
        case noHostsKey = "no_hosts_key"
        case notExposed = "not_exposed"
        case fileNotKept = "file_not_kept"
        case peersUnproved = "peers_unproved"
        case shuttingDown = "shutting_down"
    }

    public var check: Check
    public var level: Level
    public var message: Reason
    public var cause: Cause?
    /// The key of the configuration to look at.
    public var setting: String?
    /// The URL that was requested; nil if it has characters that a shell would interpret.
    public var url: String?
    public var host: String?
    public var port: Int?
    /// A directory of the daemon's machine.
    public var path: String?
    /// How ``url`` is requested; nil for an address that is not a provider's.
    public var way: Way?
    /// The issuer in the provider's metadata, where it differs from the configured one and is at the same host.
    public var stated: String?
    /// Scopes that a sign-in has to request, separated by spaces.
    public var scope: String?
    /// If a new registration of the account's client helps.
    public var terms: RegistrationTerms?

    /// How an account reaches its provider.
    public struct Way: Sendable, Equatable {
        public var route: HTTPRoute
        /// The path of the certificates that are trusted instead of the system's; nil for the system's.
        public var certificateFile: String?
    }

    /// - Parameter isOfAll: true for the requests of every account without a setting of its own; false for one account.
    public static func proxied(by proxy: HTTPProxy, isOfAll: Bool) -> Finding {
        let exceptions = proxy.exceptions.isEmpty ? "" : ", except to \(proxy.exceptions.joined(separator: ", "))"
        let text =
            "\(isOfAll ? "Requests to providers" : "Requests of this account") go through the proxy \(proxy.url.text)"
            + "\(exceptions). The proxy resolves the names of providers. Therefore the check that a URL from a "
            + "provider does not lead to this machine works only for URLs with an IP address."
        return Finding(.network, .ok, .stated(text))
    }

    public init(
        _ check: Check, _ level: Level, _ message: Reason, _ cause: Cause? = nil, setting: String? = nil,
        url: String? = nil
    ) {
        self.check = check
        self.level = level
        self.message = message
        self.cause = cause
        self.setting = setting
        guard let url, let parsed = try? WebURL(parsing: url) else { return }
        host = parsed.host
        port = parsed.port ?? (parsed.scheme == "https" ? 443 : 80)
        self.url = Finding.isPlain(url) ? url : nil
    }

    /// True if the URL has no characters that a shell would interpret.
    static func isPlain(_ url: String) -> Bool {
        url.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: ":/._-%[]".utf8.contains(byte)
            }
        }
    }
}

public struct Diagnosis: Sendable {
    /// In the order of a sign-in.
    public var findings: [Finding]
    /// False for accounts without callbacks, such as services.
    public var awaitsCallbacks: Bool

    public init(_ findings: [Finding], awaitsCallbacks: Bool = true) {
        self.findings = findings
        self.awaitsCallbacks = awaitsCallbacks
    }
}

/// The subject of the diagnostics: an account, or only its client.
public enum DiagnosisSubject: Sendable {
    case configured
    /// An account that is not configured yet. Its secret is not used.
    case candidate
    /// The client of such an account, after ``candidate``: metadata that were found then are not requested again.
    case candidateClient
}

/// Checks what a sign-in of an account needs, without a sign-in: that the provider responds and is the configured one,
/// that its clock and this machine's agree, that a callback can arrive. Every step has a time limit, and none changes
/// anything.
public struct Diagnostics: Sendable {
    private let broker: Broker

    public init(of broker: Broker) { self.broker = broker }

    /// The findings for an account, in the order of a sign-in.
    public func findings(of name: AccountName) async throws(BrokerError) -> [Finding] {
        let account = try await broker.sessionManager.account(name)
        let session = await broker.sessionManager.held(name)
        async let diagnosis = account.provider(with: broker.tools).diagnose(.configured, of: session)
        async let redirect = redirect(of: account)
        return network(of: account) + Diagnostics.describing(await diagnosis.findings, account)
            + (await diagnosis.awaitsCallbacks ? [redirect] : [])
    }

    /// The findings for the provider of an account that is not configured yet. With `isClientOnly` the provider was
    /// checked a moment ago; only then the account's secret is used.
    public func findings(ofCandidate account: Account, isClientOnly: Bool = false) async -> [Finding] {
        let subject: DiagnosisSubject = isClientOnly ? .candidateClient : .candidate
        return Diagnostics.describing(
            await account.provider(with: broker.tools).diagnose(subject, of: nil).findings, account)
    }

    /// The account's own `proxy` setting; no finding if it has none.
    private func network(of account: Account) -> [Finding] {
        switch account.route {
        case .standard: []
        case .direct:
            [Finding(.network, .ok, .stated("Requests of this account go to the provider without a proxy."))]
        case .proxy(let proxy): [.proxied(by: proxy, isOfAll: false)]
        }
    }

    /// Adds to each finding that has a URL how that URL was requested.
    private static func describing(_ findings: [Finding], _ account: Account) -> [Finding] {
        findings.map { finding in
            var finding = finding
            if finding.url != nil {
                finding.way = Finding.Way(route: account.route, certificateFile: account.certificateFile)
            }
            return finding
        }
    }

    /// Where an account's callbacks arrive. A fixed port is opened to find out whether it is free, unless a pending
    /// sign-in of the account has it open already.
    private func redirect(of account: Account) async -> Finding {
        let check = Finding.Check.redirect
        guard let uri = account.redirectURI else {
            return Finding(check, .ok, .stated("The callback arrives at a free port on 127.0.0.1."))
        }
        let scheme = String(uri.prefix { $0 != ":" }).lowercased()
        switch scheme {
        case "https":
            return Finding(
                check, .warning, .stated("The callback does not arrive by itself: its URL has to be pasted."),
                .callbackIsPasted, setting: "redirect_uri")
        case "http": break
        default:
            let text = "The callback arrives as a link of the scheme \(scheme)"
            guard (try? URLScheme(parsing: scheme))?.isReverseDNS == false else {
                return Finding(check, .ok, .stated("\(text)."))
            }
            return Finding(
                check, .warning,
                .stated(
                    "\(text), which any other app may claim. A scheme after a domain of yours, such as "
                        + "org.example.\(scheme), avoids that."),
                .schemeNotReserved, setting: "redirect_uri")
        }
        guard await broker.flowRegistry.pending(account.name) == nil else {
            return Finding(check, .ok, .stated("A sign-in is waiting for its callback now."))
        }
        do throws(BrokerError) {
            let opened = try await broker.callbackReceiver.open(uri, account.name)
            await broker.callbackReceiver.close(opened, account.name)
            return Finding(check, .ok, .stated("The port of the callback is free."))
        } catch {
            let failure: ListenerFailure? = if case .portInUse(let failure) = error { failure } else { nil }
            return Finding(check, .wrong, .portUnusable(failure), .portTaken, setting: "redirect_uri", url: uri)
        }
    }
}

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

    /// A problem with a response. The reason continues a sentence that begins with the host's name.
    public struct Trouble: Error {
        public var level = Finding.Level.wrong
        public let reason: Reason
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
        Trouble(.stated("responds with HTTP status \(response.status)"))
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
        let isTLS = (try? WebURL(parsing: request.url))?.scheme == "https"
        let text = isTLS ? "has a certificate that is trusted" : "is this machine. The connection is not encrypted"
        var findings = [Finding(.tls, .ok, .stated("\(host) \(text)."))]
        switch read(response) {
        case .success(let reason): findings.append(Finding(check, .ok, .host(host, reason)))
        case .failure(let trouble):
            var finding = Finding(
                check, trouble.level, .host(host, trouble.reason), .badResponse,
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
                .tls, .wrong, .stated("There is no trusted connection to \(host): \(reason)."), .untrusted, url: url)
        case .wrongScheme(_, let speaksTLS):
            Finding(
                .tls, .wrong, .wrongScheme(host: host, speaksTLS: speaksTLS), .wrongScheme,
                setting: setting, url: url)
        case .unreachable(_, let reason, _):
            Finding(
                check, .wrong, .stated("\(host) cannot be reached: \(reason)."), .unreachable, setting: setting,
                url: url)
        case .timedOut:
            Finding(
                check, .wrong, .stated("\(host) does not respond within \(timeout.wholeSeconds) s."), .unreachable,
                setting: setting, url: url)
        case .tooLarge, .malformed:
            Finding(
                check, .wrong, .stated("The response of \(host) is not valid HTTP, or it is too large."),
                .badResponse, setting: setting, url: url)
        case .refusedURL:
            Finding(check, .wrong, .endpointNotAllowed, .configuration, setting: setting)
        case .cancelled:
            Finding(
                check, .warning, .stated("The check was not made: the daemon is shutting down."), .shuttingDown)
        }
    }

    private static func clock(_ response: HTTPResponse, _ host: String, _ now: WallInstant) -> Finding {
        guard let theirs = response.fields["Date"].flatMap({ HTTPDate.seconds(of: $0) }) else {
            return Finding(.clock, .ok, .stated("\(host) does not send its time."))
        }
        // The age of a cached response is added to its date (RFC 9111 section 5.1).
        let age = max(0, min(response.fields["Age"].flatMap { Int($0) } ?? 0, 1 << 31))
        let (difference, overflow) = now.seconds.subtractingReportingOverflow(theirs &+ age)
        let size = overflow ? Int.max : abs(difference)
        guard size > remarkable else {
            return Finding(.clock, .ok, .stated("The clocks of this machine and of \(host) agree."))
        }
        return Finding(
            .clock, size > leeway ? .wrong : .warning,
            .stated(
                "This machine's clock is \(size) s \(difference > 0 ? "ahead of" : "behind") that of \(host): ID "
                    + "tokens are rejected if the difference is more than \(leeway) s."),
            .clockDiffers)
    }
}
