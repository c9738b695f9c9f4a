import RingbackBase
import RingbackClient

/// A provider that `account add` offers on a terminal, with what its user has to know to get a client there.
enum ProviderChoice: String, CaseIterable {
    case google, microsoft, github, gitlab, supabase, openid, mcp, sandbox

    var label: String {
        switch self {
        case .google: "Google"
        case .microsoft: "Microsoft"
        case .github: "GitHub"
        case .gitlab: "GitLab (gitlab.com)"
        case .supabase: "Supabase: a project of yours"
        case .openid: "another OpenID Connect provider, by its URL"
        case .mcp: "an MCP server, by its URL"
        case .sandbox: "the sandbox, to try: a provider on this machine"
        }
    }

    /// The one that the options name; nil for endpoints without discovery.
    init?(_ description: AccountDescription) {
        if let provider = description.provider {
            self.init(rawValue: provider)
            return
        }
        guard description.mcp == nil else {
            self = .mcp
            return
        }
        guard description.issuer != nil else { return nil }
        self = .openid
    }

    /// The name that is offered for the account.
    var name: String {
        switch self {
        case .google, .microsoft, .github, .gitlab: rawValue
        case .supabase: "app"
        case .openid: "work"
        case .mcp: "tools"
        case .sandbox: "play"
        }
    }

    /// Where to get a client, and what to choose there.
    var steps: [String] {
        switch self {
        case .google:
            ["Create a client of the type “Desktop app”:", "  https://console.cloud.google.com/auth/clients/create"]
        case .microsoft:
            [
                "Register an application for “Mobile and desktop applications”, with public client flows allowed:",
                "  https://entra.microsoft.com/#view/Microsoft_AAD_RegisteredApps/ApplicationsListBlade",
            ]
        case .github: ["Create an OAuth app:", "  https://github.com/settings/applications/new"]
        case .gitlab:
            [
                "Add an application that is not confidential:",
                "  https://gitlab.com/-/user_settings/applications",
            ]
        case .openid: ["Register a native application (a public client) at the provider."]
        case .supabase:
            [
                "Allow the redirect URL in the project:",
                "  https://supabase.com/dashboard/project/_/auth/url-configuration",
            ]
        case .mcp, .sandbox: []
        }
    }

    /// The scopes that are offered; nil where there are none to ask for.
    var scopes: String? {
        switch self {
        case .google, .gitlab: "openid email"
        case .microsoft, .openid: "openid email offline_access"
        case .github: "read:user"
        case .supabase, .mcp, .sandbox: nil
        }
    }

    /// GitLab compares the port of a redirect URI too.
    func redirectURI(for account: String) -> String? {
        self == .gitlab ? "http://127.0.0.1:8400/callback/\(account)" : nil
    }

    /// The redirect URIs to enter at the provider, of those that the account has. Google wants none. GitHub and
    /// Microsoft ignore the port, and take no address with `{port}`.
    func entered(_ uris: [String]) -> [String] {
        switch self {
        case .google, .sandbox: []
        case .github, .microsoft: uris.map { $0.replacing(":{port}", with: "") }
        case .gitlab, .supabase, .openid, .mcp: uris
        }
    }

    /// What the placeholder of a redirect URI means.
    static let portNote = "({port} stands for any port. If the provider wants one, choose it with --redirect-uri.)"

    /// The client that every sandbox has.
    static let sandboxClient = "ringback-demo"

    /// True where every client has a secret, without which the token endpoint refuses it.
    var needsSecret: Bool { self == .google || self == .github }

    /// False where clients of programs on a user's machine have no secret.
    var mayHaveSecret: Bool {
        switch self {
        case .google, .github, .gitlab, .openid, .mcp: true
        case .microsoft, .supabase, .sandbox: false
        }
    }
}

/// Where tools usually need the token of a preset's account: its own servers.
struct UsualOrigin {
    let url: String
    /// The user name that git is told.
    let username: String?

    static func all(of provider: String?) -> [UsualOrigin] {
        switch provider {
        case "github":
            [
                UsualOrigin(url: "https://github.com/*", username: nil),
                UsualOrigin(url: "https://api.github.com/*", username: nil),
            ]
        case "gitlab": [UsualOrigin(url: "https://gitlab.com/*", username: "oauth2")]
        default: []
        }
    }

    /// Adds those that the configuration does not have yet.
    ///
    /// - Returns: the URLs that were added.
    static func add(_ origins: [UsualOrigin], account: String, to file: ConfigurationFile) throws(RingbackError)
        -> [String]
    {
        var added: [String] = []
        for origin in origins {
            let rule = OriginRule(try OriginEntry.pattern(origin.url), username: nil)
            guard !OriginEntry.all(in: try file.report()).contains(where: { $0.rule == rule }) else { continue }
            let pairs = [("url", origin.url), ("account", account), ("username", origin.username)]
            _ = try file.addOrigin(rule, OriginEntry.table(pairs))
            added.append(origin.url)
        }
        return added
    }
}
