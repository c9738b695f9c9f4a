internal import OAuth
internal import RingbackBase
internal import SupabaseAuth

extension PageSettings {
    /// Reads the keys of an account that say how its sign-in page is opened, what it is told, and how the account is
    /// called there.
    init(reading table: SettingTable) {
        self.init()
        browser = PageSettings.readBrowser(table)
        sendsLoginHint = table.boolean("login_hint") ?? true
        opensAtOnce = table.string("interactive") == "open"
        displayName = table.displayName
    }

    private static func readBrowser(_ table: SettingTable) -> [String]? {
        guard let written = table.strings("browser") else { return nil }
        guard let program = written.first else {
            table.refuse("browser", "must have a program, and may have arguments")
            return nil
        }
        let uses = written.dropFirst().reduce(0) { $0 + $1.text.ranges(of: placeholder).count }
        if uses > 1 { table.refuse("browser", "{url} may occur only once") }
        for (text, node) in written where text.utf8.contains(0) {
            table.refuse("browser", node, "an argument cannot have a NUL in it")
        }
        let name = program.text
        // A bare name is looked up in PATH when the page is opened.
        let isBare = !name.isEmpty && !name.hasPrefix("-") && !name.hasPrefix("~") && !name.contains("/")
        guard !name.contains(placeholder), let path = isBare ? name : table.place.path(name) else {
            table.refuse(
                "browser", program.node,
                "begins with a program: a name in PATH, an absolute path, or one that begins with ~/; without {url}")
            return nil
        }
        return [path] + written.dropFirst().map(\.text)
    }
}

extension SettingTable {
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
