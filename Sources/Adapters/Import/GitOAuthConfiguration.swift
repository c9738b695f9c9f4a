internal import HTTPMessages

/// The clients of git-credential-oauth: variables `credential.URL.oauth…` of git's configuration.
extension GitConfiguration {
    /// One account for each URL with a client of the user's own, in the order of the configuration.
    public func oauthAccounts() throws(AdapterFailure) -> [ForeignAccount] {
        var names: [String] = []
        var settings: [String: [String: String]] = [:]
        for entry in entries where entry.name.hasPrefix("oauth") {
            guard let url = entry.url else { continue }
            if settings[url] == nil { names.append(url) }
            // git takes the last value.
            settings[url, default: [:]][entry.name] = try ForeignAccount.checked(entry.value)
        }
        var accounts: [ForeignAccount] = []
        for url in names {
            guard let values = settings[url], let clientID = values["oauthclientid"], !clientID.isEmpty else {
                continue
            }
            guard let place = try? WebURL(parsing: url), place.isSecure, let host = place.host else {
                throw AdapterFailure("A section of git's configuration has a client, and its URL is not https.")
            }
            var account = ForeignAccount(name: host)
            account.clientID = clientID
            account.clientSecret = values["oauthclientsecret"].flatMap { $0.isEmpty ? nil : $0 }
            account.scopes = (values["oauthscopes"] ?? "").split { $0 == " " || $0 == "," }.map(String.init)
            account.redirectURI = values["oauthredirecturl"].map(ForeignAccount.withPort)
            let presets = ["github.com": "github", "gitlab.com": "gitlab"]
            if let preset = presets[host], place.origin == "https://\(host)" {
                account.preset = preset
            } else if let page = values["oauthauthurl"], let token = values["oauthtokenurl"] {
                // They may be paths of the server.
                account.authorizationEndpoint = page.hasPrefix("/") ? place.origin + page : page
                account.tokenEndpoint = token.hasPrefix("/") ? place.origin + token : token
            } else {
                account.issuer = place.origin
                account.notes.append(
                    "git's configuration names no oauthAuthURL and oauthTokenURL: the server is asked as an issuer.")
            }
            account.server = place.origin
            accounts.append(account)
        }
        return accounts
    }
}
