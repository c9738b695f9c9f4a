public import RingbackBase

/// The result of one check: what was found, and what a client needs to advise the user. It holds names, hosts,
/// numbers and addresses of the provider's documents, and no secret.
public struct Finding: Sendable, Equatable {
    /// The severity of a finding.
    public enum Level: String, Sendable, CaseIterable {
        case ok
        /// It works, but not as it should, or not for long.
        case warning
        case wrong
    }

    /// What was checked. The raw values are those of the socket API.
    public enum Check: String, Sendable, CaseIterable {
        case network, tls, clock
        /// The provider itself.
        case provider
        /// The metadata at the issuer.
        case discovery
        /// Whether the account can sign in with these metadata.
        case metadata
        /// The authorization endpoint.
        case page
        case client
        /// Where callbacks arrive.
        case redirect
        case session, vault, peers
        /// An exposed socket.
        case expose
        /// A kept file.
        case file
    }

    /// What is wrong. The raw values are those of the socket API.
    public enum Cause: String, Sendable, CaseIterable {
        case unreachable
        /// The server's certificate.
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

    /// - Parameter isOfAll: see ``FindingReason/proxied(url:exceptions:isOfAll:)``.
    public static func proxied(by proxy: HTTPProxy, isOfAll: Bool) -> Finding {
        let reason = FindingReason.proxied(url: proxy.url.text, exceptions: proxy.exceptions, isOfAll: isOfAll)
        return Finding(.network, .ok, .finding(reason))
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

/// The findings about an account's provider.
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

/// What the diagnostics check: an account, or only its client.
public enum DiagnosisSubject: Sendable {
    /// A configured account.
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

    /// The findings for the provider of an account that is not configured yet. Its secret is used only for
    /// the client.
    ///
    /// - Parameter isClientOnly: true if the provider was checked a moment ago, so that only the client is checked now.
    public func findings(ofCandidate account: Account, isClientOnly: Bool = false) async -> [Finding] {
        let subject: DiagnosisSubject = isClientOnly ? .candidateClient : .candidate
        return Diagnostics.describing(
            await account.provider(with: broker.tools).diagnose(subject, of: nil).findings, account)
    }

    /// What the account's own `proxy` setting says; no finding if it has no such setting.
    private func network(of account: Account) -> [Finding] {
        switch account.route {
        case .standard: []
        case .direct: [Finding(.network, .ok, .finding(.direct))]
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

    /// Where an account's callbacks arrive.
    ///
    /// A fixed port is opened to find out whether it is free. If a sign-in of the account is pending, the daemon has
    /// the port open already.
    private func redirect(of account: Account) async -> Finding {
        let check = Finding.Check.redirect
        guard let uri = account.redirectURI else {
            return Finding(check, .ok, .finding(.callbackAtFreePort))
        }
        let scheme = String(uri.prefix { $0 != ":" }).lowercased()
        switch scheme {
        case "https":
            return Finding(
                check, .warning, .finding(.callbackIsPasted), .callbackIsPasted, setting: "redirect_uri")
        case "http": break
        default:
            guard (try? URLScheme(parsing: scheme))?.isReverseDNS == false else {
                return Finding(check, .ok, .finding(.callbackAsLink(scheme: scheme)))
            }
            return Finding(
                check, .warning, .finding(.callbackAtOpenScheme(scheme)), .schemeNotReserved, setting: "redirect_uri")
        }
        guard await broker.flowRegistry.pending(account.name) == nil else {
            return Finding(check, .ok, .finding(.callbackAwaited))
        }
        do throws(BrokerError) {
            let opened = try await broker.callbackReceiver.open(uri, account.name)
            await broker.callbackReceiver.close(opened, account.name)
            return Finding(check, .ok, .finding(.portFree))
        } catch {
            let failure: ListenerFailure? = if case .portInUse(let failure) = error { failure } else { nil }
            return Finding(
                check, .wrong, .finding(.portUnusable(failure)), .portTaken, setting: "redirect_uri", url: uri)
        }
    }
}
