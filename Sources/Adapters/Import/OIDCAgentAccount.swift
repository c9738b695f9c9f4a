internal import StrictJSON

/// The account that `oidc-gen --print` writes as JSON.
public enum OIDCAgentAccount {
    /// - Throws: for what is no such account.
    public static func read(_ bytes: [UInt8]) throws(AdapterFailure) -> ForeignAccount {
        guard bytes.count <= ForeignAccount.maxInput, let document = try? JSON(parsing: bytes), document.object != nil
        else { throw AdapterFailure("This is no account as oidc-gen --print writes it.") }
        func text(_ name: String) throws(AdapterFailure) -> String? {
            guard let value = document[name], value != .null else { return nil }
            guard let text = value.string else { throw AdapterFailure("A member of the account is no text.") }
            return try ForeignAccount.value(text)
        }
        guard let name = try text("name"), let issuer = try text("issuer_url") else {
            throw AdapterFailure("The account has no name or no issuer.")
        }
        var account = ForeignAccount(name: name)
        account.issuer = issuer
        account.clientID = try text("client_id")
        account.clientSecret = try text("client_secret")
        account.refreshToken = try text("refresh_token")
        account.scopes = try ForeignAccount.words(try text("scope"))
        let uris = document["redirect_uris"] ?? .array([])
        guard let uris = uris.array else { throw AdapterFailure("The account's redirect_uris are no list.") }
        for uri in uris {
            guard let uri = uri.string else { throw AdapterFailure("A redirect URI is no text.") }
            let checked = try ForeignAccount.checked(uri)
            // Those of a scheme lead to oidc-gen.
            if account.redirectURI == nil, checked.hasPrefix("http://") {
                account.redirectURI = ForeignAccount.withPort(checked)
            }
        }
        if try text("audience") != nil {
            account.notes.append("Its audience is not taken over: callers name one.")
        }
        if try text("mytoken_url") != nil { account.notes.append("Ringback knows nothing of mytoken.") }
        return account
    }

    /// The issuers to try: oidc-agent adds a slash at the end.
    public static func issuers(of issuer: String) -> [String] {
        issuer.hasSuffix("/") ? [String(issuer.dropLast()), issuer] : [issuer]
    }

    /// The names in the output of `oidc-gen --accounts`.
    public static func names(in listing: String) -> [String] {
        listing.split(separator: "\n").dropFirst().map { String($0.filter { $0 != " " && $0 != "\t" }) }
            .filter { !$0.isEmpty && !$0.hasPrefix("-") && !$0.contains("/") }
    }
}
