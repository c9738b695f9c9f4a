internal import OAuth
internal import RingbackBase
internal import SupabaseAuth

/// Where a callback by a custom scheme carries the key of its flow at a Supabase project (`redirect_flow_key`).
enum FlowKeyPlace: String, CaseIterable {
    case query
    case nowhere = "none"
}

extension AccountReader {
    /// Apple rejects loopback redirect URIs with `invalid_request`, but only in the browser.
    private static let appleIssuer = "https://appleid.apple.com"

    func readRedirect(of provider: AccountProvider?) -> RedirectTarget {
        let target = readTarget(of: provider)
        if case .loopback = target, provider?.issuer == Self.appleIssuer {
            table.refuse(
                table.has("redirect_uri") ? "redirect_uri" : "issuer",
                "Apple accepts no loopback redirect: sign in with Apple through Supabase, or set redirect_uri to an "
                    + "https page of yours, whose address is pasted to finish each sign-in")
        }
        let asked = table.strings("scopes")?.map(\.text) ?? []
        if provider?.issuer == Self.appleIssuer, asked.contains("name") || asked.contains("email") {
            table.refuse(
                "scopes",
                "Apple posts its response if name or email is requested, and such a sign-in cannot be completed by "
                    + "pasting an address: request only openid, or sign in with Apple through Supabase")
        }
        if table.word("redirect_flow_key") == FlowKeyPlace.nowhere {
            if case .customScheme = target { return target }
            table.refuse("redirect_flow_key", "\"none\" is for a redirect_uri with a custom scheme only")
        }
        return target
    }

    private func readTarget(of provider: AccountProvider?) -> RedirectTarget {
        let usual = RedirectTarget.standard(account: table.name)
        guard let written = table.string("redirect_uri") else {
            guard case .preset(let preset) = provider, let uri = preset.redirectURI else { return usual }
            return (try? RedirectTarget(parsing: uri)) ?? usual
        }
        return table.reporting("redirect_uri") { () throws(Mistake) in try RedirectTarget(parsing: written) } ?? usual
    }

    /// The page that the browser shows after the sign-out. Ringback does not receive this redirect, so only web URLs
    /// are allowed.
    func readPostLogoutRedirect() -> String? {
        table.text(
            "post_logout_redirect_uri", "must be an https URL (or http on loopback) without a fragment",
            where: { text in (try? WebURL(parsing: text)).map { $0.isSecure && $0.fragment == nil } ?? false })
    }

    /// `form_post` needs a listener: a form cannot be delivered through a custom scheme or by pasting.
    func readResponseMode(_ redirect: RedirectTarget, of provider: AccountProvider) -> ResponseMode? {
        let mode: ResponseMode? = table.word("response_mode")
        guard mode == .formPost else { return mode }
        if case .preset(let preset) = provider, provider.issuer == nil {
            table.refuse("response_mode", "\(preset.name) has no response mode form_post: leave response_mode out")
        }
        if case .loopback = redirect { return mode }
        table.refuse("response_mode", "\"form_post\" needs a redirect_uri on loopback")
        return mode
    }
}

extension AccountConfiguration {
    /// The redirect URIs to register at the provider. For Supabase these are the entries for the project's allow list,
    /// which needs none for a loopback address. `{port}` stands for a free port; providers that follow RFC 8252 ignore
    /// the port. A Supabase flow adds its key, as the last path segment or in the query.
    public var redirectURIsToRegister: [String] {
        if service != nil { return [] }
        // The client is found at the sign-in, or registered by itself.
        if case .mcp = provider, clientID.isEmpty { return [] }
        guard case .supabase(let project) = provider else { return [redirect.template] }
        var hasFreePort = false
        if case .loopback(_, nil, _) = redirect { hasFreePort = true }
        let entry = try? SupabaseRedirect(
            base: redirect.uri(port: 1), key: "key", isKeyless: !project.callbackCarriesFlowKey,
            hasFreePort: hasFreePort)
        return [entry?.allowListEntry].compactMap(\.self)
    }
}

/// Where the provider sends the authorization response (RFC 8252 section 7).
public enum RedirectTarget: Sendable, Equatable {
    /// Our own listener. `host` is as in the URI (`127.0.0.1`, `[::1]`, `localhost`), `port` is nil for a free port,
    /// `path` is as in the URI and may be empty.
    case loopback(host: String, port: Int?, path: String)
    /// A custom scheme: the desktop starts `ringback open`.
    case customScheme(uri: String)
    /// A web page: the user pastes its URL into `ringback complete`.
    case https(uri: String)

    /// The redirect URI as it is sent, byte for byte; `port` is that of the flow's listener.
    public func uri(port: Int) -> String {
        switch self {
        case .loopback(let host, let fixed, let path): "http://\(host):\(fixed ?? port)\(path)"
        case .customScheme(let uri), .https(let uri): uri
        }
    }

    /// The redirect URI for display, with `{port}` for a free port.
    public var template: String {
        switch self {
        case .loopback(let host, nil, let path): "http://\(host):{port}\(path)"
        case .loopback(let host, let port?, let path): "http://\(host):\(port)\(path)"
        case .customScheme(let uri), .https(let uri): uri
        }
    }

    /// The default: `http://127.0.0.1:{port}/callback/ACCOUNT`.
    static func standard(account: String) -> RedirectTarget {
        .loopback(host: "127.0.0.1", port: nil, path: "/callback/\(account)")
    }

    typealias Failure = Mistake

    private static let allowed =
        "allowed are http://127.0.0.1:{port}/PATH (also [::1] and localhost, also with a fixed port), a custom scheme, "
        + "and https"

    init(parsing text: String) throws(Failure) {
        // `{port}` is not valid in a URL, so it is replaced by 0 for parsing. `{port}0` is an error.
        let standIn = text.split(separator: ":{port}", maxSplits: 1, omittingEmptySubsequences: false)
        let isFree = standIn.count == 2
        let isWhole = !isFree || standIn[1].isEmpty || "/?#".contains(standIn[1].first ?? "/")
        guard isWhole, let url = try? WebURL(parsing: isFree ? "\(standIn[0]):0\(standIn[1])" : text) else {
            throw Failure("is not a URI; \(RedirectTarget.allowed)")
        }
        guard url.fragment == nil else { throw Failure("must not have a fragment (#)") }
        guard url.scheme == "http" else {
            guard !isFree else { throw Failure("{port} belongs to http://127.0.0.1, [::1] and localhost only") }
            guard url.scheme != "https" else {
                self = .https(uri: text)
                return
            }
            guard !URLScheme.reserved.contains(url.scheme) else {
                throw Failure("the scheme \(url.scheme) is not for applications; \(RedirectTarget.allowed)")
            }
            self = .customScheme(uri: text)
            return
        }
        guard let host = url.host, ["127.0.0.1", "::1", "localhost"].contains(host) else {
            throw Failure("plain http is for 127.0.0.1, [::1] and localhost only; \(RedirectTarget.allowed)")
        }
        guard let port = url.port else { throw Failure("needs a port: write :{port} for a free one") }
        try RedirectTarget.check(url)
        // A `{port}` in the path would have been replaced by 0.
        guard !isFree || standIn[1] == url.path else { throw Failure("{port} is allowed only after the host") }
        self = .loopback(host: host == "::1" ? "[::1]" : host, port: port == 0 ? nil : port, path: url.path)
    }

    /// Our listener compares the path byte for byte, but browsers normalize dot segments.
    private static func check(_ url: WebURL) throws(Failure) {
        guard url.query == nil else { throw Failure("must not have a query (?), because the response is sent there") }
        let segments = url.path.split(separator: "/", omittingEmptySubsequences: false).map { $0.lowercased() }
        guard !segments.contains(where: { [".", "..", "%2e", "%2e%2e", ".%2e", "%2e."].contains($0) }) else {
            throw Failure("must not have . or .. in its path: browsers change such paths")
        }
        guard !CallbackPaths.isReserved(url.path) else {
            throw Failure("the paths \(CallbackPaths.reservedText) are the listener's own")
        }
    }
}

/// Two accounts of different issuers must not share a redirect URI. Attack (mix-up, RFC 9700 section 4.4): an
/// authorization response of one provider could be accepted for a flow of the other, whose token endpoint would then
/// receive the code. The only other protection is an `iss` in every authorization response (RFC 9207), which both
/// accounts must then require.
enum RedirectMixUpCheck {
    /// One error for each account that shares a redirect URI with an earlier one, by name.
    static func mistakes(in accounts: [String: AccountConfiguration]) -> [ConfigurationError] {
        var earlier: [String: Sharers] = [:]
        var mistakes: [ConfigurationError] = []
        for account in accounts.values.sorted(by: { $0.name < $1.name }) where account.service == nil {
            let place = account.redirect.place
            if let other = earlier[place.text]?.mixable(with: account, at: place.port) {
                let line = other.lines["redirect_uri"] ?? other.source.line
                mistakes.append(
                    account.mistake(
                        at: "redirect_uri",
                        "\(account.redirect.template) is also the redirect URI of accounts.\(other.name) "
                            + "(\(other.source.file):\(line)), which has another issuer: the response of one provider "
                            + "could be taken for the other's. Give one of them a redirect_uri of its own. If both "
                            + "providers put iss into their responses (RFC 9207), setting authorization_response_iss = "
                            + "true for both accounts is enough"))
            }
            earlier[place.text, default: Sharers()].add(account, at: place.port)
        }
        return mistakes
    }
}

extension AccountConfiguration {
    /// Accounts with the same value belong to the same provider.
    fileprivate var issuerIdentity: String {
        switch provider {
        case .supabase(let project): return project.project.authURL
        // The issuer is found only at the sign-in, so each MCP account counts as a provider of its own.
        case .mcp(let mcp): return "mcp \(name) \(mcp.server.resource)"
        case .oidc, .preset, .oauth2:
            if let issuer = provider.issuer { return issuer }
            return provider.endpoints.map { "\($0.authorizationEndpoint) \($0.tokenEndpoint)" } ?? provider.word
        }
    }
}

/// The accounts whose redirect URIs are equal apart from the port. There may be thousands of them, so at most two
/// accounts of each kind are kept.
private struct Sharers {
    /// Accounts for which the check has the same result, apart from their issuers.
    private struct Kind: Hashable {
        let ports: Ports
        let requiresIssuer: Bool
    }

    private enum Ports: Hashable {
        case fixed(Int), free, all
    }

    /// For each kind the first account, and the first account with another issuer than that one.
    private var accounts: [Kind: [AccountConfiguration]] = [:]

    /// - Parameter port: nil for a free port, which can be any port.
    mutating func add(_ account: AccountConfiguration, at port: Int?) {
        for ports in [port.map(Ports.fixed) ?? .free, .all] {
            let kind = Kind(ports: ports, requiresIssuer: account.requiresIssuerInResponse)
            let known = accounts[kind, default: []]
            guard known.count < 2, known.first?.issuerIdentity != account.issuerIdentity else { continue }
            accounts[kind] = known + [account]
        }
    }

    /// The first account, by name, with another issuer for whose flow a response to this account's could be accepted.
    func mixable(with account: AccountConfiguration, at port: Int?) -> AccountConfiguration? {
        // If both accounts require the issuer in the response, a response for one is never accepted for the other.
        let rules = account.requiresIssuerInResponse ? [false] : [false, true]
        let others = (port.map { [Ports.fixed($0), .free] } ?? [.all]).flatMap { ports in
            rules.flatMap { accounts[Kind(ports: ports, requiresIssuer: $0)] ?? [] }
        }
        return others.filter { $0.issuerIdentity != account.issuerIdentity }.min { $0.name < $1.name }
    }
}

extension RedirectTarget {
    /// Two targets are the same place if their texts and ports are equal; a free port (nil) equals every port. A
    /// callback for one could then be accepted for the other: see ``WebURL/isPlace(of:)``.
    fileprivate var place: (text: String, port: Int?) {
        switch self {
        case .loopback(let host, let port, let path): return ("loopback \(host) \(path.isEmpty ? "/" : path)", port)
        case .customScheme(let uri), .https(let uri):
            guard let url = try? WebURL(parsing: uri) else { return (uri, nil) }
            let isWeb = url.scheme == "http" || url.scheme == "https"
            let path = isWeb && url.path.isEmpty ? "/" : url.path
            let place = "\(url.scheme) \(url.host ?? "") \(url.port.map(String.init) ?? "")"
            return ("\(place) \(!isWeb && path.hasSuffix("/") ? String(path.dropLast()) : path)", nil)
        }
    }
}

/// Checks that `id_token_account` of a project, and `through`, name an account that exists and has ID tokens. Otherwise the
/// error would appear only when one is needed.
enum IDTokenAccountCheck {
    static func mistakes(in accounts: [String: AccountConfiguration]) -> [ConfigurationError] {
        accounts.values.sorted { $0.name < $1.name }.compactMap { account in
            guard let (key, name) = account.idTokenSource, let message = mistake(name, accounts[name]) else {
                return nil
            }
            return account.source.mistake("accounts.\(account.name).\(key)", message)
        }
    }

    private static func mistake(_ name: String, _ account: AccountConfiguration?) -> String? {
        guard let account else { return "there is no account of this name" }
        if case .supabase = account.provider { return "is at a Supabase project itself, which gives no ID tokens" }
        if account.service != nil { return "has no ID tokens: it has no sign-in of its own" }
        return account.scopes.contains("openid") ? nil : "has no ID tokens: the scope openid is not among its scopes"
    }
}

extension AccountConfiguration {
    /// The account whose ID token this one uses, and the key that names it.
    fileprivate var idTokenSource: (key: String, name: String)? {
        if let name = service?.through { return ("through", name) }
        guard case .supabase(let project) = provider, let name = project.idTokenAccount else { return nil }
        return ("id_token_account", name)
    }
}
