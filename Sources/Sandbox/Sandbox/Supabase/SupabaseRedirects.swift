internal import HTTPMessages
internal import StrictJSON

/// The redirects with which a sign-in ends at the app.
enum SupabaseRedirects {
    /// A code to be exchanged. A `code` that the URL already has is replaced.
    static func with(code: String, _ target: String) -> String {
        guard var url = SupabaseURL(target) else { return target }
        url.merge([("code", code)])
        return url.text
    }

    /// Tokens in the fragment, appended to the text as it is: two fragments if it had one.
    static func with(tokens: JSONObject, extra: [(String, String)], _ target: String) -> String {
        var pairs = extra + [("sb", "")]
        for name in ["access_token", "refresh_token", "token_type"] {
            pairs.append((name, tokens[name]?.string ?? ""))
        }
        for name in ["expires_at", "expires_in"] { pairs.append((name, String(tokens[name]?.integer ?? 0))) }
        return target + "#" + SupabaseURL.encode(pairs)
    }

    /// An error in the fragment, encoded twice there, and in the query.
    static func refusal(
        _ refusal: SupabaseErrorResponse, at target: String, inQuery: Bool, isCallback: Bool
    ) -> String {
        var pairs: [(String, String)] = []
        if let error = refusal.redirectError(isCallback: isCallback) { pairs.append(("error", error)) }
        pairs += [("error_code", refusal.code), ("error_description", refusal.message)]
        return errors(pairs, at: target, inQuery: inQuery)
    }

    static func errors(_ pairs: [(String, String)], at target: String, inQuery: Bool) -> String {
        guard var url = SupabaseURL(target) else { return target }
        if inQuery { url.merge(pairs) }
        url.setFragment(pairs + [("sb", "")])
        return url.text
    }

    /// An error before it is known which app began the sign-in. The app is not told.
    static func siteError(_ code: String, _ message: String, at siteURL: String) -> String {
        guard var url = SupabaseURL(siteURL) else { return siteURL }
        url.merge([("error", "invalid_request"), ("error_code", code), ("error_description", message)])
        return url.text
    }
}
