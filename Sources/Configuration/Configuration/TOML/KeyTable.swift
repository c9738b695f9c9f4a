internal import OAuth
internal import RingbackBase

/// All keys of the configuration, by which the checker judges a file. What each key means is in docs/configuration.md, from
/// which the manual page is made.
struct Key {
    /// A kind of table.
    enum Section: String, CaseIterable {
        /// The file itself.
        case file
        case account
        case endpoints
        case profile
        case vault
        case network
        case scheme
        case expose
        case origin
        /// `[[file]]`
        case keptFile
        case notifications
        case run
        case consent
    }

    enum Kind {
        case string
        /// One of these values.
        case word([String])
        case integer(ClosedRange<Int>)
        case boolean
        case strings
        /// A string, or an array of strings.
        case texts
        case integers(ClosedRange<Int>)
        /// A table of strings whose keys the user chooses.
        case stringTable
        case section(Section)
        /// A table of such tables, whose keys the user chooses.
        case sections(Section)
        /// An array of such tables.
        case list(Section)
        /// Seconds, or a duration such as `8h`.
        case span

        static func word<Word: CaseIterable & RawRepresentable<String>>(of type: Word.Type) -> Kind {
            .word(type.allCases.map(\.rawValue))
        }
    }

    let section: Section
    let name: String
    let kind: Kind
    /// Drop-ins come with packages: they may define accounts, but no settings that affect all accounts.
    var isForDropIns: Bool { section != .file || name == "accounts" || name == "schemes" }

    private init(_ section: Section, _ name: String, _ kind: Kind) {
        self.section = section
        self.name = name
        self.kind = kind
    }

    /// The keys of a section by name.
    static func allowed(in section: Section) -> [String: Key] { bySection[section] ?? [:] }

    private static let bySection = Dictionary(grouping: all, by: \.section).mapValues { keys in
        Dictionary(keys.map { ($0.name, $0) }) { first, _ in first }
    }

    static let all: [Key] = [
        Key(.file, "accounts", .sections(.account)),
        Key(.file, "default", .string),
        Key(.file, "schemes", .sections(.scheme)),
        Key(.file, "vault", .section(.vault)),
        Key(.file, "network", .section(.network)),
        Key(.file, "notifications", .section(.notifications)),
        Key(.file, "consent", .section(.consent)),
        Key(.file, "expose", .list(.expose)),
        Key(.file, "origin", .list(.origin)),
        Key(.file, "file", .list(.keptFile)),
        Key(.file, "run", .sections(.run)),

        Key(.vault, "key_source", .word(of: KeySourceChoice.self)),
        Key(.vault, "key_directory", .string),
        Key(.vault, "store", .string),
        Key(.vault, "password_file", .string),
        Key(.vault, "store_uid", .integer(0...4_294_967_294)),
        Key(.vault, "lock_with_screen", .boolean),

        Key(.network, "proxy", .string),
        Key(.network, "no_proxy", .strings),
        Key(.network, "proxy_credentials_file", .string),

        Key(.account, "provider", .string),
        Key(.account, "issuer", .string),
        Key(.account, "endpoints", .section(.endpoints)),
        Key(.account, "mcp", .string),
        Key(.account, "client_id_metadata_url", .string),
        Key(.account, "resource_parameter", .boolean),
        Key(.account, "sign_in", .boolean),
        Key(.account, "tenant", .string),
        Key(.account, "host", .string),
        Key(.account, "url", .string),
        Key(.account, "api_key", .string),
        Key(.account, "gateway", .boolean),
        Key(.account, "redirect_flow_key", .word(of: FlowKeyPlace.self)),
        Key(.account, "oauth_provider", .string),
        Key(.account, "allow_missing_nonce", .boolean),
        Key(.account, "id_token_account", .string),
        Key(.account, "token_issuer", .string),
        Key(.account, "profile", .section(.profile)),
        Key(.account, "profile_rpc", .string),
        Key(.account, "rpc", .strings),
        Key(.account, "edge_functions", .strings),
        Key(.account, "client_id", .string),
        Key(.account, "client_secret", .string),
        Key(.account, "client_secret_file", .string),
        Key(.account, "client_secret_command", .strings),
        Key(.account, "client_secret_credential", .string),
        Key(.account, "client_secret_registered", .boolean),
        Key(.account, "client_key_file", .string),
        Key(.account, "client_key_id", .string),
        Key(.account, "client_authentication", .word(of: ClientAuthentication.self)),
        Key(.account, "grant", .word(of: ServiceGrantType.self)),
        Key(.account, "assertion_file", .string),
        Key(.account, "assertion_subject", .string),
        Key(.account, "assertion_audience", .string),
        Key(.account, "through", .string),
        Key(.account, "subject_token_type", .string),
        Key(.account, "audience", .string),
        Key(.account, "resource", .string),
        Key(.account, "scopes", .strings),
        Key(.account, "redirect_uri", .string),
        Key(.account, "response_mode", .word(["query", "form_post"])),
        Key(.account, "authorization_response_iss", .boolean),
        Key(.account, "pushed_authorization_requests", .word(of: PushedRequests.self)),
        Key(.account, "dpop", .word(["off", "refresh-only", "required"])),
        Key(.account, "offline_access_consent", .boolean),
        Key(.account, "post_logout_redirect_uri", .string),
        Key(.account, "authorization_params", .stringTable),
        Key(.account, "flow_timeout", .integer(10...3_600)),
        Key(.account, "refresh_margin", .integer(0...3_600)),
        Key(.account, "session_warnings", .integers(1...2_592_000)),
        Key(.account, "login_hint", .boolean),
        Key(.account, "interactive", .word(["ask", "open"])),
        Key(.account, "display_name", .string),
        Key(.account, "browser", .strings),
        Key(.account, "callback_peer_uids", .integers(0...4_294_967_294)),
        Key(.account, "proxy", .string),
        Key(.account, "no_proxy", .strings),
        Key(.account, "proxy_credentials_file", .string),
        Key(.account, "ca_file", .string),
        Key(.account, "pinned_public_keys", .strings),
        Key(.account, "headers", .stringTable),
        Key(.account, "policy", .word(["same-uid"])),
        Key(.account, "consent", .word(of: ConsentMode.self)),
        Key(.account, "programs", .strings),

        Key(.profile, "table", .string),
        Key(.profile, "key", .string),

        Key(.consent, "default", .word(of: ConsentMode.self)),

        Key(.notifications, "enabled", .boolean),

        Key(.expose, "name", .string),
        Key(.expose, "account", .string),
        Key(.expose, "accounts", .strings),
        Key(.expose, "scope", .string),
        Key(.expose, "proof", .boolean),
        Key(.expose, "allow_uids", .integers(0...4_294_967_294)),
        Key(.expose, "mcp", .boolean),
        Key(.expose, "tools", .strings),
        Key(.expose, "methods", .strings),
        Key(.expose, "ttl", .span),

        Key(.origin, "url", .string),
        Key(.origin, "account", .string),
        Key(.origin, "match_username", .string),
        Key(.origin, "scope", .string),
        Key(.origin, "audience", .string),
        Key(.origin, "resource", .string),
        Key(.origin, "kind", .word(of: TokenKind.self)),
        Key(.origin, "username", .string),
        Key(.origin, "without_scheme", .boolean),
        Key(.origin, "ca_sha256", .texts),
        Key(.origin, "tls_server_name", .texts),
        Key(.origin, "insecure_skip_tls_verify", .boolean),
        Key(.origin, "proxy_url", .texts),
        Key(.origin, "header", .texts),

        Key(.keptFile, "path", .string),
        Key(.keptFile, "account", .string),
        Key(.keptFile, "format", .word(of: TokenFileFormat.self)),
        Key(.keptFile, "scope", .string),
        Key(.keptFile, "audience", .string),
        Key(.keptFile, "ttl", .span),
        Key(.keptFile, "on_disk", .boolean),
        Key(.keptFile, "host", .string),
        Key(.keptFile, "username", .string),
        Key(.keptFile, "variable", .string),

        Key(.run, "command", .strings),
        Key(.run, "account", .texts),
        Key(.run, "scope", .string),
        Key(.run, "mcp", .texts),
        Key(.run, "tool", .texts),
        Key(.run, "relay", .texts),
        Key(.run, "read", .texts),
        Key(.run, "write", .texts),
        Key(.run, "home", .string),
        Key(.run, "network", .word(of: RunConfiguration.Network.self)),
        Key(.run, "nested", .boolean),
        Key(.run, "display", .boolean),
        Key(.run, "env", .texts),

        Key(.scheme, "display_name", .string),
        Key(.scheme, "command", .strings),

        Key(.endpoints, "authorization", .string),
        Key(.endpoints, "token", .string),
        Key(.endpoints, "device_authorization", .string),
        Key(.endpoints, "revocation", .string),
        Key(.endpoints, "pushed_authorization_request", .string),
        Key(.endpoints, "userinfo", .string),
    ]
}
