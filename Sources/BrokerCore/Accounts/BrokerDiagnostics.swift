internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import SupabaseAuth

/// Looks at an account's provider the way that a sign-in would, without one: is it there, is it who it should be, do its
/// clock and ours agree, can an answer come back. Every step has a bound, and none changes anything.
extension Broker {
    /// What was found, in the order in which a sign-in would meet it.
    public func diagnose(_ name: AccountName) async throws(BrokerError) -> [Finding] {
        let account = try await sessionManager.account(name)
        async let provider = diagnose(account, asksClient: true)
        async let redirect = CallbackCheck(broker: self).finding(account)
        // Nobody comes back to a service.
        return await provider + (account.grant == nil ? [redirect] : [])
    }

    /// What was found at the provider of an account that is not configured yet. Its secret is not used.
    public func diagnose(candidate account: Account) async -> [Finding] {
        await diagnose(account, asksClient: account.clientSecret == nil && account.clientKey == nil)
    }

    private func diagnose(_ account: Account, asksClient: Bool) async -> [Finding] {
        if case .unsupported(let reason) = account.endpoints {
            return [Finding("provider", .wrong, reason, .configuration, setting: "provider")]
        }
        var findings = await Diagnosis(account: account, http: http, clock: clock).findings()
        if asksClient, account.project == nil, account.grant == nil, !findings.contains(where: { $0.level == .wrong }) {
            let provider = Provider(account: account, http: http, directory: directory, clock: clock)
            let client = await ClientDiagnosis(provider: provider).finding()
            findings += client.map { [$0] } ?? []
        }
        return findings
    }
}

/// Whether a callback can come back.
private struct CallbackCheck: Sendable {
    let broker: Broker

    /// A fixed port is tried: whether it is free is known to nobody else. One that a sign-in waits behind is ours.
    func finding(_ account: Account) async -> Finding {
        let check = "redirect"
        guard let uri = account.redirectURI else {
            return Finding(check, .ok, "The answer comes back to a free port on 127.0.0.1.")
        }
        let scheme = String(uri.prefix { $0 != ":" }).lowercased()
        switch scheme {
        case "https":
            return Finding(
                check, .warning,
                "The callback does not come back by itself: its address has to be pasted.", .callbackIsPasted,
                setting: "redirect_uri")
        case "http": break
        default:
            guard (try? URLScheme(parsing: scheme))?.isReverseDNS == false else {
                return Finding(check, .ok, "The answer comes back by links of the scheme \(scheme).")
            }
            return Finding(
                check, .warning,
                "The answer comes back by the scheme \(scheme), which any other app may claim: one after a domain of "
                    + "yours, such as org.example.\(scheme), is nobody else's.", .schemeNotReserved,
                setting: "redirect_uri")
        }
        guard await broker.flowRegistry.pending(account.name) == nil else {
            return Finding(check, .ok, "A sign-in waits for its answer now.")
        }
        do throws(BrokerError) {
            let opened = try await broker.callbackReceiver.open(uri, account.name)
            await broker.callbackReceiver.close(opened)
            return Finding(check, .ok, "The port that the answer comes back to can be had.")
        } catch {
            let reason = if case .portInUse(_, let reason) = error { reason } else { "the listener cannot be opened" }
            return Finding(
                check, .wrong, "The callback cannot come back: \(reason).", .portTaken, setting: "redirect_uri",
                url: uri)
        }
    }
}

/// One conversation with a provider that is only looked at.
private struct Diagnosis: Sendable {
    let account: Account
    let http: any HTTPClient
    let clock: BrokerClock

    /// Somebody waits in front of a screen.
    private static let timeout: Duration = .seconds(6)
    /// Seconds. ID tokens are judged with two minutes of leeway.
    private static let leeway = 120
    private static let remarkable = 30

    func findings() async -> [Finding] {
        switch account.endpoints {
        case .issuer(let issuer): return await atIssuer(issuer)
        case .fixed(let metadata):
            // A GET is no token request: whatever is answered, somebody is there.
            let token = await look(HTTPRequest(url: metadata.tokenEndpoint), as: "provider") { response in
                response.status < 500 ? .success("answers at its token endpoint") : .failure(status(response))
            }
            guard let page = try? WebURL(parsing: metadata.authorizationEndpoint),
                page.origin != (try? WebURL(parsing: metadata.tokenEndpoint))?.origin
            else { return token }
            // The same of the page that browsers are sent to; without its query, which may be a sign-in's.
            let place = page.origin + page.path
            return token
                + (await look(HTTPRequest(url: place), as: "page", setting: "endpoints.authorization") {
                    $0.status < 500 ? .success("answers at its authorization endpoint") : .failure(status($0))
                }.filter { $0.check == "page" || $0.level == .wrong })
        case .project(let project):
            return await look(project.project.settings(), as: "provider") { response in
                do throws(SupabaseError) {
                    return judge(try SupabaseSettings(reading: response), project)
                } catch {
                    return .failure(
                        response.status == 401 || response.status == 403
                            ? Trouble("does not accept the api_key (HTTP \(response.status))", setting: "api_key")
                            : Trouble(
                                "answers, but not as a Supabase Auth server (HTTP \(response.status))", setting: "url"))
                }
            }
        case .unsupported: return []
        }
    }

    /// What is not as it should be, after the host's name.
    private struct Trouble: Error {
        var level = Finding.Level.wrong
        let text: String
        let setting: String?

        init(_ text: String, level: Finding.Level = .wrong, setting: String? = nil) {
            self.level = level
            self.text = text
            self.setting = setting
        }
    }

    private func status(_ response: HTTPResponse) -> Trouble { Trouble("answers with HTTP status \(response.status)") }

    /// Ways of newer kinds are not listed by the server: hence no more than a warning.
    private func judge(_ settings: SupabaseSettings, _ project: SupabaseAccount) -> Result<String, Trouble> {
        guard let word = project.oauthProvider, !word.contains(":"), !settings.open.contains(word) else {
            return .success("is a Supabase Auth server")
        }
        return .failure(
            Trouble(
                "is a Supabase Auth server, where sign-in with \(word) is not switched on", level: .warning,
                setting: "oauth_provider"))
    }

    /// Both places of metadata are asked for, as a sign-in would.
    private func atIssuer(_ issuer: String) async -> [Finding] {
        guard let requests = try? ProviderMetadata.discoveryRequests(issuer: issuer) else {
            return [
                Finding("discovery", .wrong, "The issuer is not an https URL.", .configuration, setting: "issuer")
            ]
        }
        var first: [Finding] = []
        for request in requests {
            let found = await look(request, as: "discovery") { response in
                do throws(OAuthError) {
                    _ = try ProviderMetadata(parsing: response, issuer: issuer)
                    return .success("publishes metadata of this issuer")
                } catch {
                    return .failure(reason(error, response))
                }
            }
            if found.contains(where: { $0.check == "discovery" && $0.level == .ok }) { return found }
            if first.isEmpty { first = found }
            // Who cannot be reached at one place cannot be at the other.
            if !found.contains(where: { $0.check == "clock" }) { break }
        }
        return first
    }

    private func reason(_ error: OAuthError, _ response: HTTPResponse) -> Trouble {
        switch error {
        case .invalid(_, let reason):
            Trouble("publishes no usable metadata of this issuer: \(reason)", setting: "issuer")
        case .misconfigured(let reason): Trouble("cannot be used: \(reason)")
        default: status(response)
        }
    }

    /// Sends a request, and tells who answered, by which certificate, what, and when by their clock.
    private func look(
        _ request: HTTPRequest, as check: String, setting: String? = nil,
        _ read: (HTTPResponse) -> Result<String, Trouble>
    ) async -> [Finding] {
        var request = request
        request.trust = account.trust
        request.route = account.route
        request.limits.timeout = Diagnosis.timeout
        for (name, value) in account.headers { request.fields.set(name, value) }
        let host = request.host
        let before = clock.now()
        let response: HTTPResponse
        do throws(HTTPClientError) {
            response = try await http.send(request)
        } catch {
            return [Diagnosis.finding(error, check, host, request.url, setting ?? place)]
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
                Finding(
                    check, trouble.level, "\(host) \(trouble.text).", .badResponse,
                    setting: trouble.setting ?? setting, url: request.url))
        }
        findings.append(Diagnosis.clock(response, host, now))
        return findings
    }

    /// The setting that says where the provider is.
    private var place: String {
        switch account.endpoints {
        case .issuer: account.provider == "oidc" ? "issuer" : "provider"
        case .fixed: account.provider == "oauth2" ? "endpoints.token" : "provider"
        case .project: "url"
        case .unsupported: "provider"
        }
    }

    private static func finding(
        _ error: HTTPClientError, _ check: String, _ host: String, _ url: String, _ setting: String
    ) -> Finding {
        switch error {
        case .untrusted(_, let reason):
            // The reason names the setting, where one helps.
            Finding("tls", .wrong, "\(host) is not believed: \(reason).", .untrusted, url: url)
        case .unreachable(_, let reason):
            Finding(
                check, .wrong, "\(host) cannot be reached: \(reason).", .unreachable, setting: setting, url: url)
        case .timedOut:
            Finding(
                check, .wrong, "\(host) does not answer within \(timeout.components.seconds) s.", .unreachable,
                setting: setting, url: url)
        case .tooLarge, .malformed:
            Finding(
                check, .wrong, "\(host) answers, but not as a web server should.", .badResponse, setting: setting,
                url: url)
        case .refusedURL:
            Finding(
                check, .wrong, "An endpoint is neither https nor http on a loopback address.", .configuration,
                setting: setting)
        case .cancelled:
            Finding(check, .warning, "It could not be looked at: the daemon is shutting down.", .shuttingDown)
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
                + "refused from \(leeway) s on.", .clockDiffers)
    }
}
