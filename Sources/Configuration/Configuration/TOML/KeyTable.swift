internal import OAuth
internal import RingbackBase

/// All keys of the configuration. The checker, the messages and the manual page use this table.
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
    /// A description in one line.
    let meaning: String
    /// Drop-ins come with packages: they may define accounts, but no settings that affect all accounts.
    var isForDropIns: Bool { section != .file || name == "accounts" || name == "schemes" }

    private init(_ section: Section, _ name: String, _ kind: Kind, _ meaning: String) {
        self.section = section
        self.name = name
        self.kind = kind
        self.meaning = meaning
    }

    /// The keys of a section by name.
    static func allowed(in section: Section) -> [String: Key] { bySection[section] ?? [:] }

    private static let bySection = Dictionary(grouping: all, by: \.section).mapValues { keys in
        Dictionary(keys.map { ($0.name, $0) }) { first, _ in first }
    }

    static let all: [Key] = [
        Key(.file, "accounts", .sections(.account), "the accounts, by name"),
        Key(.file, "default", .string, "the account for commands that name none"),
        Key(.file, "schemes", .sections(.scheme), "URL schemes of apps, by name"),
        Key(.file, "vault", .section(.vault), "how sessions are stored on disk"),
        Key(.file, "network", .section(.network), "how providers are reached"),
        Key(.file, "notifications", .section(.notifications), "what is shown on the desktop"),
        Key(.file, "consent", .section(.consent), "whether programs may use the accounts"),
        Key(.file, "expose", .list(.expose), "accounts that restricted sockets expose"),
        Key(.file, "origin", .list(.origin), "which account's token tools get for a server"),
        Key(.file, "file", .list(.keptFile), "files in which tokens are kept"),
        Key(.file, "run", .sections(.run), "what confined commands are given, by name"),

        Key(.vault, "key_source", .word(of: KeySourceChoice.self), "where the vault's key is stored: chosen once"),
        Key(.vault, "key_directory", .string, "key-file: the directory of the key files, outside the state"),
        Key(.vault, "store", .string, "postgresql://ROLE@HOST/DATABASE: the vault that several hosts share"),
        Key(.vault, "password_file", .string, "the file with the password of the database's role"),
        Key(.vault, "store_uid", .integer(0...4_294_967_294), "a further user who may run the database's server"),
        Key(.vault, "lock_with_screen", .boolean, "lock the vault when the screen is locked"),

        Key(.network, "proxy", .string, "an HTTP proxy for all accounts: http://HOST:PORT"),
        Key(.network, "no_proxy", .strings, "hosts that are reached without it: names (with subdomains), addresses"),
        Key(.network, "proxy_credentials_file", .string, "a file with USER:PASSWORD for the proxy"),

        Key(.account, "provider", .string, "a preset by name, or supabase; instead of issuer or endpoints"),
        Key(.account, "issuer", .string, "the URL of a server with discovery (OpenID Connect, RFC 8414)"),
        Key(.account, "endpoints", .section(.endpoints), "the endpoints of a plain OAuth 2.0 server, by hand"),
        Key(.account, "mcp", .string, "the URL of an MCP server; its issuer and the client are found by asking it"),
        Key(
            .account, "client_id_metadata_url", .string,
            "mcp: the URL of the client-id metadata document that you host"),
        Key(.account, "resource_parameter", .boolean, "mcp: false for servers that refuse the parameter resource"),
        Key(.account, "sign_in", .boolean, "mcp: false for a server that takes requests without a token"),
        Key(.account, "tenant", .string, "microsoft: the directory's id, or common, organizations or consumers"),
        Key(.account, "host", .string, "gitlab: the host of your own GitLab, without scheme"),
        Key(.account, "url", .string, "supabase: the project's URL"),
        Key(.account, "api_key", .string, "supabase: the project's publishable key"),
        Key(.account, "gateway", .boolean, "supabase: false where the URL is the Auth server's own, with no gateway"),
        Key(
            .account, "redirect_flow_key", .word(of: FlowKeyPlace.self),
            "supabase: where a custom scheme carries the key"),
        Key(.account, "oauth_provider", .string, "supabase: the default provider of browser sign-ins"),
        Key(.account, "allow_missing_nonce", .boolean, "supabase: take ID tokens without a nonce"),
        Key(.account, "id_token_account", .string, "supabase: the account whose ID token signs in here"),
        Key(.account, "token_issuer", .string, "supabase: the issuer that the tokens name, if it is not the URL"),
        Key(.account, "profile", .section(.profile), "supabase: the app's own row about the user"),
        Key(.account, "profile_rpc", .string, "supabase: the function that makes that row"),
        Key(.account, "rpc", .strings, "supabase: the functions that may be called"),
        Key(.account, "client_id", .string, "the client's id at the provider"),
        Key(.account, "client_secret", .string, "the client's secret; the file must be closed to others"),
        Key(.account, "client_secret_file", .string, "a file that holds the secret"),
        Key(.account, "client_secret_command", .strings, "a program and its arguments; it prints the secret"),
        Key(.account, "client_secret_credential", .string, "the name of a credential that holds the secret"),
        Key(.account, "client_secret_registered", .boolean, "the secret from the registration is in the vault"),
        Key(.account, "client_key_file", .string, "a file with the client's private key: PEM, or a JSON Web Key"),
        Key(.account, "client_key_id", .string, "the key's id (kid) at the provider, unless its file contains it"),
        Key(
            .account, "client_authentication", .word(of: ClientAuthentication.self),
            "how the client authenticates at the token endpoint"),
        Key(
            .account, "grant", .word(of: ServiceGrantType.self),
            "how a service account gets its tokens without a user"),
        Key(
            .account, "assertion_file", .string,
            "jwt_bearer, saml2_bearer, token_exchange: the token to exchange, read at each use"),
        Key(.account, "assertion_subject", .string, "self_issued_jwt: the user for whom the client acts"),
        Key(.account, "assertion_audience", .string, "self_issued_jwt: the assertion's audience (the token endpoint)"),
        Key(
            .account, "through", .string,
            "mcp: the account whose sign-in brings the tokens (enterprise-managed authorization, ID-JAG)"),
        Key(.account, "subject_token_type", .string, "token_exchange: what that token is (jwt)"),
        Key(.account, "audience", .string, "with grant: the audience of the tokens"),
        Key(.account, "resource", .string, "with grant: what the tokens are for, as a URI (RFC 8707)"),
        Key(.account, "scopes", .strings, "the scopes to request"),
        Key(.account, "redirect_uri", .string, "where the provider sends the authorization response"),
        Key(
            .account, "response_mode", .word(["query", "form_post"]),
            "how the browser delivers the authorization response"),
        Key(.account, "authorization_response_iss", .boolean, "require iss in authorization responses (RFC 9207)"),
        Key(
            .account, "pushed_authorization_requests", .word(of: PushedRequests.self),
            "send authorization requests to the provider before the browser (RFC 9126)"),
        Key(
            .account, "dpop", .word(["off", "refresh-only", "required"]), "which tokens are bound to a key (RFC 9449)"),
        Key(
            .account, "offline_access_consent", .boolean,
            "ask for consent with the scope offline_access (prompt=consent)"),
        Key(.account, "post_logout_redirect_uri", .string, "where the provider sends the browser after a sign-out"),
        Key(.account, "authorization_params", .stringTable, "further parameters of the authorization request"),
        Key(.account, "flow_timeout", .integer(10...3_600), "seconds that a sign-in may take"),
        Key(.account, "refresh_margin", .integer(0...3_600), "seconds before expiry to refresh at"),
        Key(.account, "session_warnings", .integers(1...2_592_000), "seconds before a session's end to warn"),
        Key(.account, "login_hint", .boolean, "false: a new sign-in does not tell the provider who is signed in"),
        Key(
            .account, "interactive", .word(["ask", "open"]),
            "open: a tool that waits on a terminal opens the sign-in page at once"),
        Key(.account, "display_name", .string, "the app's name on the sign-in page and in notices; one line"),
        Key(.account, "browser", .strings, "the program that opens the sign-in page; {url}: the page's address"),
        Key(.account, "callback_peer_uids", .integers(0...4_294_967_294), "other users whose callbacks are accepted"),
        Key(.account, "proxy", .string, "an HTTP proxy for this account instead: http://HOST:PORT, or none"),
        Key(.account, "no_proxy", .strings, "hosts that are reached without that proxy"),
        Key(.account, "proxy_credentials_file", .string, "a file with USER:PASSWORD for that proxy"),
        Key(.account, "ca_file", .string, "PEM certificates to trust instead of the system's"),
        Key(.account, "pinned_public_keys", .strings, "sha256//BASE64 of the keys the server may have"),
        Key(.account, "headers", .stringTable, "further header fields of requests to the provider"),
        Key(.account, "policy", .word(["same-uid"]), "who may use the account"),
        Key(.account, "consent", .word(of: ConsentMode.self), "whether programs may use the account"),
        Key(.account, "programs", .strings, "programs that need no consent: absolute paths, unit:NAME"),

        Key(.profile, "table", .string, "the table"),
        Key(.profile, "key", .string, "its column with the user's id; the default is id"),

        Key(.consent, "default", .word(of: ConsentMode.self), "consent of accounts that do not state it"),

        Key(.notifications, "enabled", .boolean, "show desktop notifications; the default is true"),

        Key(.expose, "name", .string, "the socket is exposed/NAME.sock"),
        Key(.expose, "account", .string, "the account to expose"),
        Key(.expose, "accounts", .strings, "the accounts to expose"),
        Key(.expose, "scope", .string, "the maximum scopes of a token, separated by spaces"),
        Key(.expose, "proof", .boolean, "give proofs with tokens that are bound to a key (DPoP), too"),
        Key(.expose, "allow_uids", .integers(0...4_294_967_294), "other users who may connect"),
        Key(.expose, "mcp", .boolean, "expose the account's MCP server, and no token"),
        Key(.expose, "tools", .strings, "mcp: the tools that are listed and may be called; without it all of them"),
        Key(.expose, "methods", .strings, "mcp: the methods that may be used; without it those for tools"),
        Key(.expose, "ttl", .span, "how long the socket stays open; seconds, or as \"8h\""),

        Key(.origin, "url", .string, "where the token may be sent: https://HOST/*, https://HOST/PATH/*"),
        Key(.origin, "account", .string, "the account whose token it is"),
        Key(.origin, "match_username", .string, "only for tools that ask for this user name"),
        Key(.origin, "scope", .string, "a token downscoped to these scopes, separated by spaces"),
        Key(.origin, "audience", .string, "a token for this audience"),
        Key(.origin, "resource", .string, "a token for this resource (RFC 8707)"),
        Key(.origin, "kind", .word(of: TokenKind.self), "which token of the session"),
        Key(.origin, "username", .string, "the user name for tools that want one"),
        Key(.origin, "without_scheme", .boolean, "true: also for tools that do not say whether they use https"),
        Key(.origin, "ca_sha256", .texts, "kubectl: the SHA-256 of the cluster's certificate authority (PEM file)"),
        Key(.origin, "tls_server_name", .texts, "kubectl: the name that the cluster's certificate may have instead"),
        Key(.origin, "insecure_skip_tls_verify", .boolean, "kubectl: true: the certificate need not be checked"),
        Key(.origin, "proxy_url", .texts, "kubectl: the cluster's proxy"),
        Key(.origin, "header", .texts, "the field or fields to send; the default is Authorization: Bearer {token}"),

        Key(.keptFile, "path", .string, "the file; also ~/NAME and $XDG_RUNTIME_DIR/NAME"),
        Key(.keptFile, "account", .string, "the account whose token it contains"),
        Key(.keptFile, "format", .word(of: TokenFileFormat.self), "what the file contains"),
        Key(.keptFile, "scope", .string, "a token downscoped to these scopes, separated by spaces"),
        Key(.keptFile, "audience", .string, "a token for this audience"),
        Key(.keptFile, "ttl", .span, "how long after the sign-in the file is kept; seconds, or as \"8h\""),
        Key(.keptFile, "on_disk", .boolean, "true: the file may be on a disk; by default only in memory (tmpfs)"),
        Key(.keptFile, "host", .string, "netrc: the server that the line is for"),
        Key(.keptFile, "username", .string, "netrc: the user name; the default is oauth2"),
        Key(.keptFile, "variable", .string, "env: the variable; the default is RINGBACK_TOKEN"),

        Key(.run, "command", .strings, "the command, if none is typed: a program and its arguments"),
        Key(.run, "account", .texts, "the accounts whose access tokens it may have"),
        Key(.run, "scope", .string, "the maximum scopes of a token, separated by spaces"),
        Key(.run, "mcp", .texts, "the accounts whose MCP servers it may use"),
        Key(
            .run, "tool", .texts,
            "mcp: the tools that it may call, of several servers ACCOUNT:TOOL; without it all of them"),
        Key(.run, "relay", .texts, "variables with addresses in place of tokens, each VARIABLE=URL"),
        Key(.run, "read", .texts, "folders to read"),
        Key(.run, "write", .texts, "folders to change"),
        Key(.run, "home", .string, "the name of its home directory, instead of one for each work folder"),
        Key(.run, "network", .word(of: RunConfiguration.Network.self), "what it reaches; the default is internet"),
        Key(.run, "nested", .boolean, "true: it may make sandboxes of its own"),
        Key(.run, "display", .boolean, "true: it gets the display"),
        Key(.run, "env", .texts, "variables to pass on, by name"),

        Key(.scheme, "display_name", .string, "the app's name where the browser asks who opens a link; one line"),
        Key(.scheme, "command", .strings, "a program and its arguments, started if no app listens; {url}: the link"),

        Key(.endpoints, "authorization", .string, "RFC 6749 section 3.1"),
        Key(.endpoints, "token", .string, "RFC 6749 section 3.2"),
        Key(.endpoints, "device_authorization", .string, "RFC 8628"),
        Key(.endpoints, "revocation", .string, "RFC 7009"),
        Key(.endpoints, "pushed_authorization_request", .string, "RFC 9126"),
        Key(.endpoints, "userinfo", .string, "OpenID Connect Core section 5.3"),
    ]
}
