internal import OAuth
internal import RingbackBase
internal import SupabaseAuth

extension PageSettings {
    /// Reads the keys of an account that say how its sign-in page is opened, what it is told, and how the account is
    /// called there.
    init(reading table: SettingTable) {
        self.init()
        browser = table.command("browser", begins: "a name in PATH, an absolute path") { name in
            // A bare name is looked up in PATH when the page is opened.
            let isBare = !name.isEmpty && !name.hasPrefix("-") && !name.hasPrefix("~") && !name.contains("/")
            return isBare ? name : table.place.path(name)
        }
        sendsLoginHint = table.boolean("login_hint") ?? true
        opensAtOnce = table.string("interactive") == "open"
        displayName = table.displayName
    }
}

extension SettingTable {
    /// A program and its arguments, one of which may have `{url}`. `path` expands the program; nil if it is not allowed.
    func command(_ key: String, begins rule: String, _ path: (String) -> String?) -> [String]? {
        guard let words = strings(key) else { return nil }
        for (text, node) in words where text.utf8.contains(0) {
            refuse(key, node, "an argument cannot have a NUL in it")
        }
        let uses = words.dropFirst().reduce(0) { $0 + $1.text.ranges(of: PageSettings.placeholder).count }
        if uses > 1 { refuse(key, "{url} may occur only once") }
        guard let program = words.first else {
            refuse(key, "must have a program, and may have arguments")
            return nil
        }
        guard !program.text.contains(PageSettings.placeholder), let found = path(program.text) else {
            refuse(key, program.node, "begins with a program: \(rule), or one that begins with ~/; without {url}")
            return nil
        }
        return [found] + words.dropFirst().map(\.text)
    }

    /// `display_name` of an account or a scheme.
    var displayName: String? {
        text(
            "display_name", "is one line of 1 to 64 characters, without control characters and invisible ones",
            where: PageSettings.isDisplayName)
    }
}

extension AccountConfiguration {
    /// What the account is called: its name, or its display name beside the provider's host.
    public var label: String { page.label(of: name, at: provider.host) }
}

extension AccountProvider {
    /// The host of the issuer, the endpoints, the project or the MCP server.
    fileprivate var host: String? {
        let url =
            switch self {
            case .supabase(let supabase): supabase.project.authURL
            case .mcp(let mcp): mcp.server.url.origin
            case .preset, .oidc, .oauth2: issuer ?? endpoints?.authorizationEndpoint ?? ""
            }
        return (try? WebURL(parsing: url))?.host
    }
}
