import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// What the daemon finds at the provider of an account that is not configured yet.
struct ProviderCheck {
    /// One thing that the daemon looked at.
    private struct Finding {
        let level: String
        let message: String
        let cause: ProblemCause?
        let setting: String?
        /// The issuer that the provider states in place of the configured one.
        let stated: String?

        init?(reading document: JSON) {
            guard let message = document["message"]?.string else { return nil }
            self.message = message
            level = document["level"]?.string ?? "wrong"
            cause = document.object?.cause
            setting = document["setting"]?.string
            stated = document["stated"]?.string
        }

        /// False for problems that are not the account's, such as a wrong clock.
        var isOfAccount: Bool {
            [.unreachable, .untrusted, .wrongScheme, .badResponse, .configuration, .clientRefused].contains(cause)
        }

        /// The client-id metadata document to host, and what to type then; nil if none is missing.
        private func documentAdvice(_ description: AccountDescription, _ name: String) -> String? {
            guard let mcp = description.mcp, setting == "client_id_metadata_url" || setting == "redirect_uri" else {
                return nil
            }
            let isShared = setting == "redirect_uri"
            let own = isShared ? "http://127.0.0.1:{port}/callback/\(name)" : nil
            let url = description.clientMetadataURL ?? "https://www.example.org/ringback.json"
            let document = ClientMetadata.document(url, own.map { [$0] } ?? []).text
            let redirect: ShownCommand = own.map { "--redirect-uri=\($0)" } ?? ""
            let command = ShownCommand(
                "ringback account add \(name) --mcp=\(mcp) --client-id-metadata-url=\(url) \(redirect)")
            let place =
                isShared
                ? "At \(Sanitizer.line(url, limit: 1_000)) host" : "At an https URL of yours, such as \(url), host"
            return "\(place) this document, whose client_id is that URL, as application/json: \(document) Then run: "
                + "\(shown: command). "
        }

        /// What to change, or to look at.
        func advice(_ description: AccountDescription, _ name: String) -> String {
            if let document = documentAdvice(description, name) { return document }
            if cause == .wrongScheme {
                return ProviderCheck.otherScheme(description).map { "Try \($0) instead. " } ?? ""
            }
            guard let option = setting.flatMap(AccountDescription.option(for:)) else { return "" }
            if setting == "issuer", let stated {
                return "Use \(option) \(Sanitizer.line(stated, limit: 400)) instead. "
            }
            if cause == .badResponse, setting == "issuer" {
                return "Look at \(option): it is the URL before /.well-known/openid-configuration. "
            }
            return "Look at \(option). "
        }
    }

    /// The server needs no sign-in.
    private(set) var needsNoSignIn = false

    /// The option for a provider of this machine with the other one of http and https.
    private static func otherScheme(_ description: AccountDescription) -> String? {
        for (option, url) in [("--issuer", description.issuer), ("--url", description.url)] {
            guard let url else { continue }
            let other =
                if url.hasPrefix("https://") { "http" + url.dropFirst("https".count) } else {
                    "https" + url.dropFirst("http".count)
                }
            if LoopbackURL(url) != nil || LoopbackURL(other) != nil { return "\(option) \(other)" }
        }
        return nil
    }

    /// As the daemon gave them; nil if the provider was not asked.
    let checks: JSON?
    /// What is wrong with the account, and where.
    private(set) var error: RingbackError?
    /// The provider has refused the client: its id, or its secret.
    private(set) var refusesClient = false
    /// The project has refused its key.
    private(set) var refusesKey = false

    /// The provider lists its scopes without `offline_access`.
    private(set) var lacksOfflineAccess = false

    /// The provider registers clients that ask for it.
    var offersRegistration: Bool {
        checks?.array?.contains { $0.object?.cause == .registrationOffered } ?? false
    }

    /// Longer than the daemon's own bounds on what it asks the provider.
    private static let timeout: Duration = .seconds(45)

    /// Lets the daemon check the provider. Without a daemon the provider is not checked, and a note says so.
    ///
    /// - Throws: what is wrong with the account, and where.
    static func run(
        _ name: String, _ description: AccountDescription, _ calls: BrokerCalls
    ) throws(RingbackError) -> ProviderCheck {
        let found = try look(name, description, calls)
        if let error = found.error { throw error }
        return found
    }

    /// As ``run(_:_:_:)``, but what is wrong with the account is in the result.
    ///
    /// - Parameter isClientOnly: the provider was looked at a moment ago, and only the client is to be checked.
    static func look(
        _ name: String, _ description: AccountDescription, _ calls: BrokerCalls, isClientOnly: Bool = false
    ) throws(RingbackError) -> ProviderCheck {
        let text = description.text(for: name)
        var body = JSONObject([.init("account", .string(name)), .init("configuration", .string(text))])
        if isClientOnly { body["client_only"] = true }
        let answer: JSON
        do throws(RingbackError) {
            answer = try calls.call(.diagnoseAccount, body: .object(body), timeout: timeout)
        } catch {
            guard error.kind == .noDaemon else { throw error }
            Output.note(
                "No daemon answers, so the provider was not asked. To ask it when the daemon runs: "
                    + "\(shown: "ringback doctor \(name)")")
            return ProviderCheck(checks: nil)
        }
        let found = (answer["checks"]?.array ?? []).compactMap(Finding.init(reading:)).filter { $0.level != "ok" }
        let wrong = found.filter { $0.level == "wrong" && $0.isOfAccount }
        for finding in found
        where !(finding.level == "wrong" && finding.isOfAccount) || finding.message != wrong.first?.message {
            Output.note(Sanitizer.line(finding.message, limit: 600))
        }
        var check = ProviderCheck(checks: answer["checks"] ?? .array([]))
        check.lacksOfflineAccess = found.contains { $0.level == "warning" && $0.setting == "scopes" }
        check.needsNoSignIn = found.contains { $0.level == "warning" && $0.setting == "sign_in" }
        guard let first = wrong.first else { return check }
        var error = RingbackError(kind(of: first), first.message, recovery: .fixConfiguration)
        error.advice =
            "\(first.advice(description, name))Nothing was written; --offline adds the account without asking the provider."
        check.error = error
        check.refusesClient = first.cause == .clientRefused
        check.refusesKey = first.setting == "api_key"
        return check
    }

    /// An unreachable provider is another error than a wrong setting.
    private static func kind(of finding: Finding) -> RingbackError.Kind {
        switch finding.cause {
        case .unreachable, .untrusted, .wrongScheme: .providerUnreachable
        case .badResponse where finding.setting == nil: .invalidProviderResponse
        default: .invalidConfiguration
        }
    }
}

extension AccountDescription {
    /// Scopes that the user names are requested always; the usual ones only as far as the provider lists them.
    mutating func leaveOutOfflineAccess(_ found: ProviderCheck) {
        guard found.lacksOfflineAccess, scopes.isEmpty else { return }
        leavesOutOfflineAccess = true
        Output.note("The account does not request offline_access. To request it all the same, name it in --scopes.")
    }

    /// A server that needs no sign-in gets an account that has none.
    mutating func leaveOutSignIn(_ found: ProviderCheck) {
        guard found.needsNoSignIn else { return }
        needsNoSignIn = true
        Output.note("The account has sign_in = false.")
    }
}
