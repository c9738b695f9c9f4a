internal import HTTPMessages

/// What a look at an account's provider has found.
public struct Diagnosis: Sendable {
    /// In the order in which a sign-in would meet it.
    public var findings: [Finding]
    /// False where nobody comes back, as for a service.
    public var awaitsCallbacks: Bool

    public init(_ findings: [Finding], awaitsCallbacks: Bool = true) {
        self.findings = findings
        self.awaitsCallbacks = awaitsCallbacks
    }
}

/// Looks at an account's provider the way that a sign-in would, without one: is it there, is it who it should be, do its
/// clock and ours agree, can an answer come back. Every step has a bound, and none changes anything.
public struct Diagnostics: Sendable {
    private let broker: Broker

    public init(of broker: Broker) { self.broker = broker }

    /// What was found of an account, in the order in which a sign-in would meet it.
    public func findings(of name: AccountName) async throws(BrokerError) -> [Finding] {
        let account = try await broker.sessionManager.account(name)
        async let diagnosis = account.provider(with: broker.tools).diagnose(isCandidate: false)
        async let redirect = redirect(of: account)
        return await diagnosis.findings + (await diagnosis.awaitsCallbacks ? [redirect] : [])
    }

    /// What was found at the provider of an account that is not configured yet. Its secret is not used.
    public func findings(ofCandidate account: Account) async -> [Finding] {
        await account.provider(with: broker.tools).diagnose(isCandidate: true).findings
    }

    /// Where an account's callbacks arrive.
    ///
    /// A fixed port is tried: whether it is free is known to nobody else. One that a sign-in waits behind is ours.
    private func redirect(of account: Account) async -> Finding {
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
            await broker.callbackReceiver.close(opened, account.name)
            return Finding(check, .ok, "The port that the answer comes back to can be had.")
        } catch {
            let reason = if case .portInUse(_, let reason) = error { reason } else { "the listener cannot be opened" }
            return Finding(
                check, .wrong, "The callback cannot come back: \(reason).", .portTaken, setting: "redirect_uri",
                url: uri)
        }
    }
}
