internal import HTTPMessages
internal import OAuth
internal import StrictJSON

/// Reads the provider. Exactly one of `issuer`, `provider`, `endpoints` and `mcp` must be given; only `mcp` may be
/// combined with `issuer`.
extension AccountReader {
    private static let words = (ProviderPreset.names + ["supabase"]).sorted()

    mutating func readProvider() -> AccountProvider? {
        if account.isWritten("mcp") { return readServer() }
        for key in MCPReader.keys where table.has(key) { account.refuse(key, "belongs to mcp = \"URL\" only") }
        let ways = ["issuer", "provider", "endpoints"].filter { account.isWritten($0) }
        guard ways.count == 1 else {
            let found = ways.isEmpty ? "none is there" : "\(ways.joined(separator: " and ")) are there"
            account.refuse(
                ways.dropFirst().first, "an account has exactly one of issuer, provider, endpoints and mcp; \(found)")
            return nil
        }
        let word = table.string("provider")
        // If `provider` has an error, these keys may belong to it, so they are not reported.
        if word != nil || !account.isWritten("provider") { refuseKeys(ofOthersThan: word) }
        if let issuer = table.string("issuer") { return readIssuer(issuer) }
        if let endpoints = table.table("endpoints") { return readEndpoints(endpoints) }
        return word.flatMap { word in word == "supabase" ? SupabaseReader.read(&account) : readPreset(word) }
    }

    private mutating func readServer() -> AccountProvider? {
        refuseKeys(ofOthersThan: nil)
        return table.string("mcp").flatMap { MCPReader.read(&account, $0) }
    }

    /// Rejects keys that belong to another value of `provider`.
    private mutating func refuseKeys(ofOthersThan word: String?) {
        for (key, owner) in [("tenant", "microsoft"), ("host", "gitlab")]
            + SupabaseReader.keys.map({ ($0, "supabase") })
        where table.has(key) && word != owner {
            account.refuse(key, "belongs to provider = \"\(owner)\" only")
        }
    }

    private mutating func readIssuer(_ issuer: String) -> AccountProvider? {
        if let place = issuer.firstRange(of: "/.well-known/") {
            account.refuse(
                "issuer",
                "is the address of the provider's metadata; the issuer is the part before /.well-known/: "
                    + "\(issuer[..<place.lowerBound])")
            return nil
        }
        do throws(OAuthError) {
            _ = try ProviderMetadata.discoveryRequests(issuer: issuer)
            return .oidc(issuer: issuer)
        } catch {
            account.refuse("issuer", AccountReader.reason(error))
            return nil
        }
    }

    private mutating func readEndpoints(_ endpoints: TOMLTableReader) -> AccountProvider? {
        var isGood = true
        // A service account has no sign-in page, so it needs no authorization endpoint.
        for key in account.isService ? ["token"] : ["authorization", "token"] where !endpoints.has(key) {
            isGood = false
            if !account.isWritten(key, in: "endpoints") { account.refuse("endpoints", "needs \(key)") }
        }
        for member in endpoints.members {
            guard case .string(let text) = member.node.value else { continue }
            let url = try? WebURL(parsing: text)
            if url?.isSecure != true || url?.fragment != nil {
                isGood = false
                account.refuse(
                    "endpoints", member.node, member.key, "must be an https URL without a fragment (http on loopback)")
            }
        }
        guard isGood, let token = endpoints.string("token") else { return nil }
        do throws(OAuthError) {
            return .oauth2(
                try ProviderMetadata(
                    authorizationEndpoint: endpoints.string("authorization"), tokenEndpoint: token,
                    userinfoEndpoint: endpoints.string("userinfo"), revocationEndpoint: endpoints.string("revocation"),
                    deviceAuthorizationEndpoint: endpoints.string("device_authorization"),
                    pushedAuthorizationRequestEndpoint: endpoints.string("pushed_authorization_request")
                ))
        } catch {
            account.refuse("endpoints", AccountReader.reason(error))
            return nil
        }
    }

    private mutating func readPreset(_ word: String) -> AccountProvider? {
        guard ProviderPreset.names.contains(word) else {
            let nearest = NearestWord.find(for: word, among: Self.words).map { "; did you mean \"\($0)\"?" } ?? ""
            account.refuse("provider", "must be one of \(Self.words.joined(separator: ", "))\(nearest)")
            return nil
        }
        do throws(OAuthError) {
            return .preset(
                try ProviderPreset(
                    name: word, tenant: word == "microsoft" ? table.string("tenant") : nil,
                    host: word == "gitlab" ? table.string("host") : nil
                ))
        } catch {
            // A preset has only one of the two keys, so the error concerns that one.
            let key = word == "microsoft" ? "tenant" : "host"
            if !account.isWritten(key) || table.has(key) {
                account.refuse(table.has(key) ? key : "provider", AccountReader.reason(error))
            }
            return nil
        }
    }

    /// The reason of a configuration error.
    static func reason(_ error: OAuthError) -> String {
        if case .misconfigured(let reason) = error { reason } else { "cannot be used" }
    }
}
