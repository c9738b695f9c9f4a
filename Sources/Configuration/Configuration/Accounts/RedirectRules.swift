internal import HTTPMessages
internal import OAuth
internal import SupabaseAuth

/// Where a callback by a custom scheme carries the key of its flow at a Supabase project (`redirect_flow_key`).
enum FlowKeyPlace: String, CaseIterable {
    case query
    case nowhere = "none"

    /// As the account's table says; the key table refuses other words.
    init(of table: TOMLTableReader) {
        self = table.string("redirect_flow_key").flatMap(FlowKeyPlace.init(rawValue:)) ?? .query
    }
}

/// Reads where the authorization response is sent, and checks what the provider accepts.
extension AccountReader {
    /// Apple rejects loopback redirect URIs with `invalid_request`, but only in the browser.
    private static let appleIssuer = "https://appleid.apple.com"

    mutating func readRedirect(of provider: AccountProvider?) -> RedirectTarget {
        let target = readTarget(of: provider)
        if case .loopback = target, provider?.issuer == Self.appleIssuer {
            account.refuse(
                table.has("redirect_uri") ? "redirect_uri" : "issuer",
                "Apple accepts no loopback redirect: sign in with Apple through Supabase, or set redirect_uri to an "
                    + "https page of yours, whose address is pasted to finish each sign-in")
        }
        let asked = table.strings("scopes")?.map(\.text) ?? []
        if provider?.issuer == Self.appleIssuer, asked.contains("name") || asked.contains("email") {
            account.refuse(
                "scopes",
                "Apple posts its response if name or email is requested, and such a sign-in cannot be completed by "
                    + "pasting an address: request only openid, or sign in with Apple through Supabase")
        }
        if FlowKeyPlace(of: table) == .nowhere {
            guard case .customScheme = target else {
                account.refuse("redirect_flow_key", "\"none\" is for a redirect_uri with a custom scheme only")
                return target
            }
        }
        return target
    }

    private mutating func readTarget(of provider: AccountProvider?) -> RedirectTarget {
        let usual = RedirectTarget.standard(account: account.name)
        guard let written = table.string("redirect_uri") else {
            guard case .preset(let preset) = provider, let uri = preset.redirectURI else { return usual }
            return (try? RedirectTarget(parsing: uri)) ?? usual
        }
        do throws(RedirectTarget.Failure) {
            return try RedirectTarget(parsing: written)
        } catch {
            account.refuse("redirect_uri", error.message)
            return usual
        }
    }

    /// The page that the browser shows after the sign-out. Ringback does not receive this redirect, so only web URLs
    /// are allowed.
    mutating func readPostLogoutRedirect() -> String? {
        guard let written = table.string("post_logout_redirect_uri") else { return nil }
        guard let url = try? WebURL(parsing: written), url.isSecure, url.fragment == nil else {
            account.refuse("post_logout_redirect_uri", "must be an https URL (or http on loopback) without a fragment")
            return nil
        }
        return written
    }

    /// `form_post` needs a listener: a form cannot be delivered through a custom scheme or by pasting.
    mutating func readResponseMode(_ redirect: RedirectTarget, of provider: AccountProvider) -> ResponseMode? {
        let mode = table.string("response_mode").flatMap { ResponseMode(rawValue: $0) }
        guard mode == .formPost else { return mode }
        if case .preset(let preset) = provider, provider.issuer == nil {
            account.refuse("response_mode", "\(preset.name) has no response mode form_post: leave response_mode out")
        }
        if case .loopback = redirect { return mode }
        account.refuse("response_mode", "\"form_post\" needs a redirect_uri on loopback")
        return mode
    }
}

extension AccountConfiguration {
    /// The redirect URIs to register at the provider. For Supabase these are the entries for the project's allow list,
    /// which needs none for a loopback address.
    ///
    /// `{port}` stands for a free port; providers that follow RFC 8252 ignore the port. A Supabase flow adds its key,
    /// as the last path segment or in the query.
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
