import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// A provider that `account add` offers on a terminal, with what its user has to know to get a client there.
enum ProviderChoice: String, CaseIterable {
    case google, microsoft, github, gitlab, supabase, openid, mcp, sandbox

    struct Facts {
        let label: String
        let name: String
        /// What to do at the provider, and on which of its pages.
        var step: String?
        var page: String?
        /// The scopes that are offered; nil where there are none to ask for.
        var scopes: String?
        /// Those that git needs beside them.
        var gitScopes: String?
        /// Every client has a secret, without which the token endpoint refuses it.
        var needsSecret = false
        /// False where clients of programs on a user's machine have no secret.
        var mayHaveSecret = true
    }

    var facts: Facts {
        switch self {
        case .google:
            Facts(
                label: "Google", name: "google", step: "Create a client of the type “Desktop app”:",
                page: "https://console.cloud.google.com/auth/clients/create", scopes: "openid email", needsSecret: true)
        case .microsoft:
            Facts(
                label: "Microsoft", name: "microsoft",
                step:
                    "Register an application for “Mobile and desktop applications”, with public client flows allowed:",
                page: "https://entra.microsoft.com/#view/Microsoft_AAD_RegisteredApps/ApplicationsListBlade",
                scopes: "openid email offline_access", mayHaveSecret: false)
        case .github:
            Facts(
                label: "GitHub", name: "github", step: "Create an OAuth app:",
                page: "https://github.com/settings/applications/new", scopes: "read:user", gitScopes: "repo",
                needsSecret: true)
        case .gitlab:
            Facts(
                label: "GitLab (gitlab.com)", name: "gitlab", step: "Add an application that is not confidential:",
                page: "https://gitlab.com/-/user_settings/applications", scopes: "openid email",
                gitScopes: "read_repository write_repository")
        case .supabase:
            Facts(
                label: "Supabase: a project of yours", name: "app", step: "Allow the redirect URL in the project:",
                page: "https://supabase.com/dashboard/project/_/auth/url-configuration", mayHaveSecret: false)
        case .openid:
            Facts(
                label: "another OpenID Connect provider, by its URL", name: "work",
                step: "Register a native application (a public client) at the provider.",
                scopes: "openid email offline_access")
        case .mcp: Facts(label: "an MCP server, by its URL", name: "tools")
        case .sandbox:
            Facts(label: "the sandbox, to try: a provider on this machine", name: "play", mayHaveSecret: false)
        }
    }

    /// The one that the options name; nil for endpoints without discovery.
    init?(_ description: AccountDescription) {
        if let provider = description.provider {
            self.init(rawValue: provider)
        } else if description.mcp != nil {
            self = .mcp
        } else {
            guard description.issuer != nil else { return nil }
            self = .openid
        }
    }

    /// GitLab compares the port of a redirect URI too.
    func redirectURI(for account: String) -> String? {
        self == .gitlab ? "http://127.0.0.1:8400/callback/\(account)" : nil
    }

    /// The redirect URIs to enter at the provider. Google wants none. GitHub and Microsoft ignore the port, and take no
    /// address with `{port}`.
    func entered(_ uris: [String]) -> [String] {
        switch self {
        case .google, .sandbox: []
        case .github, .microsoft: uris.map { $0.replacing(":{port}", with: "") }
        case .gitlab, .supabase, .openid, .mcp: uris
        }
    }

    static let portNote = "({port} stands for any port. If the provider wants one, choose it with --redirect-uri.)"

    /// What a script has left out, and an account needs all the same.
    func omissions(in description: AccountDescription, forGit isForGit: Bool) -> [String] {
        var notes: [String] = []
        if facts.needsSecret, description.grant == nil, !description.hasProof {
            notes.append(
                "\(facts.label) gives every client a secret and refuses sign-ins without it. None was given: add the "
                    + "account again with --replace and --client-secret-fd 0 or --client-secret-file PATH")
        }
        if isForGit, let needed = facts.gitScopes,
            Set(needed.split(separator: " ").map(String.init) + ["api"]).isDisjoint(with: description.scopes)
        {
            notes.append(
                "The account does not request \(needed), which git needs at \(facts.label): add it again with "
                    + "--replace and --scope")
        }
        return notes
    }
    static let sandboxClient = "ringback-demo"
}

struct UsualOrigin {
    let url: String
    var username: String?

    private static let known = [
        "github": [UsualOrigin(url: "https://github.com/*"), UsualOrigin(url: "https://api.github.com/*")],
        "gitlab": [UsualOrigin(url: "https://gitlab.com/*", username: "oauth2")],
    ]

    static func all(of provider: String?) -> [UsualOrigin] { provider.flatMap { known[$0] } ?? [] }
}

struct ProviderCheck {
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
            let url = description.clientIDMetadataURL ?? "https://www.example.org/ringback.json"
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

    /// The option for a provider of this machine with the other one of http and https.
    private static func otherScheme(_ description: AccountDescription) -> String? {
        for (option, url) in [("--issuer", description.issuer), ("--url", description.url)] {
            guard let url else { continue }
            let other = url.hasPrefix("https://") ? "http" + url.dropFirst(5) : "https" + url.dropFirst(4)
            if LoopbackURL(url) != nil || LoopbackURL(other) != nil { return "\(option) \(other)" }
        }
        return nil
    }

    /// As the daemon gave them; nil if the provider was not asked.
    let checks: JSON?
    private var findings: [Finding] = []
    private(set) var error: RingbackError?

    private var wrong: [Finding] { findings.filter { $0.level == "wrong" && $0.isOfAccount } }
    /// The provider has refused the client: its id, or its secret.
    var refusesClient: Bool { wrong.first?.cause == .clientRefused }
    var refusesKey: Bool { wrong.first?.setting == "api_key" }
    var lacksOfflineAccess: Bool { warns(of: "scopes") }
    var noSignIn: Bool { warns(of: "sign_in") }
    /// The authorization server that an MCP server names.
    var issuer: String? {
        checks?.array?.lazy.filter { $0["check"] == "discovery" }.compactMap { $0["stated"]?.string }.first
    }

    private func warns(of setting: String) -> Bool {
        findings.contains { $0.level == "warning" && $0.setting == setting }
    }

    var offersRegistration: Bool {
        checks?.array?.contains { $0.object?.cause == .registrationOffered } ?? false
    }

    /// What is wrong with the account is in the result.
    static func run(
        _ name: String, _ description: AccountDescription, _ calls: BrokerCalls, isClientOnly: Bool = false
    ) throws(RingbackError) -> ProviderCheck {
        let body: JSONObject = [
            "account": name, "configuration": description.text(for: name), "client_only": isClientOnly ? true : nil,
        ]
        // Longer than the daemon's own bounds on what it asks the provider.
        let found = try ignoring(
            .noDaemon, call: calls.call(.diagnoseAccount, body: .object(body), timeout: .seconds(45)))
        guard let answer = found else {
            Output.note(
                "No daemon answers, so the provider was not asked. To ask it when the daemon runs: "
                    + "\(shown: "ringback doctor \(name)")")
            return ProviderCheck(checks: nil)
        }
        var check = ProviderCheck(checks: answer["checks"] ?? .array([]))
        check.findings = answer.list("checks").compactMap(Finding.init(reading:)).filter { $0.level != "ok" }
        let first = check.wrong.first
        for finding in check.findings
        where (!(finding.level == "wrong" && finding.isOfAccount) || finding.message != first?.message)
            // The check of the configuration says it too.
            && finding.cause != .schemeNotReserved
        {
            Output.note(Sanitizer.line(finding.message, limit: 600))
        }
        guard let first else { return check }
        check.error = RingbackError(
            kind(of: first), first.message, recovery: .fixConfiguration,
            advice:
                "\(first.advice(description, name))Nothing was written; --offline adds the account without asking the "
                + "provider.")
        return check
    }

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

    mutating func leaveOutSignIn(_ found: ProviderCheck) {
        guard found.noSignIn else { return }
        noSignIn = true
        Output.note("The account has sign_in = false.")
    }
}
