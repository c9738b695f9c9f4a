internal import HTTPMessages

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
